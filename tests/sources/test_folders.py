"""Folders of segments as data: the files that lie there, the parts that are found, and why the others are skipped."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from kfbench.errors import KfbenchError
from kfbench.sources import TABLES, find
from kfbench.sources.folder import DEAD_LINKS, INNER_LINKS, LINK, OTHER_FILES
from tests.recorded import FOLDER

DATA = (FOLDER / "edges.log").read_bytes()
S0, S3, HEX = f"{0:020}.log", f"{300:020}.log", "0f6b7b9c2d6e4c56" * 2


class Folder(NamedTuple):
    """A folder, and what a search of its `sources` finds.

    parts: path, topic and partition of each part. skipped: the reasons by path, of files or of whole folders. links:
    their targets by path.
    """

    parts: list[tuple[str, str, int | None]]
    skipped: dict[str, str]
    sources: tuple[str, ...] = (".",)
    links: Mapping[str, str] = MappingProxyType({})


BROKERS = Folder(
    parts=[("b1/loose/a.log", "", None), (f"b1/orders-0/{S0}", "orders", 0), ("b2/loose/a.log", "", None)],
    skipped={f"b2/orders-0/{S0}": "segments of other replicas"},
)
FOLDERS = {
    "data dir": Folder(
        parts=[
            (f"a/o-1.0f-stray/{S0}", "", None), (f"a/orders-0/{S0}", "orders", 0), (f"a/orders-0/{S3}", "orders", 0),
            (f"a/orders.eu-west-12/{S0}", "orders.eu-west", 12), (f"b/__offsets-49/{S0}", "__offsets", 49),
            (f"b/loose/{S0}", "", None), (f"b/soft-delete/{S0}", "", None),
        ],
        skipped={
            f"a/orders-0/{0:020}.index": "offset indexes",
            f"a/orders-0/{0:020}.timeindex": "time indexes",
            f"a/orders-0/{0:020}.txnindex": "indexes of aborted transactions",
            f"a/orders-0/{300:020}.snapshot": "snapshots of producers",
            f"a/orders-0/{S0}.deleted": "deleted segments",
            f"a/orders-0/{S0}.cleaned": "unfinished compactions",
            f"a/orders-0/{S0}.swap": "compactions that were not swapped in",
            f"a/orders-0/{S0}.gz": "packed segments: unpack them to read them",
            "a/orders-0/leader-epoch-checkpoint": OTHER_FILES,
            "meta.properties": OTHER_FILES,
            "_rows.csv": OTHER_FILES,
            "rows.csv": TABLES,
            f"a/orders-1.{HEX}-delete/": "deleted partitions",
            f"a/orders-2.{HEX}-future/": "replicas that move to another log dir, and are there twice",
            f"b/orders-3.{HEX}-stray/": "stray partitions",
        },
    ),
    "replicas": BROKERS,
    "replicas by name": BROKERS._replace(sources=("b1", "b2")),
    "links": Folder(
        parts=[(f"data/orders-0/{S0}", "orders", 0)],
        skipped={
            "data/orders-1": LINK, "data/a.log": LINK, "data/inner": INNER_LINKS, "data/around": INNER_LINKS,
            "data/dead.log": DEAD_LINKS,
        },
        sources=("data",),
        links={
            "data/orders-1": "elsewhere/orders-1", "data/a.log": f"elsewhere/orders-1/{S0}",
            "data/inner": "data/orders-0", "data/around": "data", "data/dead.log": "elsewhere/nothing.log",
        },
    ),
}  # fmt: skip


def write(root: Path, *names: str) -> None:
    """Write a segment at each path; in a folder if the path ends in a slash."""
    for name in names:
        path = root / (f"{name}{S0}" if name.endswith("/") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DATA)


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_a_search_finds_each_segment_once_and_says_why_it_skips(tmp_path: Path, folder: Folder) -> None:
    write(tmp_path, *(path for path, *_ in folder.parts), *folder.skipped.keys() - folder.links.keys())
    write(tmp_path, f"elsewhere/orders-1/{S0}") if folder.links else (tmp_path / "empty-0").mkdir()
    for path, target in folder.links.items():
        (tmp_path / path).symlink_to(tmp_path / target)
    found = find([tmp_path / source for source in folder.sources])
    assert [(part.name, part.topic, part.partition) for part in found.parts] == [
        (str(tmp_path / path), topic, partition) for path, topic, partition in folder.parts
    ]
    assert {part.size_bytes for part in found.parts} == {len(DATA)} and {part.unit for part in found.parts} == {"byte"}
    assert {each.path: each.reason for each in found.skipped} == {
        str(tmp_path / path): reason for path, reason in folder.skipped.items()
    }
    assert {each.path for each in found.skipped if each.is_data} == {
        str(tmp_path / path) for path, reason in folder.skipped.items() if reason == LINK
    }
    assert folder.links or {each.size_bytes for each in found.skipped} == {len(DATA)}


NO_SEGMENT = "{}: no segment in this folder or below it (.log); there is: 1 × "


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        (f"orders-0/{0:020}.index", "orders-0", f"{NO_SEGMENT}offset indexes"),
        (f"orders-0/{S0}.gz", "orders-0", f"{NO_SEGMENT}packed segments"),
        (f"orders-0/{0:020}.index", f"orders-0/{0:020}.index", "{}: nothing to read: offset indexes"),
    ],
)
def test_a_search_without_a_segment_is_refused(tmp_path: Path, name: str, source: str, message: str) -> None:
    write(tmp_path, name)
    with pytest.raises(KfbenchError) as raised:
        find([tmp_path / source])
    assert str(raised.value).startswith(message.format(tmp_path / source))
    write(tmp_path, f"orders-1/{S0}")
    found = find([tmp_path / source, tmp_path / "orders-1"])
    assert len(found.parts) == 1 and [each.is_data for each in found.skipped] == [False]


def test_a_named_link_and_a_named_table_are_read(tmp_path: Path) -> None:
    write(tmp_path, f"orders-7/{S0}", "rows.csv")
    (tmp_path / "link").symlink_to(tmp_path / "orders-7")
    assert len(find([tmp_path / "link"]).parts) == 1
    assert len(find([tmp_path, tmp_path / "rows.csv"]).parts) == 2


def test_a_partition_has_one_key_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, f"orders-7/{S0}")
    monkeypatch.chdir(tmp_path / "orders-7")
    [part] = find([S0, tmp_path / "orders-7", tmp_path / "orders-7" / S0]).parts
    assert part.key == f"orders-7/{S0}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, f"orders-0/{S0}")
    (tmp_path / "locked").mkdir(mode=0)
    [locked] = find([tmp_path]).skipped
    assert (locked.reason, locked.is_data) == ("Permission denied", True)
