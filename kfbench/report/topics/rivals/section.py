"""Build the sections about rivals, from the run's own rows or from those of a joined run."""

from typing import Final

from kfbench.report.data.joined import RIVALS
from kfbench.report.data.rivals import CPU, Rivals
from kfbench.report.data.views import Views
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Texts
from kfbench.report.topics.rivals import sentences, tables
from kfbench.report.topics.rivals.tables import BASE, MEANS

CHAPTER: Final = "rivals"
MISSING: Final = "no stored run of the profile rivals; measure it with: kfbench sweep rivals"
TERMS: Final = (
    "Each container stands behind v2's batch header, in the place of v2's records. It carries what they carry, as "
    "opaque bytes: offset and timestamp deltas, keys, values, and headers in their order. Each batch is read back and "
    "compared before it counts."
)


def bytes_answer(run: Views) -> Answer | str:
    found = run.rivals
    if found is None or not found.arms:
        return MISSING
    if not found.batches:
        return "the run of rivals has no batches of several sizes"
    return Answer(
        means=" ".join((sentences.lead_sentence(found), sentences.losses_sentence(found))),
        prose=(found.origin, TERMS, *sentences.failed_sentences(found)),
        texts=_texts(found, RIVALS),
        figures=(
            Figure(
                name="rivals",
                svg=plots.break_even(tables.means_frame(found), BASE, "bytes"),
                alt=f"Bytes relative to {BASE} over batch size. {sentences.lead_sentence(found)}",
                caption=f"Bytes relative to {BASE}. Rivals (grey) have the smallest settings that we found.",
                numbers=MEANS,
            ),
        ),
        tables=(
            tables.break_even_table(found),
            tables.means_table(found),
            tables.losses_table(found),
            tables.own_table(found),
            tables.bytes_table(found),
            tables.failed_table(found),
        ),
        more=(tables.codecs_table(found),),
    )


def cpu_answer(run: Views) -> Answer | str:
    found = run.rivals
    if found is None or not found.times:
        return MISSING
    codecs = list(dict.fromkeys(key.codec for key in found.times))
    return Answer(
        means=sentences.cpu_sentence(found),
        prose=(found.origin,),
        texts=_texts(found, CPU),
        tables=tuple(tables.cpu_table(found, codec) for codec in reversed(codecs)),
        more=(tables.memory_table(found),),
    )


def _texts(found: Rivals, kind: str) -> Texts | None:
    """Select the explanations of the sweep's blocks, if the rows are the run's own."""
    return Texts(rows=found.rows[found.rows["kind"] == kind], of="any", titled=True) if found.is_own else None
