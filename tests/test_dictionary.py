"""Dictionaries and the codec that uses them: bad dictionaries, training, contexts that are kept, streams."""

import json
import pickle
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from kfbench import FORMATS, Dictionary, Records, read_log, train_dictionary
from kfbench.codecs import TrainedOn, Undecodable, UnknownDictionary, ZstdDictionary
from kfbench.codecs.zstd_dictionary import FRAMES, FramesCache
from kfbench.dictionary_training import samples
from kfbench.errors import CorruptLog, IllegalCombination, InvalidDictionary, MissingDictionary
from kfbench.measure.golden.checks import check_vector
from kfbench.measure.golden.vectors import vectors
from tests.compressed import NOISE, TEXT
from tests.dictionary_samples import BY_NAME, OTHER, RAW, TRAINED, lines, records
from tests.reference import dictionaries as reference

LINE = lines(7_000, 7_001)[0]
every_kind = pytest.mark.parametrize("kind", BY_NAME)


def test_training_is_repeatable_and_says_what_it_saw() -> None:
    given = records(0, 2_000)
    one, again = (train_dictionary(given, "v2", batch_size=10, size_bytes=8_192, number=4) for _ in range(2))
    assert one == again
    assert one.trained_on == TrainedOn(
        format="v2", batch_size=10, records=2_000, size_bytes=sum(map(len, samples(given, FORMATS["v2"], 10)))
    )
    assert one.number == 4
    assert one.sha256 == sha256(one.data).digest()
    assert len(one.data) <= 8_192


def test_samples_are_what_a_codec_compresses() -> None:
    given = records(0, 25)
    for name in ("v2", "v3-full", "columnar"):
        rows = FORMATS[name].decode(FORMATS[name].encode(given, 10)).batch_rows
        assert [len(sample) for sample in samples(given, FORMATS[name], 10)] == rows["records_size_bytes"].tolist()
    assert samples(given, FORMATS["columnar"], 25)[0].endswith(b"".join(lines(0, 25)))


@pytest.mark.compiled_only
def test_what_cannot_be_trained() -> None:
    for few in (Records.from_lists([]), records(0, 1)):
        with pytest.raises(InvalidDictionary):
            train_dictionary(few)
    for size_bytes in (0, 100, 200_000, -1):
        with pytest.raises(InvalidDictionary):
            train_dictionary(records(0, 4_000), size_bytes=size_bytes)
    with pytest.raises(InvalidDictionary):
        train_dictionary(records(0, 1_000), number=0)
    for name in ("v0", "v1", "enriched", "kip98"):
        with pytest.raises(IllegalCombination):
            train_dictionary(records(0, 1_000), name)
    with pytest.raises(IllegalCombination):
        train_dictionary(records(0, 1_000), "v9")


def damaged() -> dict[str, bytes]:
    tables, rng = bytearray(TRAINED.data), random.Random(1)
    tables[8:40] = rng.randbytes(32)
    return {
        "nothing": b"",
        "7 bytes": TRAINED.data[:7],
        "the magic alone": TRAINED.data[:8],
        "tables cut short": TRAINED.data[:40],
        "another magic": b"x" + TRAINED.data[1:],
        "noise as tables": bytes(tables),
        "too large": TRAINED.data + bytes(131_073 - len(TRAINED.data)),
    }


@pytest.mark.parametrize("name", damaged())
def test_bad_bytes_are_refused(name: str) -> None:
    with pytest.raises(InvalidDictionary):
        Dictionary(number=1, data=damaged()[name])


def test_other_bad_dictionaries() -> None:
    for number in (0, -1, 2**31, 1.0, "1"):
        with pytest.raises(InvalidDictionary):
            Dictionary(number=number, data=TRAINED.data)  # type: ignore[arg-type]
    for data in (TRAINED.data, b"1234567", bytes(131_073)):
        with pytest.raises(InvalidDictionary):
            Dictionary(number=1, data=data, is_raw=True)
    with pytest.raises(InvalidDictionary):
        Dictionary(number=1, data=bytearray(TRAINED.data))  # type: ignore[arg-type]
    with pytest.raises(InvalidDictionary, match=r"kfbench\.Dictionary is wanted, not bytes"):
        FORMATS["v2"].decode(b"", dictionaries=[TRAINED.data])  # type: ignore[list-item]
    assert len(Dictionary(number=2**31 - 1, data=bytes(131_072), is_raw=True).data) == 131_072


def test_damage_of_any_bit_is_refused_or_harmless() -> None:
    """A changed dictionary may still be one. It never decodes what the other one encoded."""
    rng, payload = random.Random(2), ZstdDictionary.of(TRAINED).compress(LINE)
    for _ in range(300):
        data = bytearray(TRAINED.data)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            changed = Dictionary(number=1, data=bytes(data))
        except InvalidDictionary:
            continue
        with pytest.raises(UnknownDictionary):
            ZstdDictionary.of(changed).decompress(payload)
        assert ZstdDictionary.of(changed).decompress(ZstdDictionary.of(changed).compress(LINE)) == LINE


def test_equality_is_of_number_and_bytes() -> None:
    copy = pickle.loads(pickle.dumps(TRAINED))
    assert (copy, copy.trained_on, copy.sha256) == (TRAINED, TRAINED.trained_on, TRAINED.sha256)
    assert TRAINED.trained_on is not None and replace(TRAINED, trained_on=None) == TRAINED
    others = [replace(TRAINED, number=2), OTHER]
    assert all(other != TRAINED for other in others)
    assert len({TRAINED, copy, replace(TRAINED, trained_on=None), *others}) == 1 + len(others)
    assert ZstdDictionary.of(copy).decompress(ZstdDictionary.of(TRAINED).compress(LINE)) == LINE


@every_kind
@pytest.mark.parametrize("data", [b"", b"x", LINE, TEXT, NOISE, bytes(300_000)], ids=len)
def test_payloads(kind: str, data: bytes) -> None:
    codec = ZstdDictionary.of(BY_NAME[kind])
    for level in (None, -7, 1, 3, 6, 22):
        payload = codec.compress(data, level)
        assert codec.decompress(payload, len(data)) == data
        assert reference.decompress(payload, {BY_NAME[kind].number: BY_NAME[kind].data}) == data
        if data:
            with pytest.raises(Undecodable) as refusal:
                codec.decompress(payload, len(data) - 1)
            assert refusal.value.is_past_limit
    assert codec.compress(data) == codec.compress(data, 3) == codec.compress(data, 0)


def test_a_stream_reads_no_more_than_it_needs() -> None:
    codec, data = ZstdDictionary.of(TRAINED), TEXT + NOISE + TEXT
    payload = codec.compress(data)
    stream = codec.stream(payload)
    assert stream.read(100) == data[:100]
    assert stream.plain_bytes < len(data)
    first = stream.taken_bytes
    assert stream.read(len(data)) == data[100:]
    assert first < stream.taken_bytes == len(payload)
    with pytest.raises(UnknownDictionary):
        ZstdDictionary({}).stream(payload).read(1)


def test_a_reader_does_not_write() -> None:
    with pytest.raises(IllegalCombination):
        ZstdDictionary({1: TRAINED}).compress(LINE)
    with pytest.raises(IllegalCombination):
        ZstdDictionary.of(TRAINED).compress(LINE, 23)


def test_hostile_frames() -> None:
    codec, head = ZstdDictionary.of(TRAINED), TRAINED.head
    frames = {
        "no frame": b"",
        "a magic": b"\x28\xb5\x2f\xfd\x00\x58\x01\x00\x00",
        "a content size": b"\x20\x00\x01\x00\x00",
        "a checksum": b"\x04\x58\x01\x00\x00" + bytes(4),
        "a dictionary ID": b"\x01\x01\x58\x01\x00\x00",
        "a window of 256 MiB": b"\x00\x90\x01\x00\x00",
        "a reserved block": b"\x00\x58\x07\x00\x00",
        "a frame after the frame": b"\x00\x58\x01\x00\x00" * 2,
        "a block of 1 MiB": b"\x00\x58" + (1 << 23 | 0x03).to_bytes(3, "little") + b"a",
    }
    assert codec.decompress(head + b"\x00\x58\x01\x00\x00") == b""
    for name, frame in frames.items():
        with pytest.raises(Undecodable):
            codec.decompress(head + frame), name
        with pytest.raises(Undecodable):
            codec.stream(head + frame).read(1), name


def test_contexts_are_kept_under_a_cap() -> None:
    cache = FramesCache(most_bytes=3 << 20)
    kept = [cache.get(replace(RAW, data=b"%08d" % i + RAW.data), 3) for i in range(10)]
    assert 1 <= len(cache) < 10
    assert 0 < cache.size_bytes <= cache.most_bytes
    assert cache.get(replace(RAW, data=b"%08d" % 9 + RAW.data), 3) is kept[9]
    assert cache.get(replace(RAW, data=b"%08d" % 0 + RAW.data), 3) is not kept[0]
    assert FramesCache(most_bytes=1).get(RAW, 3).compress(LINE)
    cache.clear()
    assert (len(cache), cache.size_bytes) == (0, 0)
    FRAMES.clear()
    codec = ZstdDictionary.of(TRAINED)
    codec.compress(LINE)
    codec.decompress(codec.compress(LINE))
    assert len(FRAMES) == 2
    ZstdDictionary.of(replace(TRAINED, number=9)).compress(LINE)  # the number is not part of the digest
    assert len(FRAMES) == 2


def test_threads_share_a_dictionary() -> None:
    FRAMES.clear()

    def work(i: int) -> bool:
        codec, data = ZstdDictionary.of((TRAINED, RAW)[i % 2]), b"".join(lines(i, i + 9))
        return all(codec.decompress(codec.compress(data, 1 + i % 3)) == data for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


def test_the_error_survives_a_process() -> None:
    error = MissingDictionary(12, 3, "number 3 is missing", "a.log")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.number, copy.position) == (str(error), 3, 12)
    moved = error.at(20)
    assert isinstance(moved, MissingDictionary)
    assert (moved.position, moved.number) == (20, 3)


RESIDENT = """
import sys
from kfbench.codecs import Dictionary
from kfbench.codecs.zstd_dictionary import LeanFrames
level, path = int(sys.argv[1]) or None, sys.argv[2]
data = open(path, "rb").read()
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
copies = [Dictionary(number=1, data=data[:9_000] + i.to_bytes(4, "big") + data[9_004:]) for i in range(65)]
payload = LeanFrames(copies[0], 3).compress(data[9_100:9_300])
def made(one):
    frames = LeanFrames(one, level)
    frames.compress(data[9_100:9_300]) if level else frames.decompress(payload)
    return frames
first = made(copies[0])
before = resident()
kept = [made(each) for each in copies[1:]]
print((resident() - before) // 64, first.size_bytes)
"""


@pytest.mark.compiled_only
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/self/statm is Linux's")
@pytest.mark.parametrize("level", [0, 1, 3, 6])
def test_memory_of_a_dictionary_is_at_most_what_its_size_says(level: int, tmp_path: Path) -> None:
    """Half a megabyte at level 3 is the promise of docs/dictionaries.md. 0: for decompression."""
    values = [
        b"%d order %x placed by %d" % (i, i * i * 2_654_435_761 % 2**40, i * 7_919 % 10_007) for i in range(8_000)
    ]
    made = train_dictionary(Records.from_lists(values), "v2", batch_size=10, size_bytes=32_768)
    assert len(made.data) > 30_000
    (tmp_path / "data").write_bytes(made.data)
    command = [sys.executable, "-c", RESIDENT, str(level), str(tmp_path / "data")]
    gained, claimed = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert 0.4 * claimed < gained < 1.1 * claimed
    assert level != 3 or claimed <= 500_000


# datasets/dictionaries, which the reference wrote. Its damaged logs are refused at the same batch.

FOLDER = Path(__file__).parents[1] / "datasets" / "dictionaries"
ENTRIES = {entry["name"]: entry for entry in vectors(FOLDER)}
NAMING_NONE = {"number_2": 2, "another_check": 1, "no_dictionary": 1}


def test_the_folder_is_whole() -> None:
    files = {f"{name}.{kind}" for name in ENTRIES for kind in ("bin", "json")}
    assert {path.name for path in FOLDER.iterdir()} == {*files, "index.json", "README.md"}
    assert sum(entry["category"] == "corrupt" for entry in ENTRIES.values()) >= 15
    assert {f"{name}_{kind}" for name in ("v2", "v3", "v3-full", "columnar") for kind in ("trained", "raw")} < {
        *ENTRIES
    }


@pytest.mark.parametrize("name", ENTRIES)
def test_a_vector(name: str) -> None:
    outcomes = list(check_vector(FOLDER, ENTRIES[name]))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    checks = {outcome.check for outcome in outcomes}
    assert checks == ({"sha256", "refused"} if ENTRIES[name]["category"] == "corrupt" else
                      {"sha256", "fields", "checksums", "same records"})  # fmt: skip


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry["category"] == "corrupt"])
def test_the_error_of_a_damaged_log(name: str) -> None:
    with pytest.raises(CorruptLog) as refusal:
        read_log(FOLDER / f"{name}.bin")
    error = refusal.value
    assert error.source == str(FOLDER / f"{name}.bin")
    assert error.field == ("dictionary" if name in NAMING_NONE or name.startswith(("stored", "one")) else "records")
    if name in NAMING_NONE:
        assert isinstance(error, MissingDictionary)
        assert error.number == NAMING_NONE[name]
    assert json.loads((FOLDER / f"{name}.json").read_text())["error"]["message"]
