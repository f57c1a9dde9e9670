"""Committed measurements and notebooks do not identify a person's machine.

Published reports are not checked, because they never change.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
# folders of committed files that programs wrote on a person's machine -> least number of files
WRITTEN: Final = {
    "benchmarks/history": 6,
    "datasets/peers": 1,
    "datasets/recorded": 2,
    "datasets/second-opinion": 2,
    "notebooks": 4,
}
# Home, temporary and checkout folders, and a kernel release of more than two numbers.
PRIVATE: Final = re.compile(
    rf"(?<![\w.$>-])(?:/(?:home|root|tmp|work|Users|mnt|private)(?=/)|{re.escape(str(ROOT))}(?=/))|file://"
    r"|(?:Linux|Darwin)[ -]\d+\.\d+(?!\d)[.+\w-]"
)


@pytest.mark.parametrize("folder", WRITTEN)
def test_no_file_identifies_a_machine(folder: str) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", folder], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name]
    assert len(names) >= WRITTEN[folder]
    for name in names:
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        assert not (found := PRIVATE.search(text)), f"{name}: {text[max(0, found.start() - 40) : found.end() + 40]}"


@pytest.mark.skipif(Path(sys.prefix) != ROOT / ".venv", reason="not the environment that `make setup` makes")
def test_the_installation_in_place_does_not_name_the_checkout() -> None:
    """The .pth file of an editable installation is ASCII and has a relative path.

    Otherwise Python 3.11 and 3.12 do not start under LC_ALL=C.

    The path of a checkout may have other characters.
    """
    files = [each for each in Path(sys.prefix).rglob("*.pth") if "kfbench" in each.name]
    assert files
    for file in files:
        assert file.read_bytes().isascii()
        assert [(file.parent / line).resolve() for line in file.read_text().splitlines()] == [ROOT.resolve()]
        assert str(ROOT) not in file.read_text()
