"""Tally all parts of a source: in threads of this process, or in Spark tasks."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kfbench.extras import has_extra
from kfbench.progress import reading
from kfbench.sources import Part
from kfbench.sources.part import SHARE_BYTES
from kfbench.sweep.host.java import java_home
from kfbench.whatif.question import Question
from kfbench.whatif.tally import Run, Tally, tally

if TYPE_CHECKING:
    from rich.console import Console

LOCAL_BYTES: Final = 64 << 20  # below it Spark would take longer to start than to help
TASK_BYTES: Final = SHARE_BYTES  # of small files together


def tally_all(
    parts: Sequence[Part],
    question: Question,
    master: str | None = None,
    console: "Console | None" = None,
    archive: Path | None = None,
) -> Tally:
    """Return the tally of all parts, with its sources in the order of the parts. It is the same for every worker."""
    size_bytes = sum(part.size_bytes for part in parts)
    is_small = size_bytes < LOCAL_BYTES or len(parts) == 1
    if master is None and (is_small or not has_extra("sweep") or java_home() is None):
        if console is not None and size_bytes:  # a command; a caller from Python may not expect processes
            from kfbench.whatif.compiling import compile_for_what_if

            compile_for_what_if(question.formats, console)
        pools = ThreadPoolExecutor(os.cpu_count())  # codecs and kernels release the GIL
        with pools as pool, reading(size_bytes, "read", console) as advance:
            sums = _tally_parts(parts, question, pool.map, advance)
    else:
        from kfbench.sweep.spark.tasks import mapped

        work = partial(_tally_parts, question=question)
        sums = sum(mapped(work, _tasks(parts), "what-if", master, console, archive), Tally())
    order = {part.name: i for i, part in enumerate(parts)}
    sources = tuple(sorted(sums.sources, key=lambda source: order[source.path]))
    return replace(sums, sources=sources).by_file()


def _tally_parts(
    parts: Sequence[Part], question: Question, run: Run = map, advance: Callable[[int], None] = lambda _: None
) -> Tally:
    return sum((tally(part, question, run, advance) for part in parts), Tally())


def _tasks(parts: Sequence[Part]) -> list[list[Part]]:
    """Group parts into tasks of about TASK_BYTES, the largest first."""
    tasks: list[list[Part]] = []
    task_bytes = TASK_BYTES
    for part in sorted(parts, key=lambda part: part.size_bytes, reverse=True):
        if task_bytes >= TASK_BYTES:
            tasks.append([])
            task_bytes = 0
        tasks[-1].append(part)
        task_bytes += part.size_bytes
    return tasks
