"""The command fingerprint writes a file that what-if reads like the log."""

import json
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import Run
from tests.recorded import FOLDER

LOG = FOLDER / "activity-none.log"


def test_what_if_of_a_fingerprint_is_that_of_the_log(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "print.json"
    done = kfbench("fingerprint", LOG, "--out", out)
    assert done.status == 0 and "never contains" in done.out and not list(tmp_path.glob("*.part"))
    of_log, of_print = (json.loads(kfbench("what-if", path, "--json").out) for path in (LOG, out))
    for name in ("now_bytes", "breakdown", "losses", "overhead_a_record", "break_even"):
        assert of_print[name] == of_log[name]
    for one, other in zip(of_print["sizes"], of_log["sizes"], strict=True):
        assert {**one, "month": 0, "saving_a_month": 0} == {**other, "month": 0, "saving_a_month": 0}
    assert not of_print["rebatched"]


def test_times_are_lengths_not_dates(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "print.json"
    assert kfbench("fingerprint", FOLDER / "telemetry.log", "--out", out).status == 0
    of_log, of_print = (
        kfbench("what-if", path, "--table", "month-saved").out for path in (FOLDER / "telemetry.log", out)
    )
    dates = r"\d{4}-\d\d-\d\d \d\d:"
    assert re.search(dates, of_log) and not re.search(dates, of_print)
    assert "GB per day" in of_print


def test_a_month_follows_the_prices(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "print.json"
    assert kfbench("fingerprint", FOLDER / "telemetry.log", "--out", out).status == 0
    options = ["--retention-days", "30", "--price-network-gb", "0.5", "--json"]
    of_log, of_print = (
        json.loads(kfbench("what-if", path, *options).out)["month_now"] for path in (FOLDER / "telemetry.log", out)
    )
    assert of_print == pytest.approx(of_log, rel=0.006)


def test_the_list_of_contents_follows_the_options(kfbench: Run, tmp_path: Path) -> None:
    done = kfbench("fingerprint", LOG, "--out", tmp_path / "print.json", "--least-members", "20")
    contains, never = done.out.split("It never contains")
    assert "in buckets of 20 or more" in contains and "names of topics" in never and not done.err


def test_a_topic_of_few_records_is_named(kfbench: Run, tmp_path: Path) -> None:
    done = kfbench("fingerprint", FOLDER / "edges.log", "--out", tmp_path / "few.json")
    words = "has few records (45): the file tells of single ones"
    assert done.status == 0 and done.err == f"kfbench: topic 1 ({FOLDER / 'edges.log'}) {words}\n"


def test_a_file_is_not_replaced_unless_asked(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "print.json"
    out.write_text("mine")
    done = kfbench("fingerprint", LOG, "--out", out)
    assert done.status == 1 and "exists already (--force replaces it)" in done.err
    assert out.read_text() == "mine"
    assert kfbench("fingerprint", LOG, "--out", out, "--force").status == 0


def test_other_files_are_left_alone(kfbench: Run, tmp_path: Path) -> None:
    out, other = tmp_path / "print.json", tmp_path / "print.json.part"
    other.write_text("mine")
    assert kfbench("fingerprint", LOG, "--out", out).status == 0
    assert other.read_text() == "mine" and sorted(tmp_path.iterdir()) == [out, other]


def test_a_link_is_followed(kfbench: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    out, target = tmp_path / "print.json", tmp_path / "folder" / "own.json"
    target.write_text("mine")
    out.symlink_to(target)
    assert kfbench("fingerprint", LOG, "--out", out, "--force").status == 0
    assert out.is_symlink() and json.loads(target.read_bytes())["kind"] == "kfbench fingerprint"


def test_only_regular_files_are_replaced(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "pipe.json"
    os.mkfifo(out)
    assert "pipe.json: is no regular file" in kfbench("fingerprint", LOG, "--out", out, "--force").refused()
    assert out.is_fifo()


@contextmanager
def file_limit(size_bytes: int) -> Iterator[None]:
    """Limit the size of files that this process writes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_leaves_the_old_file(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "print.json"
    assert kfbench("fingerprint", LOG, "--out", out).status == 0  # compiles kernels, whose files are larger
    before = out.read_bytes()
    with file_limit(20_000):
        line = kfbench("fingerprint", LOG, "--out", out, "--force").refused()
    assert line == f"kfbench: {out}: cannot be written: File too large\n"
    assert out.read_bytes() == before and list(tmp_path.iterdir()) == [out]


def test_a_log_is_never_replaced(kfbench: Run, segment: Path) -> None:
    before, out = segment.read_bytes(), segment.with_suffix(".json")
    out.symlink_to(segment)
    done = kfbench("fingerprint", segment, "--out", out, "--force")
    assert done.status == 1 and "is the log itself" in done.err
    assert segment.read_bytes() == before


def test_damage_is_left_out_and_told(kfbench: Run, damaged: tuple[Path, int], tmp_path: Path) -> None:
    path, _ = damaged
    out = tmp_path / "print.json"
    done = kfbench("fingerprint", path, "--out", out)
    assert done.status == 1 and str(path) in done.err
    assert json.loads(out.read_bytes())["answer"]["sources"][0]["damaged_places"] == 1
    assert str(path) not in out.read_text()
    done = kfbench("what-if", out, "--table", "sources")
    assert done.status == 1 and "damaged place" in done.out and "topic 1: 1 damaged place" in done.err


def test_a_source_that_is_no_log_is_named(kfbench: Run, tmp_path: Path) -> None:
    out, other = tmp_path / "print.json", tmp_path / "other.json"
    assert kfbench("fingerprint", LOG, "--out", out).status == 0
    assert f"{out}: is a fingerprint" in kfbench("what-if", tmp_path, "--linger-ms", 5).refused()
    assert f"{out}: is a fingerprint" in kfbench("dictionary", "train", out, "--out", other).refused()
    (tmp_path / "rows.jsonl").write_text('{"value": "a"}\n')
    assert f"{out}: is a fingerprint" in kfbench("what-if", tmp_path, "--linger-ms", 5).refused()
    (tmp_path / LOG.name).write_bytes(LOG.read_bytes())
    assert kfbench("what-if", tmp_path).status == 0  # a folder of segments: other files are skipped
    assert not other.exists()
