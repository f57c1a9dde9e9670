"""Golden vectors of down-conversion: Kafka's `RecordsUtil.downConvert`."""

from collections.abc import Iterator

from tests.oracle.cases.vector import APPEND, CODECS, IDEMPOTENT, T0, Vector, batch, marker, record, series
from tests.oracle.client import Spec


def converted(
    name: str, batches: list[Spec], magic: int, first: int = 0, note: str = "", declined: str = "", *before: Spec
) -> Vector:
    """Return a vector whose last step converts the log to `magic`.

    first: the offset that the consumer wants. before: earlier steps.
    """
    step = {"op": "convert", "toMagic": magic, "firstOffset": first}
    return Vector(name=f"downconvert_{name}", batches=batches, steps=[*before, step], note=note, declined=declined)


def downconvert() -> Iterator[Vector]:
    with_headers = [one | {"headers": [["h", "v"]]} for one in series(3)]
    for codec in CODECS[1]:
        for to_magic in (0, 1):
            modern = batch(2, codec, with_headers, baseOffset=30)
            yield converted(f"v2_to_v{to_magic}_{codec}", [modern], to_magic, note="headers are dropped")
        yield converted(f"v1_to_v0_{codec}", [batch(1, codec, series(3), baseOffset=30)], 0)
    for codec in ("none", "gzip"):
        yield converted(f"v2_to_v1_{codec}_append", [batch(2, codec, series(3), **APPEND)], 1)
        yield converted(f"v2_to_v0_{codec}_append", [batch(2, codec, series(3), **APPEND)], 0)
        yield converted(f"v1_to_v0_{codec}_append", [batch(1, codec, series(3), **APPEND)], 0)
        stamp = {"op": "stamp", "timestampType": "LOG_APPEND_TIME", "maxTimestamp": T0 - 10**6}
        early = batch(2, codec, series(3))
        yield converted(f"v2_to_v1_{codec}_stamped", [early], 1, 0, "the leader's clock is behind", "", stamp)
        several = [batch(2, codec, series(3), baseOffset=30), batch(2, codec, series(3), baseOffset=33)]
        note = "uncompressed records before offset 32 are dropped"
        yield converted(f"v2_to_v1_{codec}_first_offset", several, 1, 32, note)
        yield converted(f"v2_to_v0_{codec}_all_before", several, 0, 100)
        older = [batch(1, codec, series(3), baseOffset=30), batch(1, codec, series(3), baseOffset=33)]
        yield converted(f"v1_to_v0_{codec}_first_offset", older, 0, 32, note)
        yield converted(f"v1_to_v1_{codec}_first_offset", older, 1, 32, "what is old enough is handed on as it is")
        holes = [record(f"k{i}", f"v{i}", T0 - i, offset=offset) for i, offset in enumerate((33, 35, 40))]
        hollow = batch(2, codec, holes, baseOffset=30, lastOffset=49)
        yield converted(
            f"v2_to_v1_{codec}_holes", [hollow], 1, note="what the header says of gone records is forgotten"
        )
        yield converted(f"v2_to_v0_{codec}_holes", [hollow], 0)
        nulls = [record(None, None), record("k", None, -1), record(None, "v", T0 + 9), record("", "", T0)]
        for to_magic in (0, 1):
            yield converted(f"v2_to_v{to_magic}_{codec}_nulls", [batch(2, codec, nulls, baseOffset=7)], to_magic)
        horizon = batch(2, codec, nulls, baseOffset=7, deleteHorizonMs=T0 + 10**6)
        yield converted(f"v2_to_v1_{codec}_horizon", [horizon], 1)
    transaction = [batch(2, "none", series(2), **IDEMPOTENT, transactional=True), marker(2, "COMMIT")]
    yield converted("v2_to_v1_transaction", transaction, 1, note="the marker is dropped, the producer forgotten")
    yield converted("v2_to_v0_marker", [marker(2, "ABORT")], 0, note="nothing is left")
    emptied = [batch(2, "none", series(1)), {"kind": "empty", "baseOffset": 1, "lastOffset": 4}]
    yield converted("v2_to_v1_empty", emptied, 1, note="the empty batch is gone")
    mixed = [batch(magic, "none", series(2), baseOffset=10 * magic) for magic in range(3)]
    for to_magic in range(3):
        yield converted(f"mixed_to_v{to_magic}", mixed, to_magic)
    packed = [batch(magic, "gzip", series(2), baseOffset=10 * magic) for magic in range(3)]
    yield converted("mixed_to_v0_gzip", packed, 0)
    refusal: Spec = {"note": "no zstd before v2, wherever it stands", "declined": "UNSUPPORTED_COMPRESSION_TYPE"}
    zstd = [batch(2, "none", series(2)), batch(2, "zstd", series(2), baseOffset=2)]
    for to_magic in (0, 1):
        yield converted(f"v2_to_v{to_magic}_zstd", zstd, to_magic, **refusal)
    yield converted("v2_to_v1_zstd_before_first_offset", zstd[1:], 1, first=50, **refusal)
    yield converted("v2_to_v2_zstd", zstd, 2)
