"""No recorded log line names a machine, a remote host or a secret. The committed segments are those of the index."""

import getpass
import hashlib
import json
import platform
import socket
from pathlib import Path
from typing import Any

import pytest

from kfbench import read_log
from tools import record_lines
from tools.line_filter import LONGEST_BYTES, LineFilter

INDEX = json.loads((record_lines.FOLDER / "index.json").read_text(encoding="utf-8"))


@pytest.fixture
def line_filter(monkeypatch: pytest.MonkeyPatch) -> LineFilter:
    """Return the filter of a machine with other names than this one, so that no test depends on them."""
    monkeypatch.setattr(socket, "gethostname", lambda: "builder-17")
    monkeypatch.setattr(socket, "getfqdn", lambda: "builder-17.lan")
    monkeypatch.setattr(platform, "release", lambda: "6.18.7-cloud-9")
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/anna"))
    return LineFilter({Path("/srv/work/checkout"): "/opt/kfbench"})


@pytest.mark.parametrize(
    ("line", "filtered"),
    [
        ("GET https://user:pw@mirror.example:8443/a/b.jar 200", "GET https://host.invalid/a/b.jar 200"),
        ("spark://localhost:7077 http://127.0.0.1:80/x", "spark://localhost:7077 http://127.0.0.1:80/x"),
        ("lookup of build-7.example.com failed", "lookup of host.invalid failed"),
        ("(org.apache.kafka.common.network.Selector) java.io", "(org.apache.kafka.common.network.Selector) java.io"),
        ("peer 10.20.30.40:9092, not 127.0.0.1:9092", "peer 192.0.2.1:9092, not 127.0.0.1:9092"),
        ("api_key=abcdefghijklmnop end", "api_key=removed end"),
        ("RequestHeader(apiKey=UPDATE_METADATA, 3)", "RequestHeader(apiKey=UPDATE_METADATA, 3)"),
        ("machineId: 02:fc:00:ff:fe:00:ab:01 at 17:09:57", "machineId: 00:00:00:00:00:00 at 17:09:57"),
        ("Linux, 6.18.7-cloud-9, amd64", "Linux, 6.18, amd64"),
        ("at /home/anna/x in /srv/work/checkout/y", "at /home/user/x in /opt/kfbench/y"),
        ("anna on builder-17, not annabel: builder-17.lan", "user on host, not annabel: host"),
        ("a line\r\n", "a line"),
    ],
)
def test_names_are_replaced(line_filter: LineFilter, line: str, filtered: str) -> None:
    assert line_filter.filtered(line) == filtered
    assert line_filter.filtered(filtered) == filtered


def test_only_long_lines_are_cut(line_filter: LineFilter) -> None:
    assert line_filter.filtered("é" * (LONGEST_BYTES // 2)) == "é" * (LONGEST_BYTES // 2)
    cut = line_filter.filtered("x" + "é" * LONGEST_BYTES)
    assert LONGEST_BYTES - 1 <= len(cut.encode()) <= LONGEST_BYTES


@pytest.mark.parametrize(
    ("topic", "line", "time_ms"),
    [
        ("kafka-broker", "[2026-11-25 17:05:32,527] DEBUG x", 1_795_626_332_527),
        ("jvm-gc", "[2026-11-25T17:05:32.527+0000][debug][gc] x", 1_795_626_332_527),
        ("spark-driver", "26/11/25 17:05:32 INFO x", 1_795_626_332_000),
        ("spark-events", '{"Event":"x","Launch Time":1795626332527,"Finish Time":0}', 1_795_626_332_527),
        ("go-test", '{"Time":"2026-11-25T17:05:32.527169031Z"}', 1_795_626_332_527),
        ("kafka-broker", "\tat a.stack.trace", None),
    ],
)
def test_a_record_has_the_time_of_its_line(topic: str, line: str, time_ms: int | None) -> None:
    assert record_lines.time_ms(record_lines.TOPICS[topic], line) == time_ms


@pytest.mark.thorough
@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_committed_segments_are_those_of_the_index(entry: dict[str, Any], line_filter: LineFilter) -> None:
    path = record_lines.FOLDER / entry["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    values = read_log(path).records.values()
    assert len(values) == entry["lines"]
    assert sum(len(value or b"") for value in values) == entry["line_bytes"]
    for value in values:
        line = (value or b"").decode()
        assert line_filter.filtered(line) == line


def test_the_page_has_the_table_of_the_index() -> None:
    page = (record_lines.FOLDER / "README.md").read_text(encoding="utf-8")
    assert record_lines.table(INDEX) in page
    assert sum(entry["line_bytes"] for entry in INDEX) >= 20_000_000
    assert sum(entry["stored_bytes"] for entry in INDEX) < 4_000_000
