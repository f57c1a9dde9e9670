"""A cluster of real processes and an archive, shared by all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.sweeping import cli
from tools import cluster as processes
from tools.cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster of two workers with one core each.

    Spark sees two hosts. kfbench does, too, if the processes may have host names.
    """
    with processes.running(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    cli("pack", path)
    return path
