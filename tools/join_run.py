"""Copy a stored run to datasets/joined/, from where reports of other runs join its rows.

usage: join_run.py RUN
"""

import shutil
import sys
from pathlib import Path

from kfbench.store import open_run
from kfbench.store.run import JOINED, joined_parquet

DATASETS = Path(__file__).resolve().parents[1] / "datasets"


def join(path: Path, datasets: Path) -> Path:
    """Write the manifest and the rows of a run to the folder of its profile, and return the folder."""
    run = open_run(path)
    folder = datasets / JOINED / str(run.manifest["profile"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "measurements.parquet").write_bytes(joined_parquet(run))
    shutil.copyfile(path / "manifest.json", folder / "manifest.json")
    return folder


if __name__ == "__main__":
    print(join(Path(sys.argv[1]), DATASETS))
