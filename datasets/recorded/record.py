"""Record the log segments of this folder anew from real Kafka brokers: `.venv/bin/python datasets/recorded/record.py`.

Needs Java 17 and Maven. Starts a broker on loopback, fills its topics with Recorder.java, stops it cleanly,
copies its segments here; then the same with an older broker; and writes beside each what Kafka's own DumpLogSegments
and FileRecords read in it.
With `--facts`: asks Kafka's readers again about the segments that are here, and records nothing.
With `--older`: records the older broker's segments only.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tools import broker, jvm
from tools.broker import SEGMENT
from tools.loopback import wait_for

HERE = Path(__file__).resolve().parent
OLDER_PRODUCER_POM = HERE / "pom-0.10.xml"
# name here -> (where the broker has it, what it is)
NEWER_SEGMENTS = {
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
        "tracing headers, some duplicated, null, empty or outside ASCII; 6 records per batch",
    ),
    "telemetry.log": (
        f"telemetry-0/{SEGMENT}",
        "small sensor readings, one record per batch, no producer id",
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
    "changelog-transactions.log": (
        f"changelog-transactions-0/{SEGMENT}",
        "transactions, a third of them aborted, compacted twice: markers outlive their records, with delete horizons",
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

V0_OR_V1 = {"v0": "message.format.version=0.9.0", "v1": "message.format.version=0.10.2"}
OLDER_SEGMENTS = {
    **{
        f"activity-{magic}-{codec}.log": (
            f"activity-{magic}-{codec}-0/{SEGMENT}",
            f"user-activity JSON, {asked}, {codec}",
        )
        for magic, asked in V0_OR_V1.items()
        for codec in ("none", "gzip", "snappy", "lz4")
    },
    **{
        f"edges-{magic}.log": (
            f"edges-{magic}-0/{SEGMENT}",
            f"{asked}, in each codec: null and empty keys and values, timestamps that go back, a value of 70,000 bytes",
        )
        for magic, asked in V0_OR_V1.items()
    },
    **{
        f"changelog-{magic}.log": (
            f"changelog-{magic}-0/{SEGMENT}",
            f"{asked}, compacted: holes between messages and inside the sets of each codec, tombstones",
        )
        for magic, asked in V0_OR_V1.items()
    },
    "append-time-v1.log": (
        f"append-time-v1-0/{SEGMENT}",
        f"{V0_OR_V1['v1']} and message.timestamp.type=LogAppendTime, each codec",
    ),
    "older-producer-v1.log": (
        f"older-producer-v1-0/{SEGMENT}",
        f"{V0_OR_V1['v1']}, each codec, from Kafka 0.10.2.2's producer: sets of v1 that the broker took as they came",
    ),
    "older-producer-append-time-v1.log": (
        f"older-producer-append-time-v1-0/{SEGMENT}",
        "the same with message.timestamp.type=LogAppendTime, which the broker wrote around the sets and not into them",
    ),
    "upgraded.log": (
        f"upgraded-0/{SEGMENT}",
        "a topic upgraded from v0 to v1 to v2, then headers, zstd and transactions",
    ),
    "changelog-upgraded.log": (
        f"changelog-upgraded-0/{SEGMENT}",
        "a topic upgraded from v0 to v1 to v2, then compacted",
    ),
    "changelog-upgraded-uncompacted.log": (
        f"changelog-upgraded-uncompacted-0/{SEGMENT}",
        "what changelog-upgraded.log was before the cleaner came: the same in a topic that is not compacted",
    ),
    "consumer-offsets-upgraded.log": (
        f"__consumer_offsets-0/{SEGMENT}",
        "offset commits of two groups, upgraded from v0 to v1 to v2; one group deleted again and again",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What one broker writes: `jobs` fill it, the first segments of the topics `compacted` are cleaned.

    jobs: (pom, the source that its jars run, what that takes before the broker's address).
    """

    version: str
    pom: Path
    running: Callable[[Path, Path], AbstractContextManager[broker.Broker]]
    jobs: Sequence[tuple[Path, Path, Sequence[str]]]
    compacted: Sequence[str]
    segments: Mapping[str, tuple[str, str]]


NEWER = Recording(
    version=broker.KAFKA_VERSION,
    pom=broker.POM,
    running=broker.running,
    jobs=[(broker.POM, HERE / "Recorder.java", ["produce"])],
    compacted=["changelog", "changelog-transactions"],
    segments=NEWER_SEGMENTS,
)
OLDER = Recording(
    version=broker.OLDER_KAFKA_VERSION,
    pom=broker.OLDER_POM,
    running=broker.running_older,
    jobs=[
        (broker.POM, HERE / "Recorder.java", ["older"]),
        (OLDER_PRODUCER_POM, HERE / "OlderProducer.java", ["older-producer-v1", "older-producer-append-time-v1"]),
    ],
    compacted=["changelog-v0", "changelog-v1", "changelog-upgraded"],
    segments=OLDER_SEGMENTS,
)
RECORDINGS = (NEWER, OLDER)

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
    ("(?P<timestamp_type>CreateTime|LogAppendTime|NoTimestampType)", "max_timestamp_ms", r"-?\d+"),
    ("size", "size_bytes", r"\d+"),
    ("magic", "magic", r"\d+"),
    ("compresscodec", "codec", r"\w+"),
    ("crc", "crc", r"\d+"),
    ("isvalid", "is_valid", "true|false"),
]
# Of a message or set of v0 or v1 it says less.
OLDER_BATCH_FIELDS = [("offset", "last_offset", r"\d+"), *BATCH_FIELDS[11:]]
BATCH, OLDER_BATCH = (
    re.compile(" ".join(f"{label}: (?P<{column}>{value})" for label, column, value in fields))
    for fields in (BATCH_FIELDS, OLDER_BATCH_FIELDS)
)
RECORD = re.compile(
    r"\| offset: (\d+) (?:CreateTime|LogAppendTime|NoTimestampType): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)"
)
RECORD_COLUMNS = [
    *("offset", "timestamp_ms", "key_bytes", "value_bytes"),
    *("key_sha256_8", "value_sha256_8", "headers"),
]
WORDS: dict[str, bool | str] = {
    "true": True,
    "false": False,
    "CreateTime": "create",
    "LogAppendTime": "append",
    "NoTimestampType": "none",
}


def java(*arguments: str | Path) -> list[str]:
    return broker.java(jvm.fetched(broker.POM), *arguments)


def compacted(logs: Path, topic: str) -> bool:
    """Whether the cleaner has come as far as it may: to the segment that is written to."""
    checkpoint, active = logs / "cleaner-offset-checkpoint", max((logs / f"{topic}-0").glob("*.log"))
    return checkpoint.exists() and f"{topic} 0 {int(active.stem)}" in checkpoint.read_text().splitlines()


def dump(paths: Sequence[Path]) -> Iterator[tuple[list[dict[str, Any]], list[list[int]]]]:
    """What DumpLogSegments says of each file: a dict a batch; offset, timestamp, key and value size a record."""
    files = ",".join(map(str, paths))
    command = java("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", files)
    text = subprocess.run(command, env=jvm.environment(), check=True, capture_output=True, encoding="utf-8").stdout
    for path, part in zip(paths, re.split("^Dumping ", text, flags=re.MULTILINE)[1:], strict=True):
        dumped, *lines = part.splitlines()
        if dumped != str(path):
            raise SystemExit(f"DumpLogSegments read {dumped} where it was asked for {path}")
        batches, records = [], []
        for line in lines:
            if line.startswith(("baseOffset: ", "offset: ")):
                found = parse(BATCH if line.startswith("base") else OLDER_BATCH, line)
                batches.append({name: plain(word) for name, word in found.groupdict().items()})
            elif line.startswith("| offset: "):
                records.append([int(number) for number in parse(RECORD, line).groups()])
        yield batches, records


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


def agreed(dumped: dict[str, Any], read: dict[str, Any]) -> dict[str, Any]:
    """One batch as DumpLogSegments and FileRecords have it, in BATCH's order."""
    if not dumped["is_valid"] or dumped | read != read | dumped:
        raise SystemExit(f"Kafka's own readers do not agree on a sound batch: {dumped} and {read}")
    both = dumped | read
    return {column: both[column] for column in BATCH.groupindex if column != "is_valid"}


def write_facts(folder: Path) -> None:
    """Ask Kafka's own readers about each segment in `folder`; write NAME.json beside it, and index.json."""
    contents_file = folder / "contents.json"
    entries = [(recording, name, *found) for recording in RECORDINGS for name, found in recording.segments.items()]
    files = [folder / name for _, name, *_ in entries]
    command = java(HERE / "Recorder.java", "facts", contents_file, *files)
    subprocess.run(command, env=jvm.environment(), check=True)
    contents = json.loads(contents_file.read_text())
    contents_file.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        copies = []
        for path in files:
            # The tool reads a base offset out of the name, so it takes only names that Kafka gives.
            kafka_name = SEGMENT if path.suffix == ".log" else "00000000000000000000-0000000000.checkpoint"
            copies.append(Path(scratch) / path.name / kafka_name)
            copies[-1].parent.mkdir()
            shutil.copyfile(path, copies[-1])
        dumped = list(dump(copies))
    index = []
    for (recording, name, source, what), (batches, records) in zip(entries, dumped, strict=True):
        path, read = folder / name, contents[name]
        fields = [list(agreed(*each).values()) for each in zip(batches, read["batches"], strict=True)]
        columns = [column for column in BATCH.groupindex if column != "is_valid"]
        rows = [[*sizes, *content[2:]] for sizes, content in zip(records, read["records"], strict=True)]
        facts = f'{{"batches": {table(columns, fields)},\n"records": {table(RECORD_COLUMNS, rows)}}}\n'
        (folder / f"{name}.json").write_text(facts, encoding="utf-8")
        data = path.read_bytes()
        entry: dict[str, str | int] = {"file": name, "what": what, "source": source}
        entry |= {"broker": f"Apache Kafka {recording.version}", "sha256": hashlib.sha256(data).hexdigest()}
        entry |= {"size_bytes": len(data), "batches": len(batches), "records": len(records)}
        index.append(entry)
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def record(out: Path, recordings: Sequence[Recording]) -> None:
    """Runs their brokers and writes the segments, their facts and the index into `out`.

    Other recordings' segments stay those of this folder.
    """
    with tempfile.TemporaryDirectory(prefix="kfbench-record-") as scratch:
        fresh = Path(scratch) / "fresh"
        fresh.mkdir()
        for recording in RECORDINGS:
            if recording in recordings:
                folder = Path(scratch) / recording.version
                folder.mkdir()
                _recorded(recording, folder, fresh)
            else:
                for name in recording.segments:
                    shutil.copyfile(HERE / name, fresh / name)
        write_facts(fresh)
        # Only a whole recording replaces the one that is there.
        for path in fresh.iterdir():
            shutil.copyfile(path, out / path.name)


def _recorded(recording: Recording, folder: Path, fresh: Path) -> None:
    with recording.running(jvm.fetched(recording.pom), folder) as kafka:
        for pom, source, arguments in recording.jobs:
            command = broker.java(jvm.fetched(pom), source, *arguments, kafka.address)
            subprocess.run(command, env=jvm.environment(), check=True)
        for topic in recording.compacted:
            wait_for(f"the compacted {topic}", partial(compacted, kafka.logs, topic), broker.WAIT_S)
    for name, (segment, _) in recording.segments.items():
        shutil.copyfile(kafka.logs / segment, fresh / name)


def main() -> None:
    if sys.argv[1:] == ["--facts"]:
        write_facts(HERE)
        return
    recordings = [OLDER] if sys.argv[1:] == ["--older"] else RECORDINGS
    record(HERE, recordings)
    count = sum(len(recording.segments) for recording in recordings)
    print(f"{count} segments recorded into {HERE}", file=sys.stderr)


if __name__ == "__main__":
    main()
