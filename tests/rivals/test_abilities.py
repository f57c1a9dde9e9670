"""Each answer of the table of abilities is tried on the real libraries, or has a document."""

import re
from collections.abc import Callable
from functools import partial
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import reader, writer

from kfbench.formats import FORMATS
from kfbench.layouts import V2_HEADER
from kfbench.records import Records
from kfbench.rivals import abilities as table
from kfbench.rivals import missing, rivals
from kfbench.rivals.abilities import ABILITIES, ARMS, Ability, Format, ability
from kfbench.rivals.base import TIMES, Rival, relative, to_table
from kfbench.rivals.envelope import ENVELOPE_BYTES, headers_of, open_sealed, seal
from kfbench.rivals.memory_file import memory_file

N, WANTED = 200, 100
_WORDS = (b"alpha", b"beta", b"gamma", b"delta", b"epsilon", b"zeta", b"eta", b"theta")
_CHOICES = np.random.default_rng(1).integers(len(_WORDS), size=(N, 80))
RECORDS: Final = Records.from_lists(
    [b" ".join(_WORDS[i] for i in row) for row in _CHOICES],
    keys=[b"key-%d" % i for i in range(N)],
    timestamps_ms=[1_000 + 3 * i for i in range(N)],
)
"""Nearly all bytes are values, so damage in the middle of a container is damage to values."""
DAMAGED: Final = ((0.3, 0.38), (0.55, 0.65))
RIVAL_FORMATS: Final = [*ARMS]
EVERY_FORMAT: Final = [*table.FORMATS]


def rival_of(name: Format) -> Rival:
    arm = ARMS[name]
    if arm not in rivals():
        pytest.skip(missing()[arm])
    return rivals()[arm]


def batch_of(name: Format, codec: str) -> bytes:
    """Return RECORDS as one batch: of a format of Kafka's, or a rival's container in v2's header."""
    if name not in ARMS:
        return FORMATS[name].encode(RECORDS, N, codec).data.tobytes()
    rival = rival_of(name)
    (header,) = headers_of(RECORDS, np.array([0, N]))
    return seal(rival.encode(rival.prepare(relative(RECORDS)), codec, 3), header)


def damaged(batch: bytes, begin: float, end: float) -> bytes:
    """Overwrite a part of what follows the first 61 bytes, and correct the checksum."""
    body = bytearray(batch[ENVELOPE_BYTES:])
    first, stop = int(begin * len(body)), int(end * len(body))
    body[first:stop] = b"\xa5" * (stop - first)
    return seal(bytes(body), batch[:ENVELOPE_BYTES])


def holds(check: Callable[[], Any]) -> bool:
    try:
        return bool(check())
    except Exception:
        return False


def beside_damage(name: Format, codec: str, check: Callable[[bytes], Any]) -> bool:
    """Return True if the check holds for each damaged batch. It must hold for the batch without damage."""
    batch = batch_of(name, codec)
    assert check(batch)
    return all(holds(partial(check, damaged(batch, *part))) for part in DAMAGED)


def assert_answer(found: dict[str, bool], of: Ability, name: Format) -> None:
    """Compare the answer with the codecs under which the check held: all for "yes", none for "no"."""
    expected = {"yes": {True}, "partly": {True, False}, "no": {False}}[of.entries[name].answer]
    assert {*found.values()} == expected, f"{name}: {found}"


def times_are_right(name: Format, batch: bytes) -> bool:
    expected = relative(RECORDS)
    if name in ARMS:
        times = rival_of(name).read_times(open_sealed(batch))
        offsets, timestamps = times.offset_deltas, times.timestamp_deltas
    else:
        read = FORMATS[name].read_times(batch, np.array([0, len(batch)]))
        offsets, timestamps = read.offsets, read.timestamps_ms - RECORDS.timestamps_ms[0]
    return np.array_equal(offsets, expected.offsets) and np.array_equal(timestamps, expected.timestamps_ms)


def read(name: Format, batch: bytes) -> Records:
    """Read a rival's batch as a consumer would: the container's deltas, and v2's header for what they start from."""
    rival, (header,) = rival_of(name), np.frombuffer(batch, V2_HEADER, count=1)
    records = rival.records(rival.decode(open_sealed(batch)))
    is_append = header["attributes"] & 8
    times = records.timestamps_ms * 0 + header["max_timestamp_ms"] if is_append else records.timestamps_ms
    return records.at_offsets(records.offsets + header["base_offset"]).at_times(times)


def keys_of(name: Format, container: bytes) -> Any:
    """Read only the keys of a container, with the library's own call. v2 and Avro have none, and decode all."""
    match name:
        case "v2":
            records = FORMATS["v2"].decode(container).records
            return [records.key(i) for i in range(N)]
        case "Parquet":
            return pq.read_table(pa.BufferReader(container), columns=["key"])["key"].to_pylist()
        case "Arrow IPC":
            options = pa.ipc.IpcReadOptions(included_fields=[2])
            return pa.ipc.open_stream(container, options=options).read_next_batch()["key"].to_pylist()
        case "Vortex":
            import vortex

            return vortex.open_readable(pa.BufferReader(container)).to_arrow(["key"]).read_all()["key"].to_pylist()
        case "Lance":
            from lance.file import LanceFileReader

            with memory_file("batch.lance") as path:
                path.write_bytes(container)
                return LanceFileReader(str(path), columns=["key"]).read_all().to_table()["key"].to_pylist()
    return [row["key"] for row in rival_of(name).decode(container)]


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_offsets_are_assigned_in_the_header(name: Format) -> None:
    batch = bytearray(batch_of(name, "zstd"))
    batch[:8] = (4_711).to_bytes(8, "big")  # no CRC covers the base offset
    assert ability("offsets").entries[name].answer == "yes"
    if name in ARMS:
        assert read(name, bytes(batch)).offsets.tolist() == list(range(4_711, 4_711 + N))
    else:
        assert FORMATS[name].decode(bytes(batch)).records.offsets.tolist() == list(range(4_711, 4_711 + N))


@pytest.mark.parametrize("name", ["v2", *RIVAL_FORMATS])
def test_the_append_time_is_set_in_the_header(name: Format) -> None:
    batch = bytearray(batch_of(name, "zstd"))
    (header,) = np.frombuffer(bytes(batch), V2_HEADER, count=1).copy()
    header["max_timestamp_ms"], header["attributes"] = 9_999, header["attributes"] | 8
    changed = seal(bytes(batch[ENVELOPE_BYTES:]), header.tobytes())
    found = read(name, changed) if name in ARMS else FORMATS[name].decode(changed).records
    assert ability("append-time").entries[name].answer == "yes"
    assert {*found.timestamps_ms.tolist()} == {9_999} and found.offsets.tolist() == list(range(N))
    assert len(changed) == len(batch)


@pytest.mark.parametrize("name", EVERY_FORMAT)
@pytest.mark.parametrize("row", ["validate", "find-time"])
def test_offsets_and_times_are_read_beside_damage(name: Format, row: str) -> None:
    found = beside_damage(name, "zstd", lambda batch: times_are_right(name, batch))
    assert_answer({"zstd": found}, ability(row), name)


def test_a_time_is_found_beside_damage() -> None:
    """Parquet's footer has the first and last time; the time column gives the record."""
    batch = damaged(batch_of("Parquet", "zstd"), *DAMAGED[0])
    times = pq.read_metadata(pa.BufferReader(open_sealed(batch))).row_group(0).column(TIMES.index("timestamp_delta"))
    assert (times.statistics.min, times.statistics.max) == (0, 3 * (N - 1))
    deltas = rival_of("Parquet").read_times(open_sealed(batch)).timestamp_deltas
    assert int(np.searchsorted(deltas, 300)) == WANTED


@pytest.mark.parametrize("name", ["v2", *RIVAL_FORMATS])
def test_keys_are_read_beside_damage(name: Format) -> None:
    keys = [RECORDS.key(i) for i in range(N)]
    container = bytes if name == "v2" else open_sealed
    found = beside_damage(name, "zstd", lambda batch: keys_of(name, container(batch)) == keys)
    assert_answer({"zstd": found}, ability("compact"), name)


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_a_record_is_fetched_beside_damage(name: Format) -> None:
    def is_right(batch: bytes, codec: str) -> bool:
        if name in ARMS:
            return rival_of(name).fetch(open_sealed(batch), WANTED).value == RECORDS.value(WANTED)
        if codec == "zstd":  # `fetch` refuses a codec
            return FORMATS[name].decode(batch).records.value(WANTED) == RECORDS.value(WANTED)
        fetched = FORMATS[name].fetch(batch, np.array([0, len(batch)]), [WANTED])
        return fetched.value(0) == RECORDS.value(WANTED)

    found = {codec: beside_damage(name, codec, partial(is_right, codec=codec)) for codec in ("none", "zstd")}
    assert_answer(found, ability("fetch"), name)


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_a_value_is_a_view_of_the_batch(name: Format) -> None:
    batch = batch_of(name, "none")
    data, first, end = b"", 0, 0
    if name == "Avro":
        is_view = False  # fastavro returns bytes objects
        assert isinstance(rival_of(name).decode(open_sealed(batch))[0]["value"], bytes)
    elif name in ARMS:
        data = open_sealed(batch)
        decoded = rival_of(name).decode(data)
        values = decoded.column("value")
        values = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
        container = pa.py_buffer(data)
        first, end = container.address, container.address + container.size
        is_view = first <= values.buffers()[-1].address < end
    else:
        array = np.frombuffer(batch, np.uint8)
        is_view = np.shares_memory(FORMATS[name].decode(array).records.value_data, array)
    assert_answer({"none": is_view}, ability("zero-copy"), name)


@pytest.mark.parametrize("name", RIVAL_FORMATS)
def test_an_unknown_column_is_ignored(name: Format) -> None:
    rival = rival_of(name)
    container = with_new_column(name)
    times = rival.read_times(container)
    found = np.array_equal(times.timestamp_deltas, relative(RECORDS).timestamps_ms)
    found &= rival.fetch(container, WANTED).value == RECORDS.value(WANTED)
    assert_answer({"none": found}, ability("extension"), name)


def with_new_column(name: Format) -> bytes:
    """Return a container of RECORDS with a column that readers do not know."""
    rival = rival_of(name)
    if name == "Avro":
        old: Any = reader(BytesIO(rival.encode(rival.prepare(relative(RECORDS)), "none"))).writer_schema
        rows = [{**row, "new": i} for i, row in enumerate(rival.prepare(relative(RECORDS)))]
        out = BytesIO()
        writer(out, {**old, "fields": [*old["fields"], {"name": "new", "type": "int"}]}, rows)
        return out.getvalue()
    wider = to_table(relative(RECORDS)).append_column("new", pa.array(range(N)))
    if name == "Arrow IPC":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, wider.schema) as stream:
            stream.write_table(wider)
        return bytes(sink.getvalue())
    if name == "Lance":
        from lance.file import LanceFileWriter

        with memory_file("batch.lance") as path:
            with LanceFileWriter(str(path), wider.schema) as file:
                file.write_batch(wider)
            return path.read_bytes()
    return rival.encode(wider, "none")


def ids_here() -> set[str]:
    """Return the ids of this file's tests, as pytest builds them from the marks."""
    found = set()
    for test, function in globals().items():
        marks = [mark.args[1] for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
        found |= {test + (f"[{'-'.join(values)}]" if values else "") for values in product(*marks)}
    return {each for each in found if each.startswith("test_")}


def test_every_entry_has_a_test_or_a_document() -> None:
    docs = Path(__file__).parents[2] / "docs"
    ids = ids_here()
    for each in ABILITIES:
        assert [*each.entries] == EVERY_FORMAT
        for name, entry in each.entries.items():
            assert bool(entry.source) != bool(each.tests_of(name)), f"{each.name}, {name}: a test or a document"
            assert {*each.tests_of(name)} <= ids, f"{each.name}, {name}: a test is missing"
            page, _, section = entry.source.partition("#")
            assert "://" not in entry.source
            if section:
                headings = re.findall(r"^#+ (.*)$", (docs / page).read_text(encoding="utf-8"), re.MULTILINE)
                assert section in [heading.lower().replace(" ", "-") for heading in headings]
            assert not entry.source or section or ", " in entry.source, f"{entry.source}: no section"


def test_a_test_that_is_missing_is_noticed() -> None:
    assert "test_keys_are_read_beside_damage[columnar]" not in ids_here()
    assert "test_offsets_and_times_are_read_beside_damage[validate-Lance]" in ids_here()
