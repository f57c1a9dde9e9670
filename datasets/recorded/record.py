"""Record the log segments of this folder anew from a real Kafka broker: `.venv/bin/python datasets/recorded/record.py`.

Needs Java 17 and Maven. Starts one broker on loopback, fills its topics with Recorder.java, stops it cleanly,
copies its segments here, and writes beside each what Kafka's own DumpLogSegments and FileRecords read in it.
With `--facts`: asks Kafka's readers again about the segments that are here, and records nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools import broker, jvm
from tools.broker import KAFKA_VERSION, SEGMENT

HERE = Path(__file__).resolve().parent
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
    return broker.java(jvm.fetched(broker.POM), *arguments)


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
        fresh = folder / "fresh"
        fresh.mkdir()
        with broker.running(jvm.fetched(broker.POM), folder) as kafka:
            subprocess.run(java(HERE / "Recorder.java", "produce", kafka.address), check=True)
            broker.wait_for("the compacted changelog", lambda: compacted(kafka.logs))
        for name, (source, _) in SEGMENTS.items():
            shutil.copyfile(kafka.logs / source, fresh / name)
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
