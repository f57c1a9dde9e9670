"""A whole segment file in a newer format: KIP-724's `log.record.version.force.upgrade`, at start-up, after recovery.

The new segment is written beside the old one and takes its name at once, so that whenever the process dies, or the
machine, one of the two is whole:

1. NAME.log.upgrade is written piece by piece and reaches the disk; it has the old file's mode, owner and time, by which
   a broker keeps segments whose records have none;
2. NAME.index and NAME.timeindex go, which hold positions in the old bytes. A broker that misses an index rebuilds them
   all (`LogSegment.sanityCheck`, `recover`). NAME.txnindex holds offsets alone and stays;
3. the new file takes the old one's name.

What is left of an attempt that was killed is removed by the next. An incomplete last batch, which a reader takes for
the end of the log, is refused here: a length that was damaged looks the same, and the rest of the segment would be lost
behind it. Recovery cuts it off. Under another hard link the old segment stays.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kfbench.arrays import Bytes
from kfbench.broker.convert import Conversion
from kfbench.broker.source import find
from kfbench.broker.work import Work
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog, IllegalCombination, KfbenchError, Refused, WouldLose
from kfbench.formats import Format
from kfbench.limits import Limits
from kfbench.log.pieces import PIECE_BYTES, Piece, pieces

SUFFIX: Final = ".upgrade"  # none of those that a broker acts on at start-up
SEGMENT: Final = ".log"
INDEXES: Final = (".index", ".timeindex")  # in this order: without the first a broker rebuilds all
MOST_BYTES: Final = 2**31 - 1  # positions in a segment are int32 (`FileRecords`)


@dataclass(frozen=True, kw_only=True)
class Upgraded:
    """before_bytes and after_bytes: of the file. replaced: False where there was nothing to convert.

    converted_records: as in `Converted`.
    """

    path: str
    before_bytes: int
    after_bytes: int
    converted_records: int
    replaced: bool
    work: Work


def upgrade(
    path: str | os.PathLike[str],
    to: Format | str = "v2",
    *,
    codec: str | None = None,
    level: int | None = None,
    lossy: bool = False,
    chunk_bytes: int = PIECE_BYTES,
    limits: Limits | None = None,
) -> Upgraded:
    """Writes the segment anew, every batch in the format `to`, as `convert` does; memory is bounded by `chunk_bytes`.

    Batches that have the format already are read too, and copied. Where this is refused the segment is as it was.
    Raises CorruptLog and Refused with the file and the byte, WouldLose, IllegalCombination, and KfbenchError where the
    file cannot be read or written, another upgrade has it, or it would outgrow what a broker can read.
    """
    target = find(to)
    if not target.is_told_by_magic:
        raise IllegalCombination(f"{target.name}: nothing in a segment of this format would tell it")
    name = os.path.realpath(path)
    conversion = Conversion(to=target, codec=codec, level=level, lossy=lossy, check=True)
    try:
        with _held(name) as segment:
            _remove(name + SUFFIX)
            try:
                return _upgraded(name, segment, conversion, chunk_bytes, limits)
            except BaseException:
                _remove(name + SUFFIX)
                raise
    except CorruptLog as error:
        raise CorruptLog(error.position, error.field, error.promise, name) from None
    except Refused as error:
        raise Refused(error.error, error.position, error.promise, name) from None
    except WouldLose as error:
        raise WouldLose(f"{name}: {error}") from None
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else name
        raise KfbenchError(f"{where}: {error.strerror}") from None


@contextmanager
def _held(name: str) -> Iterator[int]:
    """The segment, open and locked against another upgrade until this one ends, however it ends."""
    segment = os.open(name, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer would block
    try:
        if not stat.S_ISREG(os.fstat(segment).st_mode):
            raise KfbenchError(f"{name}: is no regular file")
        try:
            fcntl.flock(segment, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KfbenchError(f"{name}: another upgrade is at work on it") from None
        if not os.path.samestat(os.fstat(segment), Path(name).stat()):
            raise KfbenchError(f"{name}: was replaced by another upgrade")
        yield segment
    finally:
        os.close(segment)


def _upgraded(name: str, segment: int, conversion: Conversion, chunk_bytes: int, limits: Limits | None) -> Upgraded:
    before = os.fstat(segment)
    allowance = Allowance.of(before.st_size, limits)
    out, after_bytes, records, work = -1, 0, 0, Work()
    try:
        for piece in pieces(segment, chunk_bytes):
            if piece.trailing_bytes:
                raise CorruptLog(*_tail(piece))
            for made in conversion.of(piece.data, piece.positions, piece.magics, allowance, piece.at):
                if out < 0 and not made.work.untouched:
                    out = os.open(name + SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                    _copy(name, segment, out, after_bytes)  # so far nothing has changed
                records, work = records + made.converted_records, work + made.work
                after_bytes += len(made.data)
                if after_bytes > MOST_BYTES:
                    raise KfbenchError(f"{name}: would be larger than the {MOST_BYTES:,} bytes that a segment may have")
                if out >= 0:
                    _write(out, made.data)
        if out >= 0:
            os.fchown(out, before.st_uid, before.st_gid)
            os.fchmod(out, before.st_mode & 0o7777)
            os.utime(out, ns=(before.st_atime_ns, before.st_mtime_ns))
            os.fsync(out)
    finally:
        if out >= 0:
            os.close(out)
    if out >= 0:
        now = os.fstat(segment)
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise KfbenchError(f"{name}: was written to meanwhile; an active segment cannot be upgraded")
        _take_place(name)
    return Upgraded(
        path=name,
        before_bytes=before.st_size,
        after_bytes=after_bytes,
        converted_records=records,
        replaced=out >= 0,
        work=work if out >= 0 else replace(work, written_bytes=0),
    )


def _tail(piece: Piece) -> tuple[int, str, str]:
    position = piece.at + len(piece.data)
    return position, "length", "the batch does not end in the file (cut off or damaged): recover the log first"


def _copy(name: str, source: int, out: int, size_bytes: int) -> None:
    """The first bytes of one file, of that name, into another."""
    at = 0
    while at < size_bytes:
        sent = os.sendfile(out, source, at, size_bytes - at)
        if not sent:
            raise KfbenchError(f"{name}: was cut off at byte {at} meanwhile; an active segment cannot be upgraded")
        at += sent


def _write(out: int, data: Bytes) -> None:
    left = data.data
    while left:
        left = left[os.write(out, left) :]


def _take_place(name: str) -> None:
    folder = os.open(Path(name).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if name.endswith(SEGMENT):
            for suffix in INDEXES:
                _remove(name.removesuffix(SEGMENT) + suffix)
            os.fsync(folder)  # or a crash might bring the old index back beside the new segment
        Path(name + SUFFIX).replace(name)
        os.fsync(folder)
    finally:
        os.close(folder)


def _remove(name: str) -> None:
    Path(name).unlink(missing_ok=True)
