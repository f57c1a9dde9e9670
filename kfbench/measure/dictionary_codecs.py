"""Sizes under other codecs with the same dictionary: gzip, lz4, zstd in one call, and a lean frame with none."""

from collections.abc import Iterator

from kfbench.codecs import Dictionary
from kfbench.codecs.dictionary_arms import DICTIONARY_ARMS, LEAN_ARM, dictionary_arm
from kfbench.formats import Format
from kfbench.measure.dictionary import split_topic, trained
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.schema import Row
from kfbench.measure.verify import Unverified


def measure_other_codecs(
    fmt: Format, source: EncodeInput, *, size_bytes: int, share: float, training_batch: int
) -> Iterator[Row]:
    """Yield two rows per arm: alone, and with a dictionary trained before the split. Each payload is decompressed.

    The arm "lean" has only the first one. A batch has the same bytes in front of its payload under every codec. So
    sizes are computed from the payloads.
    Raises Unverified, InvalidDictionary, IllegalCombination.
    """
    split = split_topic(source.bounds, share, 1)
    made = trained(source, fmt, split, size_bytes, training_batch)
    rest = source.behind(split.first)
    bare = EncodeInput(records=rest.records, bounds=rest.bounds, batch_fields=rest.batch_fields)
    bodies = fmt.plain_bodies(rest.records, rest.bounds)
    plain_bytes = sum(map(len, bodies))
    front_bytes = len(bare.encode(fmt).data) - plain_bytes
    common: Row = {
        "status": "ok",
        "records": len(rest.records),
        "batches": len(bodies),
        "payload_bytes": rest.records.shapes.payload_bytes,
        "plain_bytes": plain_bytes,
        "trained_share": share,
        "part": 1,
    }
    columns = {"dictionary": "trained", "dictionary_size_bytes": size_bytes} | made.columns
    for name in DICTIONARY_ARMS:
        rows: list[tuple[Dictionary | None, Row]] = [(None, {"dictionary": "plain"})]
        if name != LEAN_ARM:
            rows.append((made.dictionary, columns))
        for dictionary, described in rows:
            arm = dictionary_arm(name, source.level, dictionary)
            payloads = [arm.compress(body) for body in bodies]
            if any(arm.decompress(payload, len(body)) != body for payload, body in zip(payloads, bodies, strict=True)):
                raise Unverified(f"{name}: a batch differs after compressing and decompressing")
            size = sum(map(len, payloads))
            sizes = {
                "arm": name,
                "codec_version": arm.version,
                "compressed_bytes": size,
                "size_bytes": front_bytes + size,
            }
            yield common | described | sizes
