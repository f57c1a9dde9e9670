"""Run the notebooks from their .py files and store them with their outputs: `python tools/notebooks.py [NAME...]`.

Execution times are not stored, so that an unchanged result is an unchanged file.
"""

import argparse
from pathlib import Path

import jupytext  # type: ignore[import-untyped]
import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def executed(source: Path, folder: Path) -> nbformat.NotebookNode:
    """Run the notebook that is stored as a .py file, and return it with its outputs. Raises CellExecutionError.

    folder: the working directory of the notebook.
    """
    notebook: nbformat.NotebookNode = jupytext.read(source)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(folder)}}
    ).execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # nbformat's own ids are random
    notebook.metadata.pop("language_info", None)  # names the interpreter's patch version
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="notebooks to run (default: all)")
    parser.add_argument(
        "--folder", type=Path, default=NOTEBOOKS, help="working directory, next to reports/ and datasets/"
    )
    parser.add_argument("--out", type=Path, default=NOTEBOOKS, help="folder of the .ipynb files")
    options = parser.parse_args()
    for source in sorted(NOTEBOOKS.glob("*.py")):
        if not options.names or source.stem in options.names:
            text: str = nbformat.writes(executed(source, options.folder))  # type: ignore[no-untyped-call]
            (options.out / f"{source.stem}.ipynb").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
