"""Record the log segments of this folder anew from a real Kafka broker: `.venv/bin/python datasets/recorded/record.py`.

Needs Java 17 and Maven. Starts one broker on loopback, fills its topics with Recorder.java, stops it cleanly,
copies its segments here, and writes beside each what Kafka's own DumpLogSegments and FileRecords read in it.
With `--facts`: asks Kafka's readers again about the segments that are here, and records nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools import jvm

HERE = Path(__file__).resolve().parent
KAFKA_VERSION = "3.9.1"
CLUSTER_ID = "kfbenchRecordedLogs000"
WAIT_S = 60

SEGMENT = "00000000000000000000.log"
# name here -> (where the broker has it, what it is)
SEGMENTS = {
    "activity-none.log": (
        f"activity-none-0/{SEGMENT}",
        "user-activity JSON, 1 to 60 records between two flushes, idempotent producer",
    ),
    "activity-gzip.log": (f"activity-gzip-0/{SEGMENT}", "the same records, gzip"),
    "activity-snappy.log": (f"activity-snappy-0/{SEGMENT}", "the same records, snappy"),
    "activity-lz4.log": (f"activity-lz4-0/{SEGMENT}", "the same records, lz4"),
    "activity-zstd.log": (f"activity-zstd-0/{SEGMENT}", "the same records, zstd"),
    "service-headers.log": (
        f"service-headers-0/{SEGMENT}",
        "tracing headers, some duplicated, null, empty or outside ASCII; 6 records a batch",
    ),
    "telemetry.log": (
        f"telemetry-0/{SEGMENT}",
        "small sensor readings, one record a batch, no producer id",
    ),
    "edges.log": (
        f"edges-0/{SEGMENT}",
        "null and empty keys and values, varint boundaries, timestamps that go back, a spread of decades",
    ),
    "append-time.log": (f"append-time-0/{SEGMENT}", "message.timestamp.type=LogAppendTime"),
    "append-time-zstd.log": (f"append-time-zstd-0/{SEGMENT}", "message.timestamp.type=LogAppendTime, zstd"),
    "transactions.log": (
        f"transactions-0/{SEGMENT}",
        "two transactional producers, one of them lz4, with commit and abort markers",
    ),
    "changelog.log": (
        f"changelog-0/{SEGMENT}",
        "a segment that the cleaner compacted: holes, tombstones, delete horizons, an empty batch",
    ),
    "consumer-offsets.log": (
        f"__consumer_offsets-0/{SEGMENT}",
        "offset commits of three groups, some in transactions, one group deleted",
    ),
    "transaction-state.log": (f"__transaction_state-0/{SEGMENT}", "the transaction coordinator's log"),
    "cluster-metadata.log": (f"__cluster_metadata-0/{SEGMENT}", "the KRaft controller's log"),
    "cluster-metadata-bootstrap.checkpoint": (
        "bootstrap.checkpoint",
        "the snapshot that formatting the storage wrote, with header and footer control records",
    ),
}

# DumpLogSegments' batch line: its label, our column, the pattern of its value.
BATCH_FIELDS = [
    ("baseOffset", "base_offset", r"-?\d+"),
    ("lastOffset", "last_offset", r"-?\d+"),
    ("count", "count", r"\d+"),
    ("baseSequence", "base_sequence", r"-?\d+"),
    ("lastSequence", "last_sequence", r"-?\d+"),
    ("producerId", "producer_id", r"-?\d+"),
    ("producerEpoch", "producer_epoch", r"-?\d+"),
    ("partitionLeaderEpoch", "partition_leader_epoch", r"-?\d+"),
    ("isTransactional", "is_transactional", "true|false"),
    ("isControl", "is_control", "true|false"),
    ("deleteHorizonMs", "delete_horizon_ms", r"OptionalLong\.empty|OptionalLong\[\d+\]"),
    ("position", "position", r"\d+"),
    ("(?P<timestamp_type>CreateTime|LogAppendTime)", "max_timestamp_ms", r"-?\d+"),
    ("size", "size_bytes", r"\d+"),
    ("magic", "magic", r"\d+"),
    ("compresscodec", "codec", r"\w+"),
    ("crc", "crc", r"\d+"),
    ("isvalid", "is_valid", "true|false"),
]
BATCH = re.compile(" ".join(f"{label}: (?P<{column}>{value})" for label, column, value in BATCH_FIELDS))
RECORD = re.compile(r"\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)")
RECORD_COLUMNS = [
    *("offset", "timestamp_ms", "key_bytes", "value_bytes"),
    *("key_sha256_8", "value_sha256_8", "headers"),
]
WORDS: dict[str, bool | str] = {
    "true": True,
    "false": False,
    "CreateTime": "create",
    "LogAppendTime": "append",
}


def java(*arguments: str | Path) -> list[str]:
    return jvm.java(*arguments, class_path=[f"{jvm.fetched(HERE / 'pom.xml')}/*"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(logs: Path, broker_port: int, controller_port: int) -> str:
    return "\n".join([
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
        f"listeners=BROKER://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
        "listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=BROKER",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={logs}",
        # The records carry fixed times of the past: by default their segments would be deleted at once, and
        # a marker that the broker stamps with today's time would start a new segment.
        "log.retention.ms=-1",
        f"log.roll.ms={2**63 - 1}",
        "log.cleaner.backoff.ms=500",
        "group.initial.rebalance.delay.ms=0",
        "offsets.topic.num.partitions=1",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.num.partitions=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "",
    ])  # fmt: skip


@contextlib.contextmanager
def broker(folder: Path, logs: Path) -> Iterator[str]:
    """A running broker; yields its address and shuts it down cleanly on the way out."""
    broker_port, controller_port = free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(settings(logs, broker_port, controller_port))
    options = ["--cluster-id", CLUSTER_ID, "--config", str(properties)]
    subprocess.run(java("kafka.tools.StorageTool", "format", *options), check=True, stdout=subprocess.DEVNULL)
    output = folder / "broker.out"
    with output.open("wb") as stream:
        process = subprocess.Popen(java("kafka.Kafka", properties), stdout=stream, stderr=subprocess.STDOUT)
    try:
        wait_for("the broker's port", lambda: process.poll() is not None or answers(broker_port))
        if process.poll() is not None:
            raise SystemExit(f"the broker ended: {output.read_text()[-2000:]}")
        yield f"127.0.0.1:{broker_port}"
    finally:
        process.terminate()
        try:
            process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not there after {WAIT_S} s")
        time.sleep(0.2)


def compacted(logs: Path) -> bool:
    checkpoint = logs / "cleaner-offset-checkpoint"
    return checkpoint.exists() and "changelog 0 " in checkpoint.read_text()


def dump(path: Path) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """What DumpLogSegments says: a dict a batch; offset, timestamp, key and value size a record."""
    command = java("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", path)
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    batches, records = [], []
    for line in text.splitlines():
        if line.startswith("baseOffset: "):
            batches.append({name: plain(word) for name, word in parse(BATCH, line).groupdict().items()})
        elif line.startswith("| offset: "):
            records.append([int(number) for number in parse(RECORD, line).groups()])
    return batches, records


def parse(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    found = pattern.match(line)
    if found is None:
        raise SystemExit(f"DumpLogSegments wrote a line that we do not know: {line}")
    return found


def plain(word: str) -> bool | int | str:
    if word in WORDS:
        return WORDS[word]
    if word.startswith("OptionalLong"):
        return int(word[13:-1]) if word.endswith("]") else -1
    return int(word) if re.fullmatch(r"-?\d+", word) else word


def table(columns: list[str], rows: list[list[Any]]) -> str:
    """JSON with one row a line: small, and a change shows as one line."""
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f'{{"columns": {json.dumps(columns)}, "rows": [\n  {lines}]}}'


def write_facts(folder: Path) -> None:
    """Ask Kafka's own readers about each segment in `folder`; write NAME.json beside it, and index.json."""
    contents_file = folder / "contents.json"
    files = [folder / name for name in SEGMENTS]
    subprocess.run(java(HERE / "Recorder.java", "facts", contents_file, *files), check=True)
    contents = json.loads(contents_file.read_text())
    contents_file.unlink()
    index = []
    for name, (source, what) in SEGMENTS.items():
        path = folder / name
        # The tool reads a base offset out of the name, so it takes only names that Kafka gives.
        kafka_name = SEGMENT if name.endswith(".log") else "00000000000000000000-0000000000.checkpoint"
        with tempfile.TemporaryDirectory() as scratch:
            batches, records = dump(Path(shutil.copyfile(path, Path(scratch) / kafka_name)))
        if not all(batch.pop("is_valid") for batch in batches) or len(records) != len(contents[name]):
            raise SystemExit(f"{name}: Kafka's own readers do not agree that this is a sound segment")
        rows = [[*sizes, *content[2:]] for sizes, content in zip(records, contents[name], strict=True)]
        batch_table = table(list(batches[0]), [list(batch.values()) for batch in batches])
        facts = f'{{"batches": {batch_table},\n"records": {table(RECORD_COLUMNS, rows)}}}\n'
        (folder / f"{name}.json").write_text(facts, encoding="utf-8")
        data = path.read_bytes()
        entry: dict[str, str | int] = {"file": name, "what": what, "source": source}
        entry |= {"broker": f"Apache Kafka {KAFKA_VERSION}", "sha256": hashlib.sha256(data).hexdigest()}
        entry |= {"size_bytes": len(data), "batches": len(batches), "records": len(records)}
        index.append(entry)
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def record(out: Path) -> None:
    """Runs a broker and writes its segments, their facts and the index into `out`."""
    with tempfile.TemporaryDirectory(prefix="kfbench-record-") as scratch:
        folder = Path(scratch)
        logs, fresh = folder / "logs", folder / "fresh"
        fresh.mkdir()
        with broker(folder, logs) as address:
            subprocess.run(java(HERE / "Recorder.java", "produce", address), check=True)
            wait_for("the compacted changelog", lambda: compacted(logs))
        for name, (source, _) in SEGMENTS.items():
            shutil.copyfile(logs / source, fresh / name)
        write_facts(fresh)
        # Only a whole recording replaces the one that is there.
        for path in fresh.iterdir():
            shutil.copyfile(path, out / path.name)


def main() -> None:
    if sys.argv[1:] == ["--facts"]:
        write_facts(HERE)
    else:
        record(HERE)
        print(f"{len(SEGMENTS)} segments recorded into {HERE}", file=sys.stderr)


if __name__ == "__main__":
    main()
