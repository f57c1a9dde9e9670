"""The named workloads: which format wins for whom, and what that is for a fleet."""

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.results import Results
from kfbench.report.render import plots
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section, apart
from kfbench.report.topics import fleet, floors, verdict, workloads

NO_WORKLOADS = "no bytes of named workloads"
NO_FLOORS = "no floors; runs from before they were measured have none"


def by_class(verdicts: verdict.Verdicts) -> Section | Missing:
    title = "What stands behind the verdict?"
    if not verdicts.classes:
        return Missing(what="Which format for which class of workload?", why=NO_WORKLOADS)
    return Section(
        name="classes",
        short="Classes",
        title=title,
        means=" ".join(filter(None, (verdict.cpu_sentence(verdicts), verdict.cost_sentence(verdicts)))),
        prose=(verdict.READING,),
        tables=(verdict.classes_table(verdicts), verdict.detail_table(verdicts)),
    )


def for_whom(results: Results, named: workloads.Named, prose: Prose) -> Section | Missing:
    title = "Which format wins for whom?"
    if not named.sizes:
        return Missing(what=title, why=NO_WORKLOADS)
    figures, missing = apart([_dots(named)])
    shown, folded = workloads.size_tables(named)
    cpu = workloads.cpu_table(named)
    seeds, gaps = workloads.seed_table(results), floors.gaps(results, named)
    limits = floors.table(gaps)
    return Section(
        name="workloads",
        short="Workloads",
        title=title,
        means=" ".join(filter(None, (workloads.sentence(named), floors.sentence(gaps)))),
        prose=prose.workloads(),
        figures=figures,
        tables=tuple(filter(None, (workloads.verdict(named), *shown, limits, cpu))),
        more=tuple(filter(None, (*folded, floors.table(gaps, variants=True), seeds))),
        wrap=True,
        missing=missing if limits else (*missing, Missing(what="Metadata floor of the workloads", why=NO_FLOORS)),
    )


def _dots(named: workloads.Named) -> Figure | Missing:
    panels = workloads.pictured(named)
    if not panels:
        return Missing(what="Bytes of each workload by format", why=f"no {BASE_FORMAT} beside another format")
    return Figure(
        name="workloads",
        svg=plots.paths(panels, f"bytes relative to {BASE_FORMAT}, same codec", row_height=0.3),
        alt=f"Bytes of each workload by format, relative to {BASE_FORMAT}. {workloads.sentence(named)}",
        caption=f"Left of 1× a format takes fewer bytes than {BASE_FORMAT} with the same codec. v0 and v1 have no dot "
        "where they cannot carry the records or have no such codec.",
        numbers={
            panel: workloads.table_name(codec)
            for codec in named.shown_codecs
            if (panel := workloads.codec_words(codec)) in panels
        },
    )


def of_a_fleet(results: Results, prose: Prose) -> Section | Missing:
    title = "What does it say of a fleet?"
    model = fleet.Fleet(results)
    if not model.workloads:
        return Missing(what=title, why="no rows of the size model; the profile fleet has them")
    figures, missing = apart([_growth(model)])
    saved = fleet.saved_table(model)
    return Section(
        name="fleet",
        short="Fleet",
        title=title,
        means=fleet.sentence(model),
        prose=prose.all_of(model.rows),
        figures=figures,
        tables=(*([saved] if saved else []), fleet.day_table(model)),
        more=(fleet.cost_table(model), *([fleet.growth_table(model)] if figures else [])),
        missing=missing,
    )


def _growth(model: fleet.Fleet) -> Figure | Missing:
    if len(model.growth) < 2:
        return Missing(what="CPU seconds of the size model over records", why="no workload was sized in several cells")
    last = ", ".join(f"{name} {seconds:.1f}" for name, seconds in model.growth.ffill().iloc[-1].items())
    return Figure(
        name="fleet",
        svg=plots.growth(model.growth),
        alt=f"CPU seconds that the size model took, over records, one line a workload. At the end: {last}",
        caption="A line parallel to the dotted ones is a cost linear in records; a cell ends at each dot.",
        numbers=fleet.growth_table(model).name,
    )
