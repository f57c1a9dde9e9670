"""Cold timings: each call uses verified bytes in memory that no call has touched for a whole round."""

import ctypes

import psutil
import pytest

from kfbench.arrays import Bytes
from kfbench.errors import MissingTool
from kfbench.formats import FORMATS
from kfbench.measure.cold import TIMES, Rotating, prepare_cold
from kfbench.measure.cpu import ONE_CALL, OPERATIONS, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.environment import last_level_cache_bytes
from kfbench.measure.verify import Unverified
from kfbench.workloads.grid import GridPoint

NAMES = ["v0", "v2", "v3", "v2"]
SAMPLE = GridPoint().generate(records=300, seed=1)
LEAST_BYTES = 1_000_000


def logs(codec: str = "none") -> list[Bytes]:
    return [FORMATS[name].encode(SAMPLE.records, SAMPLE.bounds, codec, lossy=True).data for name in NAMES]


def cold(operation: str, codec: str = "none", found: list[Bytes] | None = None) -> Rotating:
    formats = [FORMATS[name] for name in NAMES]
    given = logs(codec) if found is None else found
    source = EncodeInput(records=SAMPLE.records, bounds=SAMPLE.bounds, codec=codec)
    return prepare_cold(formats, given, operation, source, least_bytes=LEAST_BYTES)  # type: ignore[arg-type]


def place(done: object) -> int:
    """Return the memory address of the bytes that the call wrote or read."""
    data = done.data if hasattr(done, "data") else done.records.value_data  # type: ignore[attr-defined]
    address: int = data.__array_interface__["data"][0]
    return address


def test_writers_take_places_in_turn_and_come_round_after_all_of_them() -> None:
    rotating = cold("encode")
    found = [place(arm.call()) for _ in range(100) for arm in rotating.arms]
    places = len(set(found))
    assert found[:places] == found[places : 2 * places]
    records, log = SAMPLE.records, min(map(len, logs()))
    a_place = sum(column.nbytes for column in records.packed().columns) + SAMPLE.bounds.nbytes + log
    assert places * a_place == rotating.rotated_bytes >= LEAST_BYTES > (places - 1) * a_place


def test_readers_have_laps_of_their_own_in_one_buffer() -> None:
    rotating = cold("decode")
    found = [[place(arm.call()) for _ in range(60)] for arm in rotating.arms]
    laps = len(set(found[0]))
    assert all(each[:laps] == each[laps : 2 * laps] for each in found)
    assert len({address for each in found for address in each}) == laps * len(NAMES)
    in_order = [address for addresses in zip(*(each[:laps] for each in found), strict=True) for address in addresses]
    assert in_order == sorted(in_order)  # arms (formats) alternate in memory: none has a better part
    assert rotating.rotated_bytes >= LEAST_BYTES and laps * sum(map(len, logs())) >= LEAST_BYTES * 0.99


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_arms_do_the_verified_work(operation: str, codec: str) -> None:
    rotating = cold(operation, codec)
    for arm, log, name in zip(rotating.arms, logs(codec), NAMES, strict=True):
        warm_up(arm)
        done = arm.call()
        if operation == "encode":
            assert bytes(done) == bytes(log)  # type: ignore[call-overload]
        else:
            assert done.records == FORMATS[name].decode(log).records  # type: ignore[attr-defined]
    samples = measure(rotating.arms, 1, 5, ONE_CALL)
    assert all(each.inner_loops == 1 and (each.wall_ns > 0).all() for each in samples)


def test_other_bytes_than_the_verified_ones_are_not_timed() -> None:
    wrong = logs()
    wrong[2] = wrong[2].copy()
    wrong[2][-1] ^= 1
    rotating = cold("encode", found=wrong)
    with pytest.raises(Unverified, match="wrote other bytes"):
        warm_up(rotating.arms[2])
    decoding = cold("decode")
    read = decoding.arms[1].call().records.value_data  # type: ignore[attr-defined]
    ctypes.cast(read.ctypes.data, ctypes.POINTER(ctypes.c_ubyte))[70] ^= 1  # these arrays are read-only
    with pytest.raises(Unverified, match="decode changed the bytes"):
        decoding.arms[1].verify()
    decoding.arms[2].verify()


def test_twice_the_last_level_cache_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.measure.cold.last_level_cache_bytes", lambda: 3_000_000)
    found = prepare_cold(
        [FORMATS["v2"]], [logs()[1]], "decode", EncodeInput(records=SAMPLE.records, bounds=SAMPLE.bounds)
    )
    assert found.rotated_bytes >= TIMES * 3_000_000
    known = last_level_cache_bytes()
    assert known is None or 1 << 18 <= known <= 1 << 33


def test_a_host_without_the_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Little:
        available = total = LEAST_BYTES

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    with pytest.raises(MissingTool, match="cold caches need"):
        cold("encode")
