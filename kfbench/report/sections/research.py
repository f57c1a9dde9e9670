"""columnar, which is measured beside the proposals and takes no part among them."""

from collections.abc import Iterator, Sequence

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.report.data.results import Results
from kfbench.report.render import plots
from kfbench.report.render.tables import Table
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section
from kfbench.report.topics import columnar


def of_columnar(results: Results, prose: Prose) -> Section | Missing:
    title = "columnar: how near to the floor can a format come?"
    found = columnar.Columnar(results)
    if not found.bytes and not found.times:
        rows = results.every[results.every["format"] == columnar.NAME]
        why = (
            f"{columnar.NAME} was not measured"
            if rows.empty
            else f"no row of {columnar.NAME} is a number"
            if (rows["status"] != "ok").all()
            else f"{columnar.NAME} was measured, and no {BASE_FORMAT} beside it to compare it with"
        )
        return Missing(what=title, why=why)
    sizes = columnar.bytes_tables(found)
    cpu, readings = columnar.cpu_table(found), columnar.readings_table(found)
    shown = columnar.means_table(found), cpu, readings, columnar.paths_table(found), columnar.losses_table(found)
    return Section(
        name="columnar",
        short="columnar",
        title=title,
        means=columnar.sentence(found),
        prose=tuple(filter(None, (columnar.LAYOUT, columnar.metadata_sentence(found)))),
        figures=(
            *_figures(found),
            *_times(found, OPERATIONS, cpu),
            *_times(found, tuple(READINGS.values()), readings),
        ),
        tables=tuple(filter(None, (columnar.metadata_table(found), *sizes[:1], *shown))),
        more=tuple(sizes[1:]),
        blocks=prose.blocks_of(found.blocks),
    )


def _figures(found: columnar.Columnar) -> Iterator[Figure]:
    if panels := columnar.pictured_metadata(found):
        yield Figure(
            name="columnar-metadata",
            svg=plots.paths(panels, f"metadata relative to {BASE_FORMAT}", row_height=0.3),
            alt=f"Metadata of each workload by format, relative to {BASE_FORMAT}. {columnar.metadata_sentence(found)}",
            caption="Bytes that are no key, value or header, without a codec, beside the metadata floor.",
            numbers="columnar-metadata",
        )
    if panels := columnar.pictured_bytes(found):
        yield Figure(
            name="columnar-bytes",
            svg=plots.paths(panels, f"bytes relative to {BASE_FORMAT}, same codec", row_height=0.3),
            alt=f"Bytes of each workload by format and codec, relative to {BASE_FORMAT}. "
            f"{columnar.bytes_sentence(found)}",
            caption=f"All bytes, payload too, in {columnar.of_batches(found.batches[0])}. Left of 1× a format takes "
            f"fewer than {BASE_FORMAT} with the same codec.",
            numbers=columnar.bytes_name(found.batches[0]),
        )


def _times(found: columnar.Columnar, operations: Sequence[str], table: Table | None) -> Iterator[Figure]:
    panels = columnar.pictured_cpu(found, operations)
    if panels and table is not None:
        batches = columnar.of_batches(columnar.pictured_batch(found)).capitalize()
        said = "".join(f"{panel}: {columnar.DOES[panel]}. " for panel in panels if columnar.DOES[panel] != panel)
        yield Figure(
            name=table.name,
            svg=plots.ratios(panels, f"CPU time relative to {BASE_FORMAT}", found.noise),
            alt=f"CPU time relative to {BASE_FORMAT} by workload and operation. {columnar.cpu_sentence(found)}",
            caption=f"{said}{batches}, without a codec. Bars: 95 % interval of the paired ratio; shaded: the middle "
            f"95 % of what {BASE_FORMAT} against itself shows.",
            numbers=table.name,
        )
