"""A whole report: its first screen, and its sections in the order of SECTIONS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kfbench.report.data import noise
from kfbench.report.data.named import Named
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.section import Block, Figure, Missing, Section, drawn, not_drawn
from kfbench.report.topics import (
    axis,
    blocks,
    break_even,
    breakdown,
    broker_paths,
    claims,
    cold,
    compressed,
    control,
    conversions,
    cpu,
    failures,
    fleet,
    java,
    migration,
    pareto,
    prefix,
    proposals,
    reference,
    verdict,
    winners,
    workloads,
)
from kfbench.report.topics.classes import Verdicts
from kfbench.report.topics.columnar import section as columnar
from kfbench.report.topics.columnar.measured import NAME
from kfbench.tables import Table, listed


class Views:
    """The views of one run that several sections read, each made once."""

    def __init__(self, results: Results, noise_facts: noise.Facts | None) -> None:
        self.results, self.noise_facts = results, noise_facts

    @cached_property
    def named(self) -> Named:
        return Named(self.results)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.results)

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.results, self.named, self.paths)


Build = Callable[[Views], Section | Missing]
# The sections, in their order. Blocks of the sweep that no section explains follow them.
SECTIONS: Final[Sequence[Build]] = (
    lambda run: verdict.classes_section(run.verdicts),
    lambda run: reference.batch_size_section(run.results),
    lambda run: break_even.break_even_section(run.results),
    lambda run: winners.maps_section(run.results),
    *((lambda run, entry=entry: axis.axis_section(run.results, entry)) for entry in axis.ENTRIES),
    lambda run: breakdown.fields_section(run.results),
    lambda run: compressed.compressed_section(run.results),
    lambda run: pareto.pareto_section(run.results),
    *((lambda run, entry=entry: cpu.cpu_section(run.results, entry)) for entry in cpu.ENTRIES),
    lambda run: cold.cold_section(run.results),
    lambda run: java.peers_section(run.results),
    lambda run: workloads.workloads_section(run.results, run.named),
    lambda run: fleet.fleet_section(run.results),
    lambda run: prefix.prefix_section(run.results),
    lambda run: broker_paths.append_section(run.paths),
    lambda run: proposals.proposals_section(run.paths, [migration.LAST_WORD]),
    lambda run: conversions.conversions_section(run.paths),
    lambda run: migration.migration_section(run.paths),
    lambda run: broker_paths.keep_section(run.paths),
    lambda run: columnar.columnar_section(run.results),
)
AFTER_BLOCKS: Final[Sequence[Build]] = (lambda run: control.noise_section(run.results, run.noise_facts),)
# A text is printed once. These sections take theirs first: the texts of their blocks are about nothing else.
FIRST_TEXTS: Final = (NAME, "compressed")


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report. lead, table, figures and costs are the first screen; costs: the CPU time of the winners."""

    lead: str
    table: Table | None
    figures: tuple[Figure, ...]
    costs: Table | None
    sections: tuple[Section, ...]


def page(results: Results, sweep: Sequence[Block], noise_facts: noise.Facts | None = None) -> Page:
    """Build everything that this run has rows for; the last section says what it has none for.

    sweep: the blocks of the sweep. Each has its text in the section that shows most of its rows, or a section of its
    own, so that nothing that was measured and explained is left out. noise_facts: those of the manifest.
    """
    run = Views(results, noise_facts)
    verdicts = run.verdicts
    head = [reference.overhead_figure(results, verdicts.named_formats)]
    built = [[build(run) for build in builds] for builds in (SECTIONS, AFTER_BLOCKS)]
    ordered, last = ([each for each in found if isinstance(each, Section)] for found in built)
    ordered, last, unused = _with_texts(ordered, last, results, sweep)
    sections = [*ordered, *(blocks.block_section(results, block) for block in unused), *last]
    sections = [section.without_empty_tables() for section in sections]
    missing = [*not_drawn(head), *(each for found in built for each in found if isinstance(each, Missing))]
    missing += [each for section in sections for each in section.missing]
    research = next((section.title for section in sections if section.name == NAME), None)
    return Page(
        lead=_lead(results, verdicts),
        table=verdict.verdict_table(verdicts),
        figures=drawn(head),
        costs=verdict.costs_table(verdicts),
        sections=(*sections, claims.claims_section(), failures.failures_section(results, missing, research)),
    )


def _with_texts(
    ordered: list[Section], last: list[Section], results: Results, sweep: Sequence[Block]
) -> tuple[list[Section], list[Section], list[Block]]:
    """Return the sections with the texts that they print, and the blocks that none prints."""
    unused = {block.name: block for block in sweep}
    order = list(unused)
    texts: dict[str, list[Block]] = {}
    for section in sorted([*ordered, *last], key=_text_rank):
        if section.texts is not None:
            names = section.texts.names(results.all, order)
            texts[section.name] = [unused.pop(name) for name in names if name in unused]
    with_texts = [[each.with_blocks(texts.get(each.name, ())) for each in found] for found in (ordered, last)]
    return with_texts[0], with_texts[1], list(unused.values())


def _text_rank(section: Section) -> int:
    return FIRST_TEXTS.index(section.name) if section.name in FIRST_TEXTS else len(FIRST_TEXTS)


def _lead(results: Results, verdicts: Verdicts) -> str:
    """Answer in a few sentences; where no verdict tells of a research format, say that it has a section."""
    is_untold = verdicts.research_formats and not verdicts.classes
    beside = f"{listed(verdicts.research_formats)} has a section of its own." if is_untold else ""
    parts = reference.lead_sentence(results, verdicts.research_formats), verdict.verdict_sentence(verdicts), beside
    return " ".join(filter(None, parts))
