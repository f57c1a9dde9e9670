"""The formats of a what-if when the user names none: v2, v3, research, and the smallest other lossless format."""

from collections.abc import Collection, Sequence
from typing import Final

from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.formats import FORMATS, RESEARCH
from kfbench.sources import Part
from kfbench.whatif.rebatch import Batches, Batching, Rebatcher, sent
from kfbench.whatif.record_times import TimeReader

MAIN_FORMATS: Final = ("v2", "v3", *sorted(RESEARCH))
OTHER_FORMAT: Final = "v3-headers-first"  # used if the first batches cannot be read: a topic, a damaged file


def default_formats(parts: Sequence[Part], codecs: Collection[str] | None, assumed: Batching | None) -> tuple[str, ...]:
    """Choose the formats by the first batches of the largest file or partition.

    Args:
        parts: the files or partitions that are read.
        codecs: a format must have all of them to be chosen besides MAIN_FORMATS; None: all codecs.
        assumed: the producer's settings for sources that have no batches.
    """
    wanted = set(CODECS if codecs is None else codecs)
    others = [name for name in FORMATS if name not in MAIN_FORMATS and wanted <= set(FORMATS[name].capabilities.codecs)]
    largest = max(parts, key=lambda part: part.size_bytes, default=None)
    batches = None if largest is None else _first_batches(largest, assumed)
    if batches is None:
        return *MAIN_FORMATS, OTHER_FORMAT
    lossless = [name for name in others if not FORMATS[name].losses(*batches)]
    smallest = min(lossless, key=lambda name: int(FORMATS[name].size(*batches).sum()), default=OTHER_FORMAT)
    return *MAIN_FORMATS, smallest


def _first_batches(part: Part, assumed: Batching | None) -> Batches | None:
    try:
        chunk = next((chunk for chunk in part.chunks() if len(chunk.records)), None)
    except InvalidConfig:
        raise
    except (KfbenchError, OSError):  # the error is reported later, when all records are read
        return None
    if chunk is None:
        return None
    if chunk.bounds is not None:
        return Batches(chunk.records, chunk.bounds, chunk.fields)
    if assumed is None:
        return None
    of_clients = TimeReader().read(sent(chunk.records, chunk.bounds, chunk.fields, chunk.partitions), chunk.is_ms)
    return next(Rebatcher(assumed).add(of_clients, last=True), None)
