"""`kfbench migrate`: phases, costs and break-even of a change of format, for generated records and for a given log."""

import json
from pathlib import Path

import numpy as np
import pytest

from kfbench import Records, read_log
from kfbench.batches import BatchFields
from kfbench.errors import IllegalCombination, KfbenchError
from kfbench.formats import FORMATS
from kfbench.migration import ask, subjects
from kfbench.migration.ask import ONLY_CPU, Migration, migrate
from kfbench.migration.bills import load
from kfbench.migration.plans import PLANS, matrix
from kfbench.migration.subjects import SampleLimits, Subject, codec_of, find_logs, log_subject
from kfbench.migration.text import migration_text, phase_matrix
from kfbench.money import Prices, Traffic
from tests.recorded import FOLDER

V3 = PLANS["v3"]
SEVEN = SampleLimits(size_bytes=1 << 20, batches=7)


@pytest.fixture(scope="module")
def found() -> Migration:
    return migrate(V3, "lz4", Traffic(), Prices(), [FOLDER / "activity-lz4.log"])


def test_a_given_log_is_one_subject(found: Migration) -> None:
    (subject,) = found.subjects
    log = read_log(FOLDER / "activity-lz4.log")
    assert subject.name == "activity-lz4.log"
    assert f"{len(log.records):,} records in {len(log):,} batches" in subject.about
    assert found.rows == matrix(V3, "lz4")
    assert subject.loads.keys() >= {"phase 1", "canary: that broker", "canary: the cluster", "phase 2"}


def test_the_break_even_is_that_of_the_loads(found: Migration) -> None:
    (subject,) = found.subjects
    other_cpu = subject.by_conversion.saved_without - subject.by_bill.saved_without
    assert f"{-other_cpu * 1_024:+.4f} $/TiB" in migration_text(found)
    for price, each in ((Prices(), subject.by_bill), (ONLY_CPU, subject.by_cpu)):
        then = load(V3, V3.phase("before"), subject.costs, Traffic(old_producers=1, old_consumers=1))
        now = load(V3, V3.phase("phase 2"), subject.costs, Traffic(old_consumers=0))
        saved = then.bill(Traffic(), price).total - now.bill(Traffic(), price).total
        assert each.saved_without == pytest.approx(saved)


def test_text_and_json_have_the_same_numbers(found: Migration) -> None:
    text, data = migration_text(found), json.loads(json.dumps(found.to_dict()))
    for phase in V3.phases:
        assert f"{phase.name} ({phase.source}): {phase.summary}" in text
    assert len(data["matrix"]) == len(found.rows)
    (subject,) = data["subjects"]
    for operation in subject["costs"]["operations"]:
        assert f"{operation['cpu_s_per_gib']:.2f}" in text
    assert subject["break_even"] != subject["break_even_bill"]
    for each in subject["loads"].values():
        assert f"{each['disk_bytes'] / 2**30:.3f}" in text
    assert data["traffic"]["old_consumers"] == 0.2 and data["prices"]["network_gb"] == 0.01


def test_the_shapes_are_measured_when_no_log_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "VALUE_BYTES", (10, 100))
    monkeypatch.setattr(subjects, "BATCH_SIZES", (1, 10))
    monkeypatch.setattr(ask, "SAMPLES", {"none": SampleLimits(size_bytes=2_000, batches=1_000)})
    shown = []

    def track(items: list[object], what: str) -> list[object]:
        shown.append((len(items), what))
        return items

    found = migrate(PLANS["kip31"], "none", Traffic(), Prices(), track=track)  # type: ignore[arg-type]
    assert [subject.name for subject in found.subjects] == ["10 B × 1", "10 B × 10", "100 B × 1", "100 B × 10"]
    assert shown == [(4, "measuring kip31")]


def test_the_page_shows_each_phase() -> None:
    blocks = ["\n".join(phase_matrix(V3, phase, "lz4")) for phase in V3.phases]
    page = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
    assert "```text\n" + "\n\n".join(blocks) + "\n```" in page


def subject_of(path: Path, sample: SampleLimits) -> Subject:
    [(name, segments)] = find_logs([path]).topics.items()
    return log_subject(name, segments, sample)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_control_batches_are_left_out(tmp_path: Path) -> None:
    records = Records.from_lists([b"a", b"\0" * 6, b"c"], keys=[b"k", b"\0\0\0\1", b"k"], offsets=[5, 9, 20])
    control = BatchFields(is_control=[False, True, False], producer_id=7, producer_epoch=0, base_sequence=[0, -1, 1])
    data = FORMATS["v2"].encode(records, 1, batch_fields=control).data.tobytes()
    subject = subject_of(written(tmp_path / "0.log", data), SampleLimits(size_bytes=1 << 20, batches=2))
    assert len(subject.records) == len(records) - 1
    assert subject.records.shapes.offsets.tolist() == [0, 1]
    assert subject.batch_fields.rows["base_sequence"].tolist() == [0, 1]
    assert subject.batch_fields.rows["producer_id"].tolist() == [7, 7]


def test_a_long_log_gives_its_first_batches(tmp_path: Path) -> None:
    small = Records.from_lists([b"x"] * 20)
    subject = subject_of(written(tmp_path / "0.log", FORMATS["v2"].encode(small, 1).data.tobytes()), SEVEN)
    assert len(subject.bounds) - 1 == len(subject.records) == 7  # the log has enough batches, so none is repeated
    wide = Records.from_lists([b"x" * 400_000] * 10)
    subject = subject_of(written(tmp_path / "1.log", FORMATS["v2"].encode(wide, 1).data.tobytes()), SEVEN)
    assert np.diff(subject.bounds).tolist() == [1, 1, 1]


def test_a_short_log_is_repeated(tmp_path: Path) -> None:
    log = FORMATS["v2"].encode(
        Records.from_lists([b"x" * 100] * 6, offsets=[3, 4, 5, 9, 10, 11]),
        3,
        batch_fields=BatchFields(producer_id=[7, 8], producer_epoch=0, base_sequence=[0, 5]),
    )
    path = written(tmp_path / "0.log", log.data.tobytes())
    subject = subject_of(path, SampleLimits(size_bytes=2_000, batches=100))
    assert np.diff(subject.bounds).tolist() == [3, 3] * 3  # a repetition has 600 bytes
    assert subject.records.shapes.offsets.tolist() == list(range(18))
    assert subject.batch_fields.rows["producer_id"].tolist() == [7, 8] * 3
    assert subject.about.endswith("6 records in 2 batches of " + str(path) + ", repeated 3 times")


def test_no_more_of_a_log_is_read_than_is_measured(tmp_path: Path) -> None:
    log = FORMATS["v2"].encode(Records.from_lists([b"x" * 1_000] * 100), 1).data.copy()
    log[-1] ^= 1
    path = written(tmp_path / "0.log", log.tobytes())
    subject = subject_of(path, SampleLimits(size_bytes=5_000, batches=100))
    assert len(subject.records) == 5
    at = len(log) // 100 * 99
    subject = subject_of(path, SampleLimits(size_bytes=1 << 20, batches=100))
    assert [each.position for each in subject.damage[str(path)]] == [at] and len(subject.bounds) == 100
    assert subject.left_out[0].startswith(f"{len(log) - at:,} bytes of damage: batch at byte {at}: crc: ")


@pytest.mark.parametrize("is_transactional", [False, True])
def test_producer_ids_are_left_out_where_brokers_refuse_them(tmp_path: Path, is_transactional: bool) -> None:
    fields = BatchFields(producer_id=7, producer_epoch=0, base_sequence=[0, 3], is_transactional=is_transactional)
    log = FORMATS["v2"].encode(Records.from_lists([b"x" * 50] * 6), 3, batch_fields=fields)
    path = written(tmp_path / "0.log", log.data.tobytes())
    found = migrate(PLANS["kip724"], "none", Traffic(), Prices(), [path])
    assert "0.log: measured without the producer ids of " in migration_text(found)
    assert found.to_dict()["subjects"][0]["left_out"]
    assert "idempotent: refused (UNSUPPORTED_FOR_MESSAGE_FORMAT)" in migration_text(found)
    assert migrate(V3, "none", Traffic(), Prices(), [path]).subjects[0].left_out == ()


def test_records_that_a_broker_refuses_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = BatchFields(producer_id=7, producer_epoch=0, base_sequence=0)
    log = FORMATS["v2"].encode(Records.from_lists([b"x" * 50] * 6), 6, batch_fields=fields)
    path = written(tmp_path / "0.log", log.data.tobytes())
    monkeypatch.setattr(ask, "without_producers", lambda subject: subject)
    with pytest.raises(KfbenchError) as refusal:
        migrate(PLANS["kip724"], "none", Traffic(), Prices(), [path])
    assert str(refusal.value).startswith(
        f"{path}: plan kip724: a broker refuses these records: UNSUPPORTED_FOR_MESSAGE_FORMAT: "
    )


def test_logs_that_cannot_be_used(tmp_path: Path) -> None:
    sound = FORMATS["v2"].encode(Records.from_lists([b"x"] * 3), 3).data.tobytes()
    for data, message in (
        (sound[:-1] + b"?", "no batch can be read: batch at byte 0: crc"),
        (sound[:20], "no whole batch in 20 bytes: is this a log segment"),
        (b"", "the file is empty"),
        (bytes(40), "the file is empty"),
    ):
        with pytest.raises(KfbenchError, match=message):
            migrate(V3, "none", Traffic(), Prices(), [written(tmp_path / "a", data)])
    with pytest.raises(KfbenchError):
        migrate(V3, "none", Traffic(), Prices(), [tmp_path])
    with pytest.raises(IllegalCombination, match="v0 has no zstd"):
        migrate(PLANS["kip31"], "zstd", Traffic(), Prices())


def test_topics_of_a_folder_are_measured_with_the_codec_of_their_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kfbench.migration.ask.COMPRESSED", SampleLimits(size_bytes=2_000, batches=9, rounds=3))
    monkeypatch.setattr("kfbench.migration.ask.MOST_TOPICS", 2)
    for topic, name in (("a", "activity-gzip.log"), ("b", "activity-lz4.log"), ("c", "activity-lz4.log")):
        for partition in range(2 if topic == "c" else 1):
            folder = tmp_path / f"{topic}-{partition}"
            folder.mkdir()
            (folder / f"{0:020}.log").write_bytes((FOLDER / name).read_bytes())
    logs = find_logs([tmp_path]).topics
    assert list(logs) == ["c", "b", "a"] and len(logs["c"]) == 2
    assert (codec_of(logs["b"]), codec_of(logs["a"])) == ("lz4", "gzip")
    found = migrate(V3, None, Traffic(), Prices(), [tmp_path])
    assert [subject.name for subject in found.subjects] == ["c", "b"] and found.unmeasured == ("a (smaller)",)
    assert found.codec == "lz4"


def test_a_log_without_records_of_a_client_has_its_size_in_the_message(tmp_path: Path) -> None:
    empty = FORMATS["v2"].encode(Records.from_lists([]), [0, 0]).data.tobytes()
    path = written(tmp_path / "0.log", empty)
    with pytest.raises(KfbenchError, match=r"no batch of a client in 61 bytes$"):
        subject_of(path, SampleLimits(size_bytes=2_000, batches=9))


def test_the_codec_of_a_topic_is_that_of_its_clients() -> None:
    [segments] = find_logs([FOLDER / "transaction-state.log"]).topics.values()
    assert codec_of(segments) == "none"
    with pytest.raises(IllegalCombination, match="--codec"):
        migrate(PLANS["kip31"], None, Traffic(), Prices(), [FOLDER / "activity-zstd.log"])
