"""Build the section about columnar, a research format. It is measured with the proposals, but not ranked with them."""

from collections.abc import Iterator, Sequence

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.kinds.cpu import READINGS
from kfbench.report.data.views import Views
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Texts
from kfbench.report.topics.columnar import sentences, tables
from kfbench.report.topics.columnar.measured import NAME, Columnar, batches_words


def columnar_answer(run: Views) -> Answer | str:
    columnar = Columnar(run.results)
    if not columnar.sizes and not columnar.times:
        rows = run.results.every[run.results.every["format"] == NAME]
        if rows.empty:
            return f"{NAME} was not measured"
        if (rows["status"] != "ok").all():
            return f"no row of {NAME} is a number"
        return f"{NAME} was measured, and no {BASE_FORMAT} beside it to compare it with"
    sizes, times = tables.bytes_tables(columnar), tables.times_tables(columnar)
    readings = tuple(READINGS.values())
    figures = [
        *_bytes_figures(columnar),
        *_times_figure(columnar, OPERATIONS, "columnar-cpu"),
        *_times_figure(columnar, readings, "columnar-readings"),
    ]
    prose = (
        sentences.LAYOUT,
        sentences.metadata_sentence(columnar),
        sentences.bytes_sentence(columnar),
        sentences.cpu_sentence(columnar, OPERATIONS),
        sentences.cpu_sentence(columnar, readings),
    )
    shown = (tables.metadata_table(columnar), *sizes[:1], tables.means_table(columnar))
    return Answer(
        means=sentences.answer(columnar),
        prose=tuple(filter(None, prose)),
        figures=tuple(figures),
        tables=(*shown, *times.values(), tables.losses_table(columnar), tables.loss_counts_table(columnar)),
        more=tuple(sizes[1:]),
        texts=Texts(rows=columnar.own_rows, of="any", titled=True),
    )


def _bytes_figures(columnar: Columnar) -> Iterator[Figure]:
    if panels := tables.metadata_panels(columnar):
        yield Figure(
            name="columnar-metadata",
            svg=plots.paths(panels, f"metadata relative to {BASE_FORMAT}", row_height=0.3),
            alt=f"Metadata of each workload by format, relative to {BASE_FORMAT}. "
            f"{sentences.metadata_sentence(columnar)}",
            caption="Bytes that are no key, value or header, without a codec, beside the metadata floor.",
            numbers="columnar-metadata",
        )
    if panels := tables.bytes_panels(columnar):
        batch = columnar.batches[0]
        yield Figure(
            name="columnar-bytes",
            svg=plots.paths(panels, f"bytes relative to {BASE_FORMAT}, same codec", row_height=0.3),
            alt=f"Bytes of each workload by format and codec, relative to {BASE_FORMAT}. "
            f"{sentences.bytes_sentence(columnar)}",
            caption=f"All bytes, payload too, in {batches_words(batch)}. Left of 1× a format takes "
            f"fewer than {BASE_FORMAT} with the same codec.",
            numbers=tables.bytes_table_name(batch),
        )


def _times_figure(columnar: Columnar, operations: Sequence[str], name: str) -> Iterator[Figure]:
    panels = tables.times_panels(columnar, operations)
    if panels:
        batches = batches_words(columnar.pictured_batch).capitalize()
        actions = {panel: sentences.ACTIONS[panel] for panel in panels}
        explained = "".join(f"{panel.capitalize()}: {action}. " for panel, action in actions.items() if action != panel)
        yield Figure(
            name=name,
            svg=plots.ratios(panels, f"CPU time relative to {BASE_FORMAT}", columnar.noise),
            alt=f"CPU time relative to {BASE_FORMAT} by workload and operation. "
            f"{sentences.cpu_sentence(columnar, operations)}",
            caption=f"{explained}{batches}, without a codec. Bars: 95 % interval of the paired ratio. "
            f"Shaded: the middle 95 % of {BASE_FORMAT} against itself.",
            numbers=name,
        )
