"""Where the files lie that kfbench ships: sweeps, workloads, golden vectors."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
# A wheel carries the datasets that it reads inside the package; in a checkout they lie beside it.
DATASETS: Final = (_PACKAGE if (_PACKAGE / "datasets").is_dir() else _PACKAGE.parent) / "datasets"
