"""Train a zstd dictionary on the records of a topic. docs/dictionaries.md says how to choose the arguments."""

from contextlib import suppress

from numpy.typing import ArrayLike

from kfbench.codecs import Dictionary, TrainedOn
from kfbench.errors import IllegalCombination, InvalidDictionary
from kfbench.formats import BASE_FORMAT, FORMATS, Format
from kfbench.limits import LEAST_TRAINING_BYTES, RAW_BYTES, SIZE_BYTES
from kfbench.records import Records


def train_dictionary(
    records: Records,
    format: Format | str = BASE_FORMAT,  # noqa: A002
    batch_size: int | ArrayLike = 10,
    size_bytes: int = SIZE_BYTES,
    number: int = 1,
) -> Dictionary:
    """Train a dictionary for batches of these records in this format.

    Equal arguments give an equal dictionary.

    Args:
        format: a format, or its name; it must be able to use a dictionary.
        batch_size: records per batch, or batch boundaries int64[batches + 1].
        size_bytes: the largest size of the dictionary, 256 to 131,072.
        number: the dictionary's number in its partition.

    Raises IllegalCombination for the format, and InvalidDictionary if the records are too few to train on.
    """
    if isinstance(format, str) and format not in FORMATS:
        raise IllegalCombination(f"no format {format!r} (formats: {', '.join(FORMATS)})")
    fmt = FORMATS[format] if isinstance(format, str) else format
    taken = samples(records, fmt, batch_size)
    trained_on = TrainedOn(
        format=fmt.name,
        batch_size=batch_size if isinstance(batch_size, int) else None,
        records=len(records),
        size_bytes=sum(map(len, taken)),
    )
    return Dictionary.train(taken, size_bytes, number, trained_on)


def samples(records: Records, fmt: Format, batch_size: int | ArrayLike = 10) -> list[bytes]:
    """Return the bytes of each batch that a codec compresses, such as the records of v2.

    Raises IllegalCombination if the format has no dictionaries.
    """
    return fmt.plain_bodies(records, batch_size)


def trained_or_tail(
    bodies: list[bytes], size_bytes: int = SIZE_BYTES, number: int = 1, trained_on: TrainedOn | None = None
) -> Dictionary:
    """Train a dictionary on samples. Return a raw one, their last bytes, for less than LEAST_TRAINING_BYTES bytes.

    Raises InvalidDictionary for fewer than 8 bytes.
    """
    if sum(map(len, bodies)) >= LEAST_TRAINING_BYTES:
        with suppress(InvalidDictionary):
            return Dictionary.train(bodies, size_bytes, number, trained_on)
    return raw_tail(bodies, min(size_bytes, RAW_BYTES), number, trained_on)


def raw_tail(bodies: list[bytes], size_bytes: int, number: int, trained_on: TrainedOn | None = None) -> Dictionary:
    """Return the last `size_bytes` bytes of the samples as a raw dictionary. Raises InvalidDictionary."""
    return Dictionary(number=number, data=b"".join(bodies)[-size_bytes:], is_raw=True, trained_on=trained_on)
