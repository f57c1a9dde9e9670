"""Upgrade a whole segment file to a newer format: KIP-724's `log.record.version.force.upgrade`, at start-up.

The new segment is written next to the old one and then replaces it atomically. If the process or the machine dies at
any time, at least one of the two files is complete:

1. NAME.log.upgrade is written in pieces and synchronised. It gets the old file's mode, owner and times, because a
   broker expires segments without timestamps by the modification time.
2. NAME.index and NAME.timeindex are removed, because they hold positions in the old bytes. A broker that misses an
   index rebuilds all of them (`LogSegment.sanityCheck`, `recover`). NAME.txnindex holds only offsets and stays.
3. The new file is renamed to the old name.

If an upgrade is killed, the next one removes its leftover file. An incomplete last batch is refused, although readers
take it for the end of the log. A damaged length looks the same, and the rest of the segment would be lost. Kafka's
recovery cuts an incomplete batch off. If the old file has other hard links, it remains under their names.
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
from kfbench.log.dictionaries import add_stored
from kfbench.log.pieces import PIECE_BYTES, pieces
from kfbench.log.segment import LOG_SUFFIX

SUFFIX: Final = ".upgrade"  # a broker ignores it at start-up
INDEXES: Final = (".index", ".timeindex")  # in this order: without the first one a broker rebuilds all
MOST_BYTES: Final = 2**31 - 1  # positions in a segment are int32 (`FileRecords`)


@dataclass(frozen=True, kw_only=True)
class UpgradeResult:
    """The result of an upgrade.

    Args:
        path: the real path of the file.
        before_bytes, after_bytes: its size before and after the upgrade.
        converted_records: number of records in batches that were rebuilt.
        replaced: False if there was nothing to convert, so the file was not changed.
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
) -> UpgradeResult:
    """Convert a segment file to the format `to`, as `convert` does. Memory is bounded by `chunk_bytes`.

    Batches that already have the format are read, checked and copied. After an error the segment is unchanged.

    Args:
        codec, level: codec and level of rebuilt batches; None: each keeps its codec.
        lossy: leave out properties that the format `to` cannot carry.

    Raises:
        CorruptLog, Refused: with the file and the position.
        WouldLose: the format `to` cannot carry something.
        IllegalCombination: the format `to` lacks the codec, or its segments have no mark that identifies it.
        KfbenchError: the file cannot be read or written, another upgrade works on it, or the result would be too large
            for a broker.
    """
    target = find(to)
    if not target.is_told_by_magic:
        raise IllegalCombination(f"{target.name}: a segment of this format has no mark that identifies it")
    name = os.path.realpath(path)
    conversion = Conversion(to=target, codec=codec, level=level, lossy=lossy, check=True)
    try:
        with _locked(name) as segment:
            Path(name + SUFFIX).unlink(missing_ok=True)
            try:
                return _upgrade(name, segment, conversion, chunk_bytes, limits)
            except BaseException:
                Path(name + SUFFIX).unlink(missing_ok=True)
                raise
    except CorruptLog as error:
        raise error.at(error.position, name) from None
    except Refused as error:
        raise Refused(error.error, error.position, error.promise, name) from None
    except WouldLose as error:
        raise WouldLose(f"{name}: {error}") from None
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else name
        raise KfbenchError(f"{where}: {error.strerror}") from None


@contextmanager
def _locked(name: str) -> Iterator[int]:
    """Open the segment and lock it against other upgrades. The lock ends with the `with` block."""
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


def _upgrade(name: str, segment: int, conversion: Conversion, chunk_bytes: int, limits: Limits | None) -> UpgradeResult:
    before = os.fstat(segment)
    allowance = Allowance.of(before.st_size, limits)
    out, after_bytes, records, work = -1, 0, 0, Work()
    try:
        for piece in pieces(segment, chunk_bytes):
            if piece.trailing_bytes:
                position = piece.at + len(piece.data)
                promise = "the batch does not end in the file (cut off or damaged): recover the log first"
                raise CorruptLog(position, "length", promise)
            for error in add_stored(piece.data, piece.positions, piece.magics, allowance).values():
                raise error.at(piece.at + error.position)
            for converted in conversion.of(piece.data, piece.positions, piece.magics, allowance, piece.at):
                if out < 0 and not converted.work.untouched:
                    out = os.open(name + SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                    _copy(name, segment, out, after_bytes)  # all batches before this piece are unchanged
                records, work = records + converted.converted_records, work + converted.work
                after_bytes += len(converted.data)
                if after_bytes > MOST_BYTES:
                    raise KfbenchError(f"{name}: would be larger than the {MOST_BYTES:,} bytes that a segment may have")
                if out >= 0:
                    _write(out, converted.data)
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
        _replace_segment(name)
    return UpgradeResult(
        path=name,
        before_bytes=before.st_size,
        after_bytes=after_bytes,
        converted_records=records,
        replaced=out >= 0,
        work=work if out >= 0 else replace(work, written_bytes=0),
    )


def _copy(name: str, source: int, out: int, size_bytes: int) -> None:
    """Copy the first `size_bytes` bytes of `source` to `out` (file descriptors). name: the source file, for errors."""
    at = 0
    while at < size_bytes:
        sent = os.sendfile(out, source, at, size_bytes - at)
        if not sent:
            raise KfbenchError(f"{name}: was truncated at byte {at} meanwhile; an active segment cannot be upgraded")
        at += sent


def _write(out: int, data: Bytes) -> None:
    left = data.data
    while left:
        left = left[os.write(out, left) :]


def _replace_segment(name: str) -> None:
    folder = os.open(Path(name).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if name.endswith(LOG_SUFFIX):
            for suffix in INDEXES:
                Path(name.removesuffix(LOG_SUFFIX) + suffix).unlink(missing_ok=True)
            os.fsync(folder)  # without this, the old index may be next to the new segment after a crash
        Path(name + SUFFIX).replace(name)
        os.fsync(folder)
    finally:
        os.close(folder)
