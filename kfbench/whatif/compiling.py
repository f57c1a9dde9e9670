"""Compile the kernels that `kfbench what-if` needs, before it reads a log."""

import tempfile
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

from rich.console import Console

from kfbench.formats import BASE_FORMAT, FORMATS, RESEARCH
from kfbench.kernels import CACHE_FOLDER, COMPILED
from kfbench.kernels.jit import before_compiling
from kfbench.progress import say
from kfbench.sources import find
from kfbench.whatif.question import Question
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.tally import tally

Names = tuple[str, ...]


def compile_for_what_if(formats: Collection[str], console: Console, sized: Collection[str] = ()) -> None:
    """Compile the kernels that `kfbench what-if` needs for these formats. Skip those compiled before.

    A terminal shows a progress bar, other outputs one line.

    Args:
        formats: the formats of the what-if. The base format is added.
        sized: further formats, for which only the size of batches is computed.
    """
    wanted = {BASE_FORMAT, *formats}
    left = [name for name in FORMATS if name in wanted and not _mark(name).exists()]
    only_sized = tuple(name for name in sized if name not in wanted)
    if not left or not COMPILED:
        return
    from kfbench.sweep.host.compiling import Call, by_family, compile_in_processes  # slow to import

    families = by_family(left)
    slow = [names for names in families if len(names) > 2 or RESEARCH & {*names}]
    others = tuple(name for names in families if names not in slow for name in names)
    calls: list[Call] = [
        (compile_what_if if BASE_FORMAT in names else compile_sizes, names) for names in (*slow, others) if names
    ]
    if only_sized:
        calls.append((compile_choice, only_sized))
    for (function, names), is_done in compile_in_processes(calls, console):
        for name in names if is_done and function is not compile_choice else ():
            with suppress(OSError):  # without the mark the next call only loads the compiled kernels
                _mark(name).touch()


def announce_compiling(console: Console | None) -> AbstractContextManager[None]:
    """Print a line before kernels are compiled that `compile_for_what_if` leaves out, such as those for headers."""
    if console is None:
        return nullcontext()
    return before_compiling(partial(say, console, "compiling kernels for these records, once"))


def _mark(name: str) -> Path:
    return CACHE_FOLDER / f"compiled-what-if-{name}"


def compile_choice(names: Names) -> None:
    """Compile the kernels that compute the size of batches in these formats."""
    from kfbench.sweep.host.compiling import sample_records

    plain, _, bounds = sample_records()
    for name in names:
        FORMATS[name].size(plain, bounds)


def compile_sizes(names: Names) -> None:
    """Compile the kernels that compute the size of a log in these formats: sizes, bytes by field, and encoding."""
    from kfbench.sweep.host.compiling import sample_records

    plain, _, bounds = sample_records()  # without headers: few logs have them, and they double the time
    for name in names:
        fmt = FORMATS[name]
        fmt.size(plain, bounds)
        fmt.breakdown(plain, bounds)
        fmt.encode(plain, bounds, "gzip", lossy=True)


def compile_what_if(names: Names) -> None:
    """Compile the kernels that read a log of the base format and change its batches, then those of `compile_sizes`."""
    from kfbench.sweep.host.compiling import CODECS, sample_records

    plain, _, bounds = sample_records()
    question = Question(
        arms=tuple((BASE_FORMAT, codec) for codec in CODECS),
        batchings=(Batching(5.0, 16 << 10),),
        compressed_formats=(BASE_FORMAT,),
        share=1.0,
    )
    with tempfile.TemporaryDirectory(dir=CACHE_FOLDER) as folder:
        for codec in CODECS:
            path = Path(folder, f"{codec}.log")
            path.write_bytes(bytes(FORMATS[BASE_FORMAT].encode(plain, bounds, codec)))
            for part in find([path]).parts:
                tally(part, question)
    compile_sizes(names)
