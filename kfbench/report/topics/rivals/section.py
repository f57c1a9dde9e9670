"""Build the sections about rivals, from the run's own rows or from those of a joined run."""

import math
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.dictionaries import at_words
from kfbench.report.data.rivals import BEST, COLUMNAR, CPU, EACH, JSON, METADATA, OPAQUE, STREAM, TOGETHER, Rivals
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Texts
from kfbench.report.topics.rivals import tables
from kfbench.report.topics.rivals.tables import BASE, MEANS
from kfbench.tables import listed, number

CHAPTER: Final = "rivals"
TYPED: Final = "parquet-shredded"
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
    if not found.batches():
        return "the run of rivals has no batches of several sizes"
    return Answer(
        means=" ".join((_lead_sentence(found), _losses_sentence(found))),
        prose=(found.origin, TERMS, *_failed_sentences(found)),
        texts=_texts(found, OPAQUE),
        figures=(
            Figure(
                name="rivals",
                svg=plots.break_even(tables.means_frame(found), BASE, "bytes"),
                alt=f"Bytes relative to {BASE} over batch size. {_lead_sentence(found)}",
                caption=f"Bytes relative to {BASE}. Rivals (grey) were tuned to be small on user-activity.",
                numbers=MEANS,
            ),
        ),
        tables=(
            tables.break_even_table(found),
            tables.means_table(found),
            tables.losses_table(found),
            tables.bytes_table(found),
            tables.failed_table(found),
        ),
        more=(tables.codecs_table(found),),
    )


def _lead_sentence(found: Rivals) -> str:
    """Say from which batch size on the tuned arms reach v2 and columnar."""
    sentences = ["Medians of the workloads, under zstd 3."]
    for base in (BASE_FORMAT, COLUMNAR):
        of = {name: each for name in found.best if (each := found.break_even(name, base))}
        reached = {name: each for name, each in of.items() if not math.isinf(each.records)}
        for i, (name, each) in enumerate(reached.items()):
            verb = f"takes as few bytes as {base}" if not i else "does"
            sentences.append(f"From {batch_words(round(each.records))} on, {name} {verb}.")
        if others := [name for name in of if name not in reached]:
            sentences.append(f"In the median workload, these do not reach {base}: {listed(others)}.")
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
        prose=(found.origin,),
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
        sentences.append(f"That is {at_words(batch)}.")
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
    """Give the batch size from which typed columns win: the tuned Parquet, with its schema and without."""
    sentences = []
    for arm in (BEST, f"{BEST} without schema"):
        for base in (BASE_FORMAT, COLUMNAR):
            each = found.break_even(TYPED, base, JSON, arm)
            if each is None:
                continue
            where = f"{TYPED} ({arm})"
            if math.isinf(each.records):
                sentences.append(f"In the median workload, {where} does not reach {base}.")
            else:
                sentences.append(f"From {batch_words(round(each.records))} on, {where} is as small as {base} (median).")
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
        prose=(
            "Each buffer is compressed alone, as Arrow's streams do.",
            "Messages that are compressed as a whole would take fewer bytes in small batches. No arm does that yet.",
        ),
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
    """Name the smallest packer at each batch size. It may be columnar itself."""
    sentences = []
    table = tables.metadata_table(found)
    for i, batch in enumerate(found.batches(METADATA), 2):
        ratios = {str(row[0]): ratio for row in reversed(table.rows) if isinstance(ratio := row[i], float)}
        if not ratios:
            continue
        name = min(ratios, key=lambda each: ratios[each])
        ratio = ratios[name]
        smallest = f"{name} is smallest" if ratio < 1 else f"{COLUMNAR} is smallest, and {name} next"
        sentences.append(f"At {batch_words(batch)}, {smallest}: {ratio:.2f} × {COLUMNAR}'s columns.")
    return " ".join([*sentences, "The best settings of packers are the smallest of several tries per column."])


def _texts(found: Rivals, kind: str) -> Texts | None:
    """Select the explanations of the sweep's blocks, if the rows are the run's own."""
    return Texts(rows=found.rows[found.rows["kind"] == kind], of="any", titled=True) if found.is_own else None
