"""columnar, which is measured beside the proposals and takes no part among them."""

from collections.abc import Iterator

from kfbench.report import columnar, plots
from kfbench.report.results import BASE, Results
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section


def of_columnar(results: Results, prose: Prose) -> Section | Missing:
    title = "columnar: how near to the floor can a format come?"
    found = columnar.Columnar(results)
    if found.rows.empty:
        return Missing(what=title, why="columnar was not measured")
    sizes = columnar.bytes_tables(found)
    shown = (
        columnar.means_table(found),
        columnar.cpu_table(found),
        columnar.paths_table(found),
        columnar.losses_table(found),
    )
    return Section(
        name="columnar",
        short="columnar",
        title=title,
        means=columnar.sentence(found),
        prose=prose.all_of(found.blocks),
        figures=tuple(_figures(found)),
        tables=tuple(filter(None, (columnar.metadata_table(found), *sizes[:1], *shown))),
        more=tuple(sizes[1:]),
    )


def _figures(found: columnar.Columnar) -> Iterator[Figure]:
    if panels := columnar.pictured_metadata(found):
        yield Figure(
            name="columnar-metadata",
            svg=plots.paths(panels, f"metadata relative to {BASE}", row_height=0.3),
            alt=f"Metadata of each workload by format, relative to {BASE}. {columnar.metadata_sentence(found)}",
            caption="Bytes that are no key, value or header, without a codec, beside the metadata floor.",
            numbers="columnar-metadata",
        )
    if panels := columnar.pictured_bytes(found):
        yield Figure(
            name="columnar-bytes",
            svg=plots.paths(panels, f"bytes relative to {BASE}, same codec", row_height=0.3),
            alt=f"Bytes of each workload by format and codec, relative to {BASE}. {columnar.bytes_sentence(found)}",
            caption=f"All bytes, payload too. Left of 1× a format takes fewer than {BASE} with the same codec.",
            numbers=columnar.bytes_tables(found)[0].name,
        )
    if panels := columnar.pictured_cpu(found):
        yield Figure(
            name="columnar-cpu",
            svg=plots.ratios(panels, f"CPU time relative to {BASE}", found.noise),
            alt=f"CPU time relative to {BASE} by workload and operation. {columnar.cpu_sentence(found)}",
            caption=f"{columnar.of_batches(columnar.pictured_batch(found))}, no codec; metadata, lookup and record are "
            "decode-metadata, the same without the CRC, and fetch-record. Bars: 95 % interval of the paired ratio; "
            f"shaded: what {BASE} against itself shows.",
            numbers="columnar-cpu",
        )
