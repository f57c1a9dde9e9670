"""Build the sections about rivals, from the run's own rows or from those of a joined run."""

import math
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.rivals import COLUMNAR, CPU, EACH, JSON, METADATA, OPAQUE, STREAM, TOGETHER, Rivals
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Texts
from kfbench.report.topics.rivals import tables
from kfbench.report.topics.rivals.tables import BASE, MEANS
from kfbench.tables import listed, number

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
    return Answer(
        means=" ".join((_lead_sentence(found), _losses_sentence(found))),
        prose=(found.origin, TERMS, *_failed_sentences(found)),
        texts=_texts(found, OPAQUE),
        figures=(
            Figure(
                name="rivals",
                svg=plots.break_even(tables.means_frame(found), BASE, "bytes"),
                alt=f"Bytes relative to {BASE} over batch size. {_lead_sentence(found)}",
                caption=f"Bytes relative to {BASE}. Rivals (grey) have the smallest settings that we found.",
                numbers=MEANS,
            ),
        ),
        tables=(tables.break_even_table(found), tables.means_table(found), tables.bytes_table(found)),
        more=(tables.losses_table(found), tables.codecs_table(found), tables.failed_table(found)),
    )


def _lead_sentence(found: Rivals) -> str:
    """Say from which batch size on the containers reach v2 and columnar."""
    sentences: list[str] = []
    for base in (BASE_FORMAT, COLUMNAR):
        of = {name: each for name in found.best if (each := found.break_even(name, base))}
        reached = {name: each for name, each in of.items() if not math.isinf(each.records)}
        for i, (name, each) in enumerate(reached.items()):
            at = batch_words(round(each.records))
            verb = f"takes as few bytes as {base}" if not i else "does"
            where = " under zstd 3 (median workload)" if not sentences else ""
            sentences.append(f"From {at} on, {name} {verb}{where}.")
        if never := [name for name in of if name not in reached]:
            sentences.append(f"As few bytes as {base}, never: {listed(never)}.")
    return " ".join(sentences)


def _losses_sentence(found: Rivals) -> str:
    where = sorted({loss.workload for loss in found.losses})
    return (
        f"In {len(found.losses)} of {found.compared} sets of batches, some rival takes fewer bytes than {COLUMNAR}. "
        f"They are of {number(len(where))} workloads."
    )


def _failed_sentences(found: Rivals) -> tuple[str, ...]:
    if found.failed.empty:
        return ()
    names = sorted(set(found.failed["format"]))
    return (f"{number(len(found.failed))} rows failed, of {listed(names)}. A table below has the errors.",)


def cpu_answer(run: Views) -> Answer | str:
    found = run.rivals
    if found is None or not found.times:
        return MISSING
    codecs = list(dict.fromkeys(key.codec for key in found.times))
    return Answer(
        means=_cpu_sentence(found),
        texts=_texts(found, CPU),
        tables=tuple(tables.cpu_table(found, codec) for codec in reversed(codecs)),
        more=(tables.memory_table(found),),
    )


def _cpu_sentence(found: Rivals) -> str:
    """Compare the smallest arms of rivals with v2, all batches a call, at the largest batches."""
    batch = max(key.batch for key in found.times)
    sentences: list[str] = []
    for operation in ("encode", "decode"):
        base = found.mean_time(batch, "zstd", BASE_FORMAT, TOGETHER, operation)
        ratios = {name: found.mean_time(batch, "zstd", name, EACH, operation) for name in found.best}
        parts = [f"{name} {ratio / base:.1f}" for name, ratio in ratios.items() if base and ratio]
        if parts:
            sentences.append(f"CPU time to {operation} under zstd, {BASE_FORMAT} = 1: {listed(parts)}.")
    if sentences:
        sentences.append(f"That is at {batch_words(batch)}.")
    if noise := found.noise:
        sentences.append(f"The middle 95 % of {BASE_FORMAT} against itself is {span(noise)} × (A/A).")
    return " ".join(sentences)


def schema_answer(run: Views) -> Answer | str:
    found = run.rivals
    if found is None or not found.batches(JSON):
        return MISSING
    return Answer(
        means=_schema_sentence(found),
        texts=_texts(found, JSON),
        tables=(tables.schema_table(found), tables.schema_break_even_table(found)),
    )


def _schema_sentence(found: Rivals) -> str:
    """Give the batch size from which typed columns win, for the earliest arm."""
    arms = [(name, arm) for name, arm in tables.arms(found, JSON) if arm]
    sentences = []
    for base in (BASE_FORMAT, COLUMNAR):
        of = [(found.break_even(name, base, JSON, arm), name) for name, arm in arms]
        best = min(((each, name) for each, name in of if each), key=lambda pair: pair[0].records, default=None)
        if best is None:
            continue
        each, name = best
        if math.isinf(each.records):
            sentences.append(f"In most workloads with JSON, no typed columns are as small as {base}.")
        else:
            at = batch_words(round(each.records))
            sentences.append(f"Typed columns are as small as {base} from {at} on ({name}, median).")
    return " ".join(sentences)


def state_answer(run: Views) -> Answer | str:
    found = run.rivals
    if found is None or not found.batches(STREAM):
        return MISSING
    batch = found.batches(STREAM)[0]
    ratios = [
        ratio for name, arm in tables.arms(found, STREAM) if arm if (ratio := found.mean(STREAM, batch, name, arm=arm))
    ]
    least = f"At {batch_words(batch)}, the stream takes {min(ratios):.2f} × the bytes of {BASE}." if ratios else ""
    return Answer(
        means=f"{least} A consumer that starts in the middle cannot read it, and no batch can be dropped.".strip(),
        texts=_texts(found, STREAM),
        tables=(tables.state_table(found),),
    )


def metadata_answer(run: Views) -> Answer | str:
    found = run.rivals
    if found is None or not found.batches(METADATA):
        return MISSING
    return Answer(
        means=_metadata_sentence(found), texts=_texts(found, METADATA), tables=(tables.metadata_table(found),)
    )


def _metadata_sentence(found: Rivals) -> str:
    sentences = []
    table = tables.metadata_table(found)
    batches = found.batches(METADATA)
    for i, batch in enumerate(batches, 2):
        ratios = [(row[i], row[0]) for row in table.rows if isinstance(row[i], float)]
        if ratios:
            ratio, name = min(ratios)
            sentences.append(f"At {batch_words(batch)}, {name} is smallest: {ratio:.2f} × {COLUMNAR}'s columns.")
    return " ".join(sentences)


def _texts(found: Rivals, kind: str) -> Texts | None:
    """Select the explanations of the sweep's blocks, if the rows are the run's own."""
    return Texts(rows=found.rows[found.rows["kind"] == kind], of="any", titled=True) if found.is_own else None
