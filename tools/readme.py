"""Write the verdict on the rows of a published report, and its picture, into README.md, between two markers.

usage: readme.py [REPORT]     default: the newest published report of the default profile
"""

import re
import sys
from pathlib import Path
from posixpath import normpath

from kfbench.errors import RunError
from kfbench.report.files import opening
from kfbench.report.publish import newest
from kfbench.store import open_run

BEGIN = "<!-- report {report}: written by `make readme`, do not edit -->"
END = "<!-- end of report -->"
BLOCK = re.compile(BEGIN.format(report=r"(?P<report>\S*)") + r"\n(?P<text>.*?)" + END, re.DOTALL)


def head(report: Path, root: Path) -> str:
    """Return today's opening of the report, without its title, with links relative to the folder `root`."""
    text = opening(open_run(report)).partition("\n# ")[2].partition("\n")[2].strip()
    there = report.relative_to(root).as_posix()
    return re.sub(r"\]\((?!\w+:|[/#])([^)]*)", lambda link: f"]({normpath(f'{there}/{link[1]}')}", text)


def spliced(readme: str, report: Path, root: Path) -> str:
    """Return the text of README.md with the beginning of the report between the markers.

    Raises SystemExit if the markers are missing.
    """
    block = f"{BEGIN.format(report=report.relative_to(root).as_posix())}\n{head(report, root)}\n{END}"
    if not BLOCK.search(readme):
        raise SystemExit("README.md: the markers of the report are missing")
    return BLOCK.sub(lambda _: block, readme)


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    try:
        report = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else newest(root / "reports", "default")
    except RunError as error:
        raise SystemExit(str(error)) from None
    readme = root / "README.md"
    readme.write_text(spliced(readme.read_text(encoding="utf-8"), report, root), encoding="utf-8")
    print(f"README.md shows {report.relative_to(root)}")


if __name__ == "__main__":
    main()
