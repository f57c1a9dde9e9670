"""Records that are generated from a fingerprint follow the laws of workloads and its distributions."""

import hashlib
import json
import pickle
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

from kfbench import BatchFields, Records
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.distributions import Distributions
from kfbench.fingerprint.file import to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.fingerprint.merging import stored_distributions
from kfbench.json_files import with_checksum
from kfbench.sources import Chunk
from kfbench.whatif.rebatch import sent
from kfbench.workloads import BLOCK_RECORDS, WORKLOADS, Sample
from kfbench.workloads.fingerprinted.fit import fitted
from kfbench.workloads.fingerprinted.model import TopicModel, models_of
from kfbench.workloads.fingerprinted.parts import Distributions as Stored
from kfbench.workloads.fingerprinted.workload import FingerprintWorkload
from tests.recorded import FOLDER


def distributions_of(sample: Sample) -> Stored:
    found = Distributions((1, 2))
    chunk = Chunk(records=sample.records, size_bytes=1, bounds=sample.bounds, fields=sample.batch_fields)
    found.add(chunk, sent(chunk.records, chunk.bounds, chunk.fields))
    made = stored_distributions(found, 10)
    assert made
    return made


def workload_of(name: str, records: int = 4_000) -> tuple[FingerprintWorkload, Stored]:
    found = distributions_of(WORKLOADS[name].generate(records=records, seed=3))
    return FingerprintWorkload.of(TopicModel(sha256=name, number=1, is_only=True, distributions=found)), found


NAMES = ("service-events", "cdc-debezium", "compacted-changelog", "iot-telemetry")


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> tuple[FingerprintWorkload, Stored]:
    return workload_of(request.param)


def joined(samples: list[Sample]) -> list[list[Any]]:
    rows = [each.records.to_arrow() for each in samples]
    return [[row for table in rows for row in table[name].to_pylist()] for name in rows[0].column_names]


@pytest.mark.parametrize("batch_size", [None, 7])
def test_any_partitioning_gives_the_same_records(
    pair: tuple[FingerprintWorkload, Stored], batch_size: int | None
) -> None:
    workload = FingerprintWorkload(name="x", model=pair[0].model, batch_size=batch_size)
    start = BLOCK_RECORDS - 70
    cuts = [0, 1, 64, 70, 71, 133, 200]  # one cut is at the end of a block, one right after it
    pieces = [workload.generate(records=b - a, seed=3, start=start + a) for a, b in pairwise(cuts)]
    whole = workload.generate(records=200, seed=3, start=start)
    assert joined(pieces) == joined([whole])
    again = pickle.loads(pickle.dumps(workload))
    assert again == workload and hash(again) == hash(workload)
    assert joined([again.generate(records=200, seed=3, start=start)]) == joined([whole])
    assert joined([workload.generate(records=200, seed=4, start=start)]) != joined([whole])


def test_bounds_are_cut_to_the_slice(pair: tuple[FingerprintWorkload, Stored]) -> None:
    workload, _ = pair
    whole = workload.generate(records=1_000, seed=3)
    part = workload.generate(records=500, seed=3, start=250)
    inner = whole.bounds[(whole.bounds > 250) & (whole.bounds < 750)] - 250
    assert part.bounds.tolist() == [0, *inner.tolist(), 500]
    assert len(part.batch_fields.over(len(part.bounds) - 1)) > 0
    assert "records" not in part.__dict__ and part.records.shapes == part.shapes
    assert workload.generate(records=0, seed=3).bounds.tolist() == [0]
    assert (np.diff(workload.generate(records=200, seed=3, start=BLOCK_RECORDS - 70).shapes.offsets) > 0).all()


def mean(histogram: Any) -> float:
    return float(histogram.sum / max(histogram.members, 1))


def test_generated_records_have_the_distributions(pair: tuple[FingerprintWorkload, Stored]) -> None:
    workload, wanted = pair
    sample = workload.generate(records=20_000, seed=5)
    found, factor = distributions_of(sample), 20_000 / wanted.records
    for name in ("key_bytes", "value_bytes", "headers", "header_key_bytes", "header_value_bytes"):
        one, other = (sum(getattr(each, name) for each in stored.classes) for stored in (found, wanted))
        assert one == pytest.approx(other * factor, rel=0.03, abs=200), name
    for name in ("null_keys", "null_values"):
        one, other = (sum(getattr(each, name) for each in stored.classes) for stored in (found, wanted))
        assert abs(one - other * factor) <= 0.02 * 20_000, name
    assert mean(found.records_per_batch) == pytest.approx(mean(wanted.records_per_batch), rel=0.05)
    for name in ("time_steps_ms", "batch_time_steps_ms", "offset_gaps", "batch_offset_gaps"):
        assert mean(getattr(found, name)) == pytest.approx(mean(getattr(wanted, name)), rel=0.15, abs=0.3), name
    assert bool(found.producerless_records) == bool(wanted.producerless_records)
    assert abs(found.same_keys - wanted.same_keys) <= 0.1


def test_keys_appear_as_often() -> None:
    n = 8_000
    draws = np.random.default_rng(2)
    ids = np.concatenate([draws.integers(0, 50, n // 2), 1_000 + np.arange(n // 2)])  # 50 frequent keys, others once
    records = Records.from_lists(
        [b"v" * 20] * n, [hashlib.md5(b"%d" % i).hexdigest().encode() for i in draws.permutation(ids)]
    )
    bounds = np.arange(0, n + 1, 10)
    sample = Sample(shapes=records.shapes, bounds=bounds, batch_fields=BatchFields(), payload=lambda: records)
    wanted = distributions_of(sample)
    workload = FingerprintWorkload.of(TopicModel(sha256="0", number=1, is_only=True, distributions=wanted))
    made = workload.generate(records=n, seed=1).records
    counts = np.array([*Counter(made.keys()).values()])
    assert (counts == 1).sum() == pytest.approx(n / 2, rel=0.1)
    assert (counts >= 30).sum() == pytest.approx(50, abs=5)


@pytest.fixture(scope="module")
def text() -> bytes:
    return to_json(fingerprint(FOLDER / "activity-none.log", seed=0).fingerprint)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "schema": (lambda v: v.update(schema=1), "has schema 1"),
    "kind": (lambda v: v.update(kind="x"), "no fingerprint"),
    "absent": (lambda v: v["topics"][0].update(distributions=None), "too few records"),
    "members": (lambda v: v["topics"][0]["distributions"].update(least_members=999), "fewer than least_members"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_file_is_refused(name: str, text: bytes) -> None:
    change, words = CHANGES[name]
    value = json.loads(text)
    change(value)
    del value["sha256"]
    with pytest.raises(InvalidConfig, match=rf"orders\.json: .*{words}"):
        models_of(with_checksum(json.dumps(value).encode()), "orders.json")


DAMAGED = {
    "number": (b'"trailing_bytes": 0', b'"trailing_bytes": 1', "a value was changed"),
    "name": (b'"sha256"', b'"sha257"', "a value was changed"),
    "null": (b'"sha256": "', b'"sha256": null, "other": "', "a value was changed"),
    "object": (b'"sha256": "', b'"sha256": {}, "other": "', "a value was changed"),
    "no text": (b'"sha256"', b'"other": "\xff", "sha256"', "no fingerprint"),
    "no name": (b'"sha256"', b'"\xff": 1, "sha256"', "no fingerprint"),
    "many digits": (b'"sha256"', b'"other": ' + b"9" * 5000 + b', "sha256"', "no fingerprint"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused(name: str, text: bytes) -> None:
    old, new, words = DAMAGED[name]
    assert text.count(old) == 1
    with pytest.raises(InvalidConfig, match=rf"orders\.json: {words}"):
        models_of(text.replace(old, new), "orders.json")


def test_every_depth_of_nesting_is_refused(text: bytes) -> None:
    """The parser and the checksum reach Python's limit at different depths, and the limits depend on the version."""
    limits = [bisect_left(range(1, MOST_DEPTH), True, key=partial(_is_too_deep, use)) for use in (_parse, _write)]
    refused = set()
    for depth in {MOST_DEPTH, *(limit + near for limit in limits for near in range(-300, 20))}:
        with pytest.raises(InvalidConfig, match=r"orders\.json: ") as raised:
            models_of(text.replace(b'"sha256"', b'"other": ' + _nested(depth) + b', "sha256"'), "orders.json")
        refused.add(str(raised.value))
    assert max(limits) < MOST_DEPTH - 1
    assert len(refused) > 1 and any("no fingerprint" in message for message in refused)


MOST_DEPTH = 1_000_000


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _parse(depth: int) -> None:
    msgspec.json.decode(_nested(depth))


def _write(depth: int) -> None:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    json.dumps(found)


def _is_too_deep(use: Callable[[int], None], depth: int) -> bool:
    try:
        use(depth)
    except RecursionError:
        return True
    return False


def test_a_byte_order_mark_is_left_out(text: bytes) -> None:
    assert models_of(b"\xef\xbb\xbf" + text, "orders.json") == models_of(text, "orders.json")


def test_the_workload_names_the_file_by_its_hash(text: bytes) -> None:
    (model,) = models_of(text, "orders.json")
    workload = fitted(model)
    assert workload.name == f"fingerprint-{model.sha256[:12]}" and model.sha256 in workload.summary
    assert workload == fitted(model) and workload != FingerprintWorkload.of(model)


def test_it_has_no_byte_of_the_log(text: bytes) -> None:
    """The generated bytes come from the file alone: a long word of the log's records is not among them."""
    (model,) = models_of(text, "orders.json")
    data = bytes(fitted(model).generate(records=2_000, seed=1).records.value_data)
    log = (FOLDER / "activity-none.log").read_bytes()
    words = {log[at : at + 8] for at in range(len(log) - 8)}
    assert not {data[at : at + 8] for at in range(len(data) - 8)} & words
