"""Compare our broker code with Apache Kafka's on generated cases: LogValidator, down-conversion, filterTo."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kfbench import EncodedLog, read_log
from kfbench.arrays import as_bytes
from kfbench.broker.append import append
from kfbench.formats import Entries
from kfbench.measure.golden.steps import append_options
from tests.formats.fuzz import sealed
from tests.oracle.broker_cases import CHUNK, OPS, BrokerCase, broker_cases
from tests.oracle.broker_judge import ask_both, disagreement, other_log
from tests.oracle.client import OLDER, Kafka
from tests.oracle.differences import OF_BROKERS, difference
from tests.oracle.golden import GOLDEN

SEED = 20261121
CASES = {"validate": 5000, "convert": 3000, "compact": 3000}
AT_ONCE = 250
SAME = "the same"

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def is_supported(case: BrokerCase, line: str) -> bool:
    """Return whether this version of Kafka does what our broker paths do: 4.x keeps no older format."""
    if line == OLDER or case.op == "validate":
        return True
    return case.op == "compact" and set(Entries.of(as_bytes("log", case.source)).magics.tolist()) == {2}


@pytest.mark.parametrize("op", OPS)
def test_our_broker_paths_agree_with_kafka(op: str, kafka: Kafka, part: int, verdicts: Counter[str]) -> None:
    """Results are equal, or differ as listed."""
    held, disagreements, count = Counter[str](), [], CASES[op] // part
    cases = [case for case in broker_cases(op, SEED, count) if is_supported(case, kafka.line)]
    for first in range(0, len(cases), AT_ONCE):
        for found in ask_both(kafka, cases[first : first + AT_ONCE]):
            wrong = disagreement(kafka, found)
            known = difference(OF_BROKERS, found) if wrong else SAME
            if known:
                held[known] += 1
            else:
                disagreements.append(f"{wrong}\n{found.case.options}\n{found.case.source.hex()}")
    verdicts[f"cases of {op} that agree with Apache Kafka's broker"] += held[SAME]
    assert not disagreements, f"{len(disagreements)} cases; the smallest:\n{min(disagreements, key=len)}"
    if kafka.line == OLDER:
        assert held.total() == count
    else:
        assert (held.total() > count / 4) == (op != "convert")
    assert held[SAME] >= 0.9 * held.total()


def test_many_requests_at_once_agree_with_kafka(kafka: Kafka) -> None:
    cases, joined = list(broker_cases("validate", SEED + 1, 1000)), 0
    for first in range(0, len(cases), CHUNK):
        step = cases[first].options
        alike = [replace(case, options=step) for case in cases[first : first + CHUNK]]
        taken = [
            found
            for found in ask_both(kafka, alike)
            if not found.refused and not disagreement(kafka, found) and not read_log(found.case.source).trailing_bytes
        ]
        if not taken:
            continue
        positions = np.cumsum([0, *(len(found.case.source) for found in taken)])
        data = np.frombuffer(b"".join(found.case.source for found in taken), np.uint8)
        bases = np.full(len(taken), step["baseOffset"])
        made = append(EncodedLog(data=data, positions=positions), **append_options(step) | {"base_offset": bases})
        joined += len(taken)
        for i, found in enumerate(taken):
            counts = found.notes["validation"]
            assert made.max_timestamp_ms[i] == counts["maxTimestampMs"]
            assert not other_log(found.kafkas, made.data[made.positions[i] : made.positions[i + 1]].tobytes())
        assert made.converted_records == sum(found.notes["validation"]["numRecordsConverted"] for found in taken)
        assert np.asarray(made.next_offset).tolist() == [found.notes["validation"]["nextOffset"] for found in taken]
    assert joined >= 500


def test_kafka_refuses_and_takes_enough(kafka: Kafka) -> None:
    """The cases cause every error of Kafka's validator, and most of them are valid."""
    cases = list(broker_cases("validate", SEED, 1000))
    found = Counter((one.refused or {}).get("error") for one in ask_both(kafka, cases))
    assert found[None] >= 600
    errors = {"INVALID_RECORD", "INVALID_TIMESTAMP", "CORRUPT_MESSAGE", "UNSUPPORTED_FOR_MESSAGE_FORMAT"}
    assert min(found[error] for error in errors) >= 5


VECTORS = {
    "zstd before v2": "validate_v2_none_to_v1_zstd",
    "headers before v2": "validate_v2_none_headers_to_v1",
    "transactions before v2": "validate_v2_none_transactional_to_v1",
    "producer state": "validate_v2_half_a_producer_to_gzip",
    "skipped keys": "validate_v2_gzip_holes_coordinator",
    "control built again": "validate_v2_gzip_commit_to_zstd",
    "empty before v2": "compaction_v1_empty_kept",
}


def _case(name: str, kafka: Kafka) -> BrokerCase:
    vector = VECTORS.get(name, VECTORS["control built again"])
    sidecar = json.loads((GOLDEN / f"{vector}.json").read_text(encoding="utf-8"))
    step, source = sidecar["spec"]["steps"][-1], bytes.fromhex(sidecar["source"])
    if name not in VECTORS:  # no golden vector has it, because Kafka's reader refuses what its validator accepts
        assert name == "control records" and step["origin"] == "COORDINATOR"
        source = kafka.write({"records": [{"key": "6b", "value": "76"}]})
        source = sealed(source[:21] + b"\0\x20" + source[23:])
        step |= {"sourceCompression": "none", "targetCompression": "none"}
    return BrokerCase(op=step["op"], source=source, options=step)


@pytest.mark.parametrize("name", [known.name for known in OF_BROKERS])
def test_a_difference_is_still_there(name: str, kafka: Kafka) -> None:
    case = _case(name, kafka)
    if not is_supported(case, kafka.line):
        pytest.skip(f"Kafka {kafka.line} does not {case.op} this")
    (found,) = ask_both(kafka, [case])
    assert disagreement(kafka, found)
    assert difference(OF_BROKERS, found) == name
