"""Compile the kernels that `kfbench what-if` needs, in other processes, while it answers with what is ready."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from kfbench.arrays import Int64
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.kernels import CACHE_FOLDER, COMPILED
from kfbench.kernels.jit import are_stored, before_compiling
from kfbench.progress import say
from kfbench.records import Records
from kfbench.sources import find
from kfbench.whatif.rebatch import BATCHINGS, Rebatcher, sent_records
from kfbench.whatif.record_times import TimeReader

if TYPE_CHECKING:
    from kfbench.sweep.host.compiling import Call

# The marks of `compile_choice` and `compile_reading`. Those of `compile_sizes` are names of formats.
SIZES: Final = "sizes"
READING: Final = "reading"
FOR_THE_NEXT: Final = "compiling kernels for the next call (Ctrl-C: stop)"

Names = tuple[str, ...]
Wait = Callable[[bool], None]


@contextmanager
def compiling_behind(
    formats: Collection[str], console: Console, sized: Collection[str] = (), has_headers: bool = False, nice: int = 0
) -> Iterator[Wait | None]:
    """Compile the kernels that `kfbench what-if` needs for these formats, in other processes.

    Yield a function that waits for them and shows their progress, or None if all kernels were compiled before. With
    True it waits only for those of the base format. At the end, wait for all: the next call needs them. Ctrl-C ends
    this.

    Args:
        formats: the formats of the what-if.
        sized: further formats, for which only the size of batches is computed.
        has_headers: True for records with headers. Few logs have them, and they double the time.
        nice: see `Compilation`.
    """
    calls = calls_for(formats, sized, has_headers)
    if not calls:
        yield None
        return
    from kfbench.sweep.host.compiling import Compilation  # slow to import

    with Compilation(calls, nice) as compilation:
        of_base = sum(function is compile_reading or BASE_FORMAT in names for function, (names, _) in calls)

        def wait(only_base: bool) -> None:
            compilation.wait(console, first=of_base if only_base else None)

        yield wait
        with suppress(KeyboardInterrupt):
            compilation.wait(console, FOR_THE_NEXT)


def calls_for(formats: Collection[str], sized: Collection[str] = (), has_headers: bool = False) -> "list[Call]":
    """Return the calls that compile what is not compiled yet, those of the base format first."""
    left = [name for name in FORMATS if name in formats and not _mark(name, has_headers).exists()]
    only_sized = tuple(name for name in sized if name not in formats and not _mark(name, has_headers).exists())
    is_sized = not only_sized or _mark(SIZES, has_headers).exists()
    is_read = BASE_FORMAT not in formats or _mark(READING, has_headers).exists()
    if (not left and is_sized and is_read) or not COMPILED or not are_stored():
        return []
    from kfbench.sweep.host.compiling import CODECS, by_family

    groups: list[Names] = [(BASE_FORMAT,)] if BASE_FORMAT in left else []
    groups += by_family(name for name in left if name != BASE_FORMAT)
    calls: list[Call] = [(compile_sizes, (names, has_headers)) for names in groups]
    if not is_read:
        logs = [bytes(FORMATS[BASE_FORMAT].encode(*_sample(has_headers), codec)) for codec in CODECS]
        calls.insert(0, (compile_reading, (logs, has_headers)))
    return calls if is_sized else [*calls, (compile_choice, (only_sized, has_headers))]


def announce_compiling(console: Console | None) -> AbstractContextManager[None]:
    """Print a line before kernels are compiled that `compiling_behind` leaves out, such as those for headers."""
    if console is None:
        return nullcontext()
    return before_compiling(partial(say, console, "compiling kernels for these records, once"))


def _mark(name: str, has_headers: bool) -> Path:
    return CACHE_FOLDER / f"compiled-what-if-{name}{'-headers' * has_headers}"


def _note_compiled(name: str, has_headers: bool) -> None:
    with suppress(OSError):  # without the mark the next call only loads the compiled kernels
        if are_stored():
            _mark(name, has_headers).touch()


def _sample(has_headers: bool) -> tuple[Records, Int64]:
    from kfbench.sweep.host.compiling import sample_records

    plain, with_headers, bounds = sample_records()
    return with_headers if has_headers else plain, bounds


def compile_choice(asked: tuple[Names, bool]) -> None:
    """Compile the kernels that compute the size of batches in these formats, with or without headers."""
    names, has_headers = asked
    for name in names:
        FORMATS[name].size(*_sample(has_headers))
    _note_compiled(SIZES, has_headers)


def compile_sizes(asked: tuple[Names, bool]) -> None:
    """Compile the kernels that compute the size of a log in these formats: sizes, bytes by field, and encoding."""
    names, has_headers = asked
    sample = _sample(has_headers)
    for name in names:
        fmt = FORMATS[name]
        fmt.size(*sample)
        fmt.breakdown(*sample)
        fmt.encode(*sample, "gzip", lossy=True)
        _note_compiled(name, has_headers)


def compile_reading(asked: tuple[Sequence[bytes], bool]) -> None:
    """Compile the kernels that read these logs, and put their records into other batches."""
    logs, has_headers = asked
    try:
        where = tempfile.gettempdir()
    except FileNotFoundError:  # there is no folder for temporary files
        where = str(CACHE_FOLDER)
    with tempfile.TemporaryDirectory(dir=where) as folder:
        for number, log in enumerate(logs):
            Path(folder, f"{number}.log").write_bytes(log)
        for part in find([folder]).parts:
            for chunk in part.chunks():
                of_clients = sent_records(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
                of_clients = TimeReader().read(of_clients, chunk.is_ms)
                list(Rebatcher(BATCHINGS[0]).add(of_clients, last=True))
    _note_compiled(READING, has_headers)
