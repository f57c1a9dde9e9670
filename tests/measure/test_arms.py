"""The calls that are timed for each format do the verified work, on data in the caches and on data in none."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil
import pytest

from kfbench.arrays import Bytes
from kfbench.errors import MissingTool
from kfbench.formats import FORMATS, Format
from kfbench.measure.cold import TIMES, Rotating, prepare_cold
from kfbench.measure.cpu import ONE_CALL, OPERATIONS, Arm, measure, paired_ratio, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.environment import last_level_cache_bytes
from kfbench.measure.format_arms import prepare
from kfbench.measure.verify import Unverified
from kfbench.workloads import Sample
from kfbench.workloads.grid import GridPoint

NAMES = ("v0", "v2", "v3", "v2")
SAMPLE = GridPoint().generate(records=300, seed=1)
LEAST_BYTES = 1_000_000


def source_of(sample: Sample = SAMPLE, codec: str = "none") -> EncodeInput:
    return EncodeInput(records=sample.records, bounds=sample.bounds, codec=codec)


def logs_of(names: Sequence[str], source: EncodeInput) -> list[Bytes]:
    return [source.encode(FORMATS[name]).data for name in names]


def resident(operation: Any, source: EncodeInput, logs: list[Bytes], names: Sequence[str] = NAMES) -> list[Arm]:
    return prepare([FORMATS[name] for name in names], logs, operation, source)


def rotating(operation: Any, source: EncodeInput, logs: list[Bytes]) -> Rotating:
    return prepare_cold([FORMATS[name] for name in NAMES], logs, operation, source, least_bytes=LEAST_BYTES)


def cold(operation: Any, source: EncodeInput, logs: list[Bytes]) -> list[Arm]:
    return rotating(operation, source, logs).arms


both = pytest.mark.parametrize("make", [resident, cold])


def place(done: Any) -> int:
    """Return the memory address of the bytes that the call wrote or read."""
    data = done.data if hasattr(done, "data") else done.records.value_data
    address: int = data.__array_interface__["data"][0]
    return address


@both
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_arms_do_the_verified_work(make: Any, operation: str, codec: str) -> None:
    source = source_of(codec=codec)
    logs, places = logs_of(NAMES, source), set()
    arms = make(operation, source, logs)
    for arm, log, name in zip(arms, logs, NAMES, strict=True):
        warm_up(arm)
        arm.before()
        done = arm.call()
        if operation == "encode":
            assert bytes(done) == bytes(log)
        else:
            assert done.records == FORMATS[name].decode(log).records
        places.add(place(done))
    assert make is cold or len(places) == 1 or codec != "none"  # a buffer for all: none has a better place
    samples = measure(arms, 1, 5, ONE_CALL)
    assert all(each.inner_loops == 1 and (each.wall_ns > 0).all() for each in samples)


@both
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_other_bytes_than_the_verified_ones_are_not_timed(make: Any, codec: str) -> None:
    """One different byte, or a missing one, raises Unverified."""
    source = source_of(codec=codec)
    sound, other = logs_of(NAMES, source)[2], logs_of(NAMES, source)[2].copy()
    other[-1] ^= 1
    for wrong in (other, sound[:-1]):
        logs = logs_of(NAMES, source)
        logs[2] = wrong
        arms = make("encode", source, logs)
        warm_up(arms[1])
        with pytest.raises(Unverified, match="wrote other bytes"):
            warm_up(arms[2])


@both
def test_decode_must_not_change_what_it_reads(make: Any) -> None:
    source = source_of()
    arms = make("decode", source, logs_of(NAMES, source))
    arms[1].before()
    arms[1].verify()
    read = arms[1].call().records.value_data
    ctypes.cast(read.ctypes.data, ctypes.POINTER(ctypes.c_ubyte))[70] ^= 1  # these arrays are read-only
    with pytest.raises(Unverified, match="decode changed the bytes"):
        arms[1].verify()
    arms[2].before()
    arms[2].verify()


def test_a_call_that_does_not_write_its_buffer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call wrote elsewhere, and its buffer still has the right bytes from the previous call. This is found."""
    encode, writes_elsewhere = type(FORMATS["v2"]).encode, False

    def patched(*given: Any, **options: Any) -> Any:
        return encode(*given, **options | ({"out": np.empty_like(options["out"])} if writes_elsewhere else {}))

    logs = logs_of(("v2", "v2"), source_of())
    monkeypatch.setattr(type(FORMATS["v2"]), "encode", patched)
    first, second = resident("encode", source_of(), logs, ("v2", "v2"))
    warm_up(first)
    writes_elsewhere = True
    with pytest.raises(Unverified, match="wrote other bytes"):
        warm_up(second)


@pytest.mark.parametrize("operation", ["decode-metadata", "read-times", "fetch-record"])
def test_what_a_reader_is_given_is_compared_with_what_decode_gives(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    names = ("v2", "v3", "columnar")
    source, other = (
        source_of(GridPoint(batch_size=10, null_share=0.3, timestamp_spread_ms=spread).generate(records=100, seed=seed))
        for spread, seed in ((50, 1), (40, 2))
    )
    arms = resident(operation, source, logs_of(names, source), names)
    for arm in arms:
        warm_up(arm)
    for name, arm in zip(names, arms, strict=True):
        arm.before()
        decoded = FORMATS[name].decode(other.encode(FORMATS[name]))
        with monkeypatch.context() as patched:
            patched.setattr(Format, "decode", lambda *_, decoded=decoded: decoded)
            with pytest.raises(Unverified, match=f"{name}: .* differ from the decoded ones"):
                arm.verify()


def test_same_code_twice_reads_one() -> None:
    source = source_of(GridPoint().generate(records=2_000, seed=1))
    arms = resident("encode", source, logs_of(("v2", "v2"), source), ("v2", "v2"))
    for each in arms:
        warm_up(each)
    base, again = measure(arms, 0, 301, 300_000)  # many ns per sample, because other tests run at the same time
    median, _, _ = paired_ratio(again.cpu_ns, base.cpu_ns, seed=1)
    assert median == pytest.approx(1.0, abs=0.1)


# Data that is in no cache


def test_writers_take_places_in_turn_and_come_round_after_all_of_them() -> None:
    logs = logs_of(NAMES, source_of())
    writing = rotating("encode", source_of(), logs)
    found = [place(arm.call()) for _ in range(100) for arm in writing.arms]
    places = len(set(found))
    assert found[:places] == found[places : 2 * places]
    columns = sum(column.nbytes for column in SAMPLE.records.pack().columns)
    place_bytes = columns + SAMPLE.bounds.nbytes + min(map(len, logs))
    assert places * place_bytes == writing.rotated_bytes >= LEAST_BYTES > (places - 1) * place_bytes


def test_readers_have_laps_of_their_own_in_one_buffer() -> None:
    logs = logs_of(NAMES, source_of())
    reading = rotating("decode", source_of(), logs)
    found = [[place(arm.call()) for _ in range(60)] for arm in reading.arms]
    laps = len(set(found[0]))
    assert all(each[:laps] == each[laps : 2 * laps] for each in found)
    assert len({address for each in found for address in each}) == laps * len(NAMES)
    in_order = [address for addresses in zip(*(each[:laps] for each in found), strict=True) for address in addresses]
    assert in_order == sorted(in_order)  # arms (formats) alternate in memory: none has a better part
    assert reading.rotated_bytes >= LEAST_BYTES and laps * sum(map(len, logs)) >= LEAST_BYTES * 0.99


def test_twice_the_last_level_cache_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.measure.cold.last_level_cache_bytes", lambda: 3_000_000)
    found = prepare_cold([FORMATS["v2"]], logs_of(["v2"], source_of()), "decode", source_of())
    assert found.rotated_bytes >= TIMES * 3_000_000
    known = last_level_cache_bytes()
    assert known is None or 1 << 18 <= known <= 1 << 33


def test_a_host_without_the_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Little:
        available = total = LEAST_BYTES

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    with pytest.raises(MissingTool, match="cold caches need"):
        rotating("encode", source_of(), logs_of(NAMES, source_of()))
