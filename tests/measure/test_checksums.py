"""Two independent checksum libraries (witnesses) find a wrong checksum kernel, although our reader and writer agree."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from kfbench.arrays import Bytes
from kfbench.batches import NO_FIELDS, DecodedLog, EncodedLog
from kfbench.formats import BY_MAGIC, FORMATS, Entries
from kfbench.formats.base.batched import BatchedFormat
from kfbench.formats.base.capabilities import Checksum
from kfbench.formats.base.messages import MessageFormat
from kfbench.measure.verify import Unverified, verify_log, verify_records, wrong_checksum
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run import verify as verification
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads.grid import GridPoint
from tests.sweep.cells import measure_with
from tests.vectors import write_vectors

SAMPLE = GridPoint(batch_size=10, timestamp_spread_ms=9).generate(records=30, seed=1)
WITNESS = {"CRC-32C": "crc32c", "CRC-32": "binascii"}
SWEEP = """
title = "t"
analysis = "a"
[cpu]
records = 20
rounds = 3
[[grid]]
name = "plain"
title = "t"
analysis = "a"
measure = ["bytes", "cpu"]
formats = ["v1", "v2", "v3"]
[grid.axes]
batch_size = [10]
"""


def flipped(data: Bytes, position: int) -> Bytes:
    """Return a copy of the log with one byte inverted in each batch's stored checksum.

    Doing it twice restores the log.
    """
    data = np.array(data)
    data[Entries.of(data).positions[:-1] + position] ^= 0xFF
    return data


def checksum_of(name: str) -> Checksum:
    checksum = FORMATS[name].checksum
    assert checksum is not None
    return checksum


class _WrongKernel:
    """A format with a faulty checksum kernel: its reader and writer use the same wrong checksum."""

    def encode(self, *args: Any, **options: Any) -> EncodedLog:
        log: EncodedLog = super().encode(*args, **options)  # type: ignore[misc]
        at = checksum_of(self.name).position  # type: ignore[attr-defined]
        return replace(log, data=flipped(log.data, at))

    def decode(self, data: Any, *args: Any, **options: Any) -> DecodedLog:
        at = checksum_of(self.name).position  # type: ignore[attr-defined]
        found: DecodedLog = super().decode(flipped(data, at), *args, **options)  # type: ignore[misc]
        return found


class WrongBatches(_WrongKernel, BatchedFormat):
    pass


class WrongMessages(_WrongKernel, MessageFormat):
    pass


CHECKED = [name for name, fmt in FORMATS.items() if fmt.checksum]
WRONG = {
    "v1": WrongMessages(name="v1", magic=1, summary="", capabilities=FORMATS["v1"].capabilities),
    "v2": WrongBatches(name="v2", magic=2, summary=""),
    "v3": WrongBatches(name="v3", magic=3, summary="", features=FORMATS["v3"].features),
}


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_both_witnesses_agree_on_every_format(name: str, codec: str) -> None:
    log = FORMATS[name].encode(SAMPLE.records, SAMPLE.bounds, codec, lossy=True)
    assert wrong_checksum(log.data, FORMATS[name]) is None
    if FORMATS[name] in BY_MAGIC.values():  # the text of a proposal may use the magic of another format
        assert wrong_checksum(log.data) is None


@pytest.mark.parametrize("name", CHECKED)
def test_one_bit_of_any_covered_byte_is_seen(name: str) -> None:
    """A flipped bit is seen in every covered byte and in the stored checksum, and in no other byte."""
    fmt = FORMATS[name]
    log = fmt.encode(SAMPLE.records.part(0, 2), 2, lossy=True)
    start, end = Entries.of(log.data).positions[:2].tolist()
    _, position, covers_from = checksum_of(name)
    for at in range(start, end):
        data = np.array(log.data)
        data[at] ^= 1
        if at in range(8, 12):  # a wrong length: the next batch starts elsewhere
            continue
        seen = at >= covers_from or at in range(position, position + 4)
        assert bool(wrong_checksum(data, fmt)) == seen, at


@pytest.mark.parametrize("name", CHECKED)
def test_the_message_names_entry_place_and_witness(name: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(SAMPLE.records, SAMPLE.bounds, lossy=True)
    second = int(Entries.of(log.data).positions[1])
    data = np.array(log.data)
    data[second + checksum_of(name).position] ^= 0xFF
    wrong = wrong_checksum(data, fmt)
    assert wrong is not None
    assert f"entry 1 at byte {second}" in wrong
    assert WITNESS[checksum_of(name).algorithm] in wrong


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_told_by_the_second_witness_alone(name: str) -> None:
    wrong, sound = WRONG[name], FORMATS[name]
    log = wrong.encode(SAMPLE.records, SAMPLE.bounds, lossy=True)
    assert wrong.decode(log.data).records == sound.decode(flipped(log.data, checksum_of(name).position)).records
    with pytest.raises(Unverified, match=f"second witness.*{WITNESS[checksum_of(name).algorithm]}"):
        verify_records(wrong, SAMPLE.records, SAMPLE.bounds, NO_FIELDS, log)
    with pytest.raises(Unverified, match=r"a path: entry 0 at byte 0: .*second witness"):
        verify_log("a path", wrong, log.data, SAMPLE.records)


def test_verify_and_timed_cells_ask_the_second_witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kfbench verify` compares with the second witness.

    So does a measurement that verifies its formats before timing.
    """
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    profile, golden = load_profile(path), write_vectors(tmp_path / "golden")
    assert not verification.verify(profile, golden).failures
    with_wrong = MappingProxyType({**FORMATS, "v3": WRONG["v3"]})
    monkeypatch.setattr(verification, "FORMATS", with_wrong)
    measure_with(monkeypatch, with_wrong)
    (failure,) = verification.verify(profile, golden).failures
    assert (failure.format, failure.check) == ("v3", "round trip")
    assert "second witness" in failure.problem
    for cell in profile.cells:
        for row in measure_cell(cell):
            assert (row["status"] == "error") == (row["format"] == "v3"), row
            assert ("second witness" in (row.get("error") or "")) == (row["format"] == "v3")
