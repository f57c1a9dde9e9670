"""Read the workloads of a fingerprint's file: one per topic that has distributions."""

from functools import cache
from pathlib import Path
from typing import Final

from kfbench.errors import InvalidConfig
from kfbench.workloads.fingerprinted.fit import fitted
from kfbench.workloads.fingerprinted.model import models_of
from kfbench.workloads.fingerprinted.workload import FingerprintWorkload

SUFFIX: Final = ".json"
MOST_TOPICS: Final = 100  # fitting them takes minutes


def is_fingerprint_path(name: str) -> bool:
    """Return True if a name of a workload is the path of a fingerprint."""
    return name.endswith(SUFFIX)


def read_workloads(path: Path) -> tuple[FingerprintWorkload, ...]:
    """Return the fitted workload of each topic. Raises InvalidConfig."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error.strerror}") from None
    return _fitted(data, str(path))


@cache
def _fitted(data: bytes, where: str) -> tuple[FingerprintWorkload, ...]:
    models = models_of(data, where)
    if len(models) > MOST_TOPICS:
        raise InvalidConfig(f"{where}: {len(models)} topics, but a workload may have {MOST_TOPICS}")
    return tuple(fitted(model) for model in models)
