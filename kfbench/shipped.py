"""The folder of the files that are installed with kfbench: sweeps, workloads, and golden vectors (expected bytes)."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
# In a wheel the datasets lie inside the package, in a checkout next to it.
DATASETS: Final = (_PACKAGE if (_PACKAGE / "datasets").is_dir() else _PACKAGE.parent) / "datasets"
