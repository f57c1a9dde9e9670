"""What one's own log would take in other formats, codecs and batches. The answer of `kfbench what-if`.

Compressed bytes are those of our codecs at their default levels. A producer's level and library are not in its log, so
v2 with the codec that a segment has may differ from the bytes now; formats are therefore set against v2 too, codec by
codec.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig, KfbenchError
from kfbench.extras import has_extra
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.log.tail import nothing_in
from kfbench.migration.bills import Prices, Traffic
from kfbench.progress import reading
from kfbench.sources import Columns, Found, Part, find
from kfbench.sources.part import SHARE_BYTES
from kfbench.sources.tables import Table
from kfbench.sources.topic import Topic
from kfbench.sweep.host.java import java_home
from kfbench.text import counted
from kfbench.whatif.answer import Arm, Sample, WhatIf
from kfbench.whatif.break_even import break_evens, overhead_bytes
from kfbench.whatif.month import Rate, rate_of, rate_of_user
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.tally import UNIFORM, Drawn, Question, Run, Source, Tally, tally
from kfbench.whatif.topic import tallied_topic

if TYPE_CHECKING:
    from rich.console import Console

# The defaults of Kafka 4, and two steps towards fewer and larger batches.
BATCHINGS: Final = (Batching(5.0, 16 << 10), Batching(20.0, 64 << 10), Batching(100.0, 256 << 10))
RECODED: Final = ("v2", "v3")  # rebatched under codecs too, unless formats are asked for
SAMPLE_BYTES: Final = 16 << 20  # of the source, through all formats and codecs: a minute or less
LOCAL_BYTES: Final = 64 << 20  # below it Spark would take longer to start than to help
TASK_BYTES: Final = SHARE_BYTES  # of small files together


def batchings_of(lingers_ms: Sequence[float] | None, batch_sizes: Sequence[int] | None) -> tuple[Batching, ...] | None:
    """Every pair of them, Kafka 4's default where one is not given; None: nothing is. Raises InvalidConfig."""
    if not lingers_ms and not batch_sizes:
        return None
    default = BATCHINGS[0]
    pairs = product(lingers_ms or [default.linger_ms], batch_sizes or [default.batch_size_bytes])
    return tuple(dict.fromkeys(Batching(float(linger_ms), size) for linger_ms, size in pairs))


def what_if(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Topic,
    formats: Sequence[str] | None = None,
    codecs: Sequence[str] | None = None,
    *,
    columns: Columns | None = None,
    connector: str | None = None,
    batchings: Sequence[Batching] | None = None,
    sample_bytes: int | None = SAMPLE_BYTES,
    seed: int = 0,
    traffic: Traffic | None = None,
    prices: Prices | None = None,
    rate_mb_s: float | None = None,
    master: str | None = None,
    console: "Console | None" = None,
    archive: Path | None = None,
) -> WhatIf:
    """Reads segments, tables and folders of them, or a topic, and gives their bytes in every format (default: all) and
    codec.

    v2 is always there, as the one to compare with. Damage is left out and listed. columns: of tables. connector: where
    Spark takes its Kafka source from (see `topic_mapped`). batchings: other batches for the same records; tables and
    topics have none, and the first is assumed. sample_bytes: about how much of the source goes through the codecs,
    drawn by `seed`; None: all of it. rate_mb_s: 10**6 bytes a second as they lie now, of plain v2 where the source has
    no batches; None: the timestamps tell. master: a Spark master; None: threads of this process for what is small or
    without the extra `sweep`, else all cores of this machine. archive: the environment of a cluster's executors (see
    packing).
    Raises KfbenchError for a path that is not there, and when nothing can be read; InvalidConfig and
    IllegalCombination for what cannot be asked; MissingTool (MissingExtra) and SweepFailed of Spark.
    """
    names = _known(formats, FORMATS, "format")
    arms, illegal = _arms(
        names if BASE_FORMAT in names else [*names, BASE_FORMAT], _known(codecs, CODECS, "codec"), formats
    )
    rate = None if rate_mb_s is None else rate_of_user(rate_mb_s)
    given = tuple(BATCHINGS if batchings is None else batchings)
    if sample_bytes is not None and sample_bytes < 1:
        raise InvalidConfig(f"sample_bytes: {sample_bytes} is below 1")

    def question_for(parts: Sequence[Part]) -> Question:
        size_bytes = sum(part.size_bytes for part in parts)
        if sample_bytes is not None and any(part.size_bytes < 0 for part in parts):
            raise InvalidConfig(
                f"{parts[0].topic}: the broker does not say how large it is: all of it has to be asked for"
            )
        return Question(
            arms=tuple(arms),
            batchings=given,
            recoded=tuple(name for name in dict.fromkeys((*(formats or RECODED), BASE_FORMAT))),
            assumed=given[0] if batchings else None,
            share=1.0 if sample_bytes is None else min(sample_bytes / max(size_bytes, 1), 1.0),
            seed=seed,
            always=min((_draw(part, seed), part.key) for part in parts)[1],
        )

    if isinstance(paths, Topic):
        _check_batchings(paths.name, batchings)
        found, question, sums = tallied_topic(paths, question_for, connector, master, console, archive)
    else:
        found = find([paths] if isinstance(paths, str | os.PathLike) else paths, columns)
        tables = [part for part in found.parts if isinstance(part, Table)]
        if tables:
            _check_batchings(tables[0].path, batchings)
        elif columns and columns.names:
            raise InvalidConfig(f"column `{columns.names[0]}`: no source is a table")
        question = question_for(found.parts)
        sums = tallied(found.parts, question, master, console, archive)
    if not sums.breakdown or not any(source.batches for source in sums.sources):
        raise KfbenchError(_unreadable(sums.sources))
    told = answer(sums, found, question, illegal, rate, traffic or Traffic(), prices or Prices())
    has_tables = any(isinstance(part, Table) for part in found.parts)
    return replace(told, columns=columns or Columns()) if has_tables else told


def _check_batchings(source: str, batchings: Sequence[Batching] | None) -> None:
    if not batchings:
        raise InvalidConfig(
            f"{source}: has no batches: say which a producer would make, by --linger-ms and --batch-size (batchings)"
        )


def tallied(
    parts: Sequence[Part],
    question: Question,
    master: str | None = None,
    console: "Console | None" = None,
    archive: Path | None = None,
) -> Tally:
    """The tally of all parts, its sources in their order: the same whoever works it out."""
    size_bytes = sum(part.size_bytes for part in parts)
    is_small = size_bytes < LOCAL_BYTES or len(parts) == 1
    if master is None and (is_small or not has_extra("sweep") or java_home() is None):
        if console is not None and size_bytes:  # a command: whoever calls this from Python may not expect processes
            from kfbench.whatif.compiling import compile_for_what_if

            compile_for_what_if(question.formats, console)
        pools = ThreadPoolExecutor(os.cpu_count())  # codecs and kernels do not hold the interpreter
        with pools as pool, reading(size_bytes, "read", console) as advance:
            found = _tallied(parts, question, pool.map, advance)
    else:
        from kfbench.sweep.spark.tasks import mapped

        tallies = mapped(partial(_tallied, question=question), _grouped(parts), "what-if", master, console, archive)
        found = sum(tallies, Tally())
    order = {part.name: i for i, part in enumerate(parts)}
    sources = tuple(sorted(found.sources, key=lambda source: order[source.path]))
    return replace(found, sources=sources).by_file()


def _tallied(
    parts: Sequence[Part], question: Question, run: Run = map, advance: Callable[[int], None] = lambda _: None
) -> Tally:
    return sum((tally(part, question, run, advance) for part in parts), Tally())


def _grouped(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts in tasks of about TASK_BYTES, the largest first."""
    tasks: list[list[Part]] = []
    held = TASK_BYTES
    for part in sorted(parts, key=lambda part: part.size_bytes, reverse=True):
        if held >= TASK_BYTES:
            tasks.append([])
            held = 0
        tasks[-1].append(part)
        held += part.size_bytes
    return tasks


def _draw(part: Part, seed: int) -> bytes:
    """Empty parts come last: something is drawn."""
    return bytes([not part.size_bytes]) + blake2b(f"{seed}/{part.key}".encode(), digest_size=8).digest()


def answer(
    sums: Tally,
    found: Found,
    question: Question,
    illegal: Sequence[tuple[str, str]],
    rate: Rate | None,
    traffic: Traffic,
    prices: Prices,
) -> WhatIf:
    """What the sums of all parts say."""
    sizes, names = sums.sizes(), question.formats
    levels = [level for level in UNIFORM if sums.uniform_records[level]]
    assumed = question.assumed if any(source.is_assumed for source in sums.sources) else None
    return WhatIf(
        sources=sums.sources,
        skipped=found.skipped,
        arms=tuple(_arm(name, codec, sizes[name], sums.coded.get((name, codec))) for name, codec in question.arms),
        rebatched=tuple(_rebatched(sums, question)),
        breakdown={name: _of(sums.breakdown, name) for name in names},
        losses={name: _of(sums.losses, name) for name in names},
        illegal=tuple(illegal),
        break_even=tuple(break_evens(sums, names)),
        overhead={
            level: {name: overhead_bytes(sums, level, name) / sums.uniform_records[level] for name in names}
            for level in levels
        },
        sample=_sample(sums, question, sizes[BASE_FORMAT]),
        assumed=assumed,
        sent_records=sums.sent_records,
        uniform_records=sums.uniform_records[1],
        rate=rate or rate_of(sums.sources, sums.times),
        traffic=traffic,
        prices=prices,
    )


def _known(asked: Sequence[str] | None, there: Mapping[str, object], noun: str) -> list[str]:
    if unknown := [name for name in asked or () if name not in there]:
        raise InvalidConfig(f"no {noun} {unknown[0]!r} ({noun}s: {', '.join(there)})")
    return list(dict.fromkeys(there if asked is None else asked))


Pairs = list[tuple[str, str]]


def _arms(names: list[str], codecs: list[str], asked: Sequence[str] | None) -> tuple[Pairs, Pairs]:
    """The pairs that Kafka allows, and the others. Raises IllegalCombination for a format with none of the codecs."""
    legal = {name: FORMATS[name].capabilities.codecs for name in names}
    for name in asked or ():
        if not set(codecs) & set(legal[name]):
            raise IllegalCombination(f"{name} has no {' or '.join(codecs)} (codecs: {', '.join(legal[name])})")
    pairs = list(product(names, codecs))
    return [(n, c) for n, c in pairs if c in legal[n]], [(n, c) for n, c in pairs if c not in legal[n]]


def _of(sums: Counter[tuple[str, str]], name: str) -> dict[str, int]:
    return {part: number for (owner, part), number in sums.items() if owner == name}


def _arm(
    name: str,
    codec: str,
    plain_bytes: int,
    drawn: Drawn | None,
    batching: Batching | None = None,
    batches: int | None = None,
) -> Arm:
    size_bytes, error_bytes = (plain_bytes, 0) if codec == "none" else (drawn or Drawn()).estimate(plain_bytes)
    known = CODECS[codec]
    return Arm(
        format=name,
        codec=codec,
        level=known.default_level,
        codec_version=known.version,
        size_bytes=size_bytes,
        error_bytes=error_bytes,
        batching=batching,
        batches=batches,
    )


def _rebatched(sums: Tally, question: Question) -> Iterator[Arm]:
    """Every format without a codec, those of `recoded` with each; control batches stay as they are."""
    for batching, (name, codec) in product(question.batchings, question.arms):
        if codec != "none" and name not in question.recoded:
            continue
        plain_bytes, batches = sums.rebatched[batching, name], sums.rebatched_batches[batching]
        arm = _arm(name, codec, plain_bytes, sums.recoded.get((batching, name, codec)), batching, batches)
        yield replace(arm, size_bytes=None if arm.size_bytes is None else arm.size_bytes + sums.control[name])


def _sample(sums: Tally, question: Question, of_bytes: int) -> Sample | None:
    drawn = [each for (name, _), each in sums.coded.items() if name == BASE_FORMAT]
    if not question.coded:
        return None
    return Sample(
        share=question.share,
        seed=question.seed,
        plain_bytes=drawn[0].plain if drawn else 0,
        of_bytes=of_bytes,
        stretches=drawn[0].stretches if drawn else 0,
    )


def _unreadable(sources: Sequence[Source]) -> str:
    first = sources[0]
    if first.unreadable:
        why = first.unreadable
    elif first.damage:
        what = "batch" if first.unit == "byte" else "row"
        why = f"no {what} can be read: {first.damage[0].words(first.unit)}"
    elif first.unit == "offset":
        why = "no record between these offsets"
    elif first.unit != "byte":
        why = "no row in it"
    else:
        why = nothing_in(first.size_bytes)
    others = f" (and nothing in {counted(len(sources) - 1, 'other file')})" if len(sources) > 1 else ""
    return f"{first.path}: {why}{others}"
