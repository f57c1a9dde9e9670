"""Record real software's own log lines from a real Kafka broker: `.venv/bin/python -m tools.record_lines`.

The software runs on this machine and its lines pass tools/line_filter.py. Kafka's Java producer sends each line as one
record. The segments, index.json and the table of README.md are written into datasets/lines.
Needs Java 17, Maven and Go. Takes about ten minutes.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pyspark

from tools import broker, jvm
from tools.line_filter import LineFilter

REPOSITORY: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = REPOSITORY / "datasets" / "lines"
# Of each topic the first bytes are recorded, so that the segments stay small in git.
TOPIC_BYTES: Final = 8_000_000
STORED: Final = ("compression.type=zstd", "compression.zstd.level=19", "batch.size=262144", "linger.ms=1000")
AS_SENT: Final = ("linger.ms=5", "batch.size=1024")  # the observed broker's producer: many small requests
GO_PACKAGES: Final = (
    *("strings", "bytes", "strconv", "text/template", "encoding/json", "sort", "math/big", "regexp", "time"),
    *("unicode/utf8", "path/filepath", "go/parser", "html/template", "fmt", "net/url", "encoding/xml", "slices", "io"),
)
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


class Topic(NamedTuple):
    """A topic of lines.

    stamps: patterns of a line's time, the best first. time_format: the format of the pattern's group, `ms` for
    milliseconds since the epoch, `iso` for ISO 8601.
    """

    software: str
    licence: str
    what: str
    stamps: tuple[str, ...]
    time_format: str


ISO_AT_START: Final = r"^\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3}[+Z\d]*)\]"
TOPICS: Final = {
    "kafka-broker": Topic("Apache Kafka", "Apache-2.0", "the broker's log at level DEBUG", (ISO_AT_START,), "iso"),
    "kafka-requests": Topic(
        "Apache Kafka", "Apache-2.0", "the broker's request log, JSON inside text", (ISO_AT_START,), "iso"
    ),
    "jvm-gc": Topic(
        "OpenJDK",
        "GPL-2.0 with Classpath exception",
        "the broker JVM's gc and safepoint log, level debug",
        (ISO_AT_START,),
        "iso",
    ),
    "spark-driver": Topic(
        "Apache Spark",
        "Apache-2.0",
        "the driver's log at level DEBUG",
        (r"^(\d\d/\d\d/\d\d \d\d:\d\d:\d\d)",),
        "%y/%m/%d %H:%M:%S",
    ),
    "spark-events": Topic(
        "Apache Spark",
        "Apache-2.0",
        "the event log, JSON lines",
        tuple(
            rf'"{name}":\s*([1-9]\d{{12}})'
            for name in ("Finish Time", "Completion Time", "Launch Time", "Submission Time", "Timestamp", "time")
        ),
        "ms",
    ),
    "go-test": Topic(
        "Go", "BSD-3-Clause", "`go test -json` of the standard library, JSON lines", (r'"Time":"([^"]+)"',), "iso"
    ),
}


class Stamped(NamedTuple):
    timestamp_ms: int
    text: str


def time_ms(topic: Topic, line: str) -> int | None:
    """Return the line's own time in ms since the epoch, or None."""
    found = next((found for stamp in topic.stamps if (found := re.search(stamp, line))), None)
    if found is None:
        return None
    text = found[1]
    if topic.time_format == "ms":
        return int(text)
    if topic.time_format == "iso":
        digits = re.sub(r"([.,]\d{3})\d*", r"\1", text).replace(",", ".")
        moment = datetime.fromisoformat(digits)
    else:
        moment = datetime.strptime(text, topic.time_format).replace(tzinfo=UTC)
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000)


def stamped(topic: Topic, lines: list[str]) -> Iterator[Stamped]:
    """Yield the lines with their times. A line without a time has that of the line before it."""
    times = [time_ms(topic, line) for line in lines]
    last = next(time for time in times if time is not None)
    for time, line in zip(times, lines, strict=True):
        last = last if time is None else time
        yield Stamped(last, line)


def first_lines(path: Path, line_filter: LineFilter) -> list[str]:
    """Return the filtered lines of a log file in their order, up to TOPIC_BYTES. Blank lines are left out."""
    lines: list[str] = []
    left_bytes = TOPIC_BYTES
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        text = line_filter.filtered(line)
        left_bytes -= len(text.encode())
        if left_bytes < 0:
            break
        if text.strip():
            lines.append(text)
    return lines


def environment(home: Path) -> dict[str, str]:
    """Return a small environment, so that no variable of the caller appears in a log."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    local = {"SPARK_LOCAL_HOSTNAME": "localhost", "SPARK_LOCAL_IP": "127.0.0.1"}
    user = {"HOME": str(home), "USER": "user", "SPARK_USER": "user", "HADOOP_USER_NAME": "user"}
    return {**kept, **local, **user, "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(REPOSITORY)}


def produce(lines: Path, topic: str, address: str, settings: tuple[str, ...]) -> None:
    source = FOLDER / "LineProducer.java"
    command = broker.java(jvm.fetched(broker.POM), source, lines, topic, address, *settings)
    subprocess.run(command, env=jvm.environment(), check=True)


def write_go_log(folder: Path) -> None:
    """Test packages of the standard library. Compiled packages come from the caller's cache, so this is fast again."""
    cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    command = ["go", "test", "-count=1", "-json", *GO_PACKAGES]
    with (folder / "go-test.txt").open("wb") as out:
        variables = {**environment(folder), "GOCACHE": cache}
        subprocess.run(command, env=variables, stdout=out, stderr=subprocess.DEVNULL, cwd=folder, check=False)


def write_spark_logs(folder: Path) -> None:
    command = [sys.executable, str(FOLDER / "spark_job.py"), str(folder)]
    subprocess.run(command, env=environment(folder), stderr=subprocess.DEVNULL, cwd=folder, check=True)
    (events,) = (folder / "events").iterdir()
    shutil.move(events, folder / "spark-events.txt")


def write_broker_logs(folder: Path, lines: Path) -> None:
    """Run a broker that logs at level DEBUG. Its clients are Recorder.java's and a producer of `lines`."""
    settings = FOLDER / "log4j.properties"
    options = [
        *(f"-Dlog4j.configuration={settings.as_uri()}", f"-Dlines.folder={folder}"),
        *("-Duser.name=user", "-Duser.home=/home/user", "-Duser.timezone=UTC"),
        f"-Xlog:gc*=debug,safepoint=debug:file={folder / 'jvm-gc.txt'}:time,level,tags:filecount=0",
    ]
    subject = folder / "subject"
    subject.mkdir()
    with broker.running(jvm.fetched(FOLDER / "pom.xml"), subject, options) as observed:
        recorder = broker.java(jvm.fetched(broker.POM), broker.RECORDED / "Recorder.java", "produce", observed.address)
        subprocess.run(recorder, env=jvm.environment(), check=True)
        requests = folder / "kafka-requests.txt"
        for _ in range(20):
            if requests.stat().st_size >= TOPIC_BYTES:
                break
            produce(lines, "lines", observed.address, AS_SENT)


def versions() -> dict[str, str]:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    go = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    found = {"OpenJDK": re.search(r'"([\d.]+)"', java), "Go": re.search(r"go([\d.]+)", go)}
    return {
        "Apache Kafka": broker.KAFKA_VERSION,
        "Apache Spark": pyspark.__version__,
        **{name: match[1] for name, match in found.items() if match},
    }


def record(out: Path) -> None:
    """Run the software, produce its lines to a broker, and write the segments and their index into `out`."""
    with tempfile.TemporaryDirectory(prefix="kfbench-lines-") as scratch:
        folder = Path(scratch)
        folders = {folder: "/var/lib/lines", jvm.CACHE: "/opt/cache", REPOSITORY: "/opt/kfbench"}
        folders |= {REPOSITORY.resolve(): "/opt/kfbench", Path(pyspark.__file__).resolve().parent: "/opt/spark"}
        line_filter = LineFilter({**folders, Path(sys.prefix).resolve(): "/opt/python"})
        write_go_log(folder)
        write_spark_logs(folder)
        lines = {
            name: first_lines(folder / f"{name}.txt", line_filter)
            for name in ("go-test", "spark-driver", "spark-events")
        }
        files = {name: _written(folder / f"{name}.tsv", TOPICS[name], texts) for name, texts in lines.items()}
        write_broker_logs(folder, files["go-test"])
        for name in ("kafka-broker", "kafka-requests", "jvm-gc"):
            lines[name] = first_lines(folder / f"{name}.txt", line_filter)
            files[name] = _written(folder / f"{name}.tsv", TOPICS[name], lines[name])
        store = folder / "store"
        store.mkdir()
        with broker.running(jvm.fetched(broker.POM), store) as kafka:
            for name in TOPICS:
                produce(files[name], name, kafka.address, STORED)
        for name in TOPICS:
            shutil.copyfile(kafka.segment(name), out / f"{name}.log")
    index = [_entry(out / f"{name}.log", lines[name]) for name in TOPICS]
    (out / "index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _written(path: Path, topic: Topic, lines: list[str]) -> Path:
    """Write `TIME_MS<tab>LINE` lines for LineProducer.java. A carriage return inside a line becomes a space."""
    rows = (f"{each.timestamp_ms}\t{each.text.replace(chr(13), ' ')}\n" for each in stamped(topic, lines))
    path.write_text("".join(rows), encoding="utf-8")
    return path


def _entry(path: Path, lines: list[str]) -> dict[str, str | int]:
    topic, data = TOPICS[path.stem], path.read_bytes()
    return {
        "file": path.name,
        "software": topic.software,
        "version": versions()[topic.software],
        "licence": topic.licence,
        "what": topic.what,
        "lines": len(lines),
        "line_bytes": sum(len(line.encode()) for line in lines),
        "stored_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def table(index: list[dict[str, str | int]]) -> str:
    """Return the index as a Markdown table. A hash has its first 16 digits."""
    rows = ["| topic | what | software | licence | lines | bytes | stored bytes | SHA-256 |"]
    rows.append("|---|---|---|---|--:|--:|--:|---|")
    for each in index:
        numbers = " | ".join(f"{each[name]:,}" for name in ("lines", "line_bytes", "stored_bytes"))
        software = f"{each['software']} {each['version']} | {each['licence']}"
        rows.append(f"| `{each['file']}` | {each['what']} | {software} | {numbers} | `{str(each['sha256'])[:16]}…` |")
    return "\n".join([*rows, ""])


def write_table(page: Path, index: list[dict[str, str | int]]) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(index)}{END}{after}", encoding="utf-8")


def main() -> None:
    record(FOLDER)
    write_table(FOLDER / "README.md", json.loads((FOLDER / "index.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
