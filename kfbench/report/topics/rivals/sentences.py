"""Sentences about rivals: the answers of the chapter."""

import math
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.dictionaries import at_words
from kfbench.report.data.rivals import CODEC, COLUMNAR, EACH, Rivals
from kfbench.report.data.words import batch_words, percent, span
from kfbench.tables import listed, number

OTHER_CODECS: Final = ("lz4", "none")


def lead_sentence(found: Rivals) -> str:
    """Say from which batch size on the tuned arms reach v2 and columnar."""
    sentences = ["Medians of the workloads, under zstd 3."]
    for base in (BASE_FORMAT, COLUMNAR):
        of = {name: each for name in found.best if (each := found.break_even(name, base))}
        reached = {name: each for name, each in of.items() if not math.isinf(each.records)}
        for i, (name, each) in enumerate(sorted(reached.items(), key=lambda item: item[1].records)):
            verb = f"takes as few bytes as {base}" if not i else "does"
            sentences.append(f"From {batch_words(round(each.records))} on, {name} {verb}.")
        if others := [name for name in of if name not in reached]:
            sentences.append(f"In the median workload, these do not reach {base}: {listed(others)}.")
    return " ".join(sentences)


def losses_sentence(found: Rivals) -> str:
    losses = found.losses()
    where = number(len({loss.workload for loss in losses}))
    others = listed([f"{len(found.losses(codec))} under {codec}" for codec in OTHER_CODECS])
    return (
        f"In {len(losses)} of {found.compared} sets of batches, some rival takes fewer bytes than {COLUMNAR}. "
        f"They are of {where} workloads. With the same other codec on both sides: {others}."
    )


def failed_sentences(found: Rivals) -> tuple[str, ...]:
    """Name the arms whose rows failed, and those without any number. A table has the reasons."""
    told = []
    if not found.failed.empty:
        names = sorted(set(found.failed["format"]))
        told.append(f"{number(len(found.failed))} rows failed, of {listed(names)}. A table below has the errors.")
    if found.unmeasured:
        told.append(f"This run did not measure {listed([*found.unmeasured])}. A table below has the reasons.")
    return tuple(told)


def cpu_sentence(found: Rivals) -> str:
    """Compare columnar and the smallest arms of rivals with v2, all called once per batch."""
    batch, sentences = found.quoted_batch, list[str]()
    for operation in ("encode", "decode"):
        ratios = {name: found.mean_time(batch, CODEC, name, EACH, operation) for name in (COLUMNAR, *found.best)}
        if parts := [f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio]:
            sentences.append(f"{operation.capitalize()}: {listed(parts)}.")
    if sentences:
        count = number(len(found.timed_workloads(batch)))
        sentences.insert(0, f"CPU time under {CODEC} {at_words(batch)}, {BASE_FORMAT} = 1, mean of {count} workloads.")
    if noise := found.noise:
        sentences.append(f"The middle 95 % of {BASE_FORMAT} against itself is {span(noise)} × (A/A).")
    return " ".join(sentences)


def card(found: Rivals) -> tuple[str, str] | None:
    """Return a number for the front page, and what it is of: Parquet's bytes in the smallest batches."""
    name, batch = "parquet-best", next(iter(found.batches), None)
    mean = found.mean(batch, name) if batch else None
    if batch is None or mean is None:
        return None
    where = f"{batch_words(batch)}, {CODEC} 3, mean of {len(found.workloads())} workloads"
    return percent(mean - 1), f"{name} against {BASE_FORMAT}: {where}"
