"""The folder of the files that come with kfbench: sweeps, workloads, golden vectors."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
# In a wheel the datasets lie inside the package, in a checkout next to it.
DATASETS: Final = (_PACKAGE if (_PACKAGE / "datasets").is_dir() else _PACKAGE.parent) / "datasets"
