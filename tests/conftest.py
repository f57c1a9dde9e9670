"""Skip tests that this machine cannot run, mark tests outside the quick suite, run long files first."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from shutil import which
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, settings

from kfbench.sweep.host.java import LEAST_JAVA, find_java
from tests.sampling import mark_compiled_only, mark_matrix, mark_stages
from tools import jvm

# The first example compiles kernels, and the machine may be busy, so examples have no deadline.
settings.register_profile("kfbench", deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kfbench")
settings.register_profile("nightly", max_examples=60)  # the rest is as in the profile above

REGISTRIES = "KFBENCH_REGISTRIES"  # if set, tests may download from the Java and npm registries


# with one of these set, the library `rich` formats for a terminal; tests start without them
for name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    mark_stages(items)
    mark_matrix(items)
    mark_compiled_only(items)
    yield
    # Test processes take files in this order. A long file at the end would run alone.
    long = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in long)
    _skip_what_cannot_run(items)


def pytest_collection_finish() -> None:
    """From here on, compile each kernel at its first call: tests are of compiled kernels.

    Not before, because modules of tests encode small inputs as they are imported, in every process.
    """
    os.environ["KFBENCH_COMPILE"] = "1"


def _skip_what_cannot_run(items: Sequence[pytest.Item]) -> None:
    marked = {mark.name for item in items for mark in item.iter_markers()}
    lacking: dict[str, str] = {}
    if marked & {"spark", "cluster"} and not find_java():
        lacking["spark"] = lacking["cluster"] = (
            f"needs Java {LEAST_JAVA} or newer, found or packaged (see kfbench doctor)"
        )
    if reason := _no_registry():
        lacking["oracle"] = lacking["broker"] = reason
    for item in items:
        for marker, reason in lacking.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _no_registry() -> str | None:
    if not os.environ.get(REGISTRIES):
        return f"downloads from a Java package registry: set {REGISTRIES}=1 to run it"
    missing = [program for program in ("javac", "mvn") if not which(program)]
    return f"needs {' and '.join(missing)} on PATH" if missing else None


@pytest.fixture(scope="session")
def fetched() -> Callable[..., Path]:
    """Return `jvm.fetched`, the function that fetches the jars of a pom and returns their folder.

    It skips the test if the registry is unreachable.
    """

    def fetch(pom: Path, properties: Mapping[str, str] = MappingProxyType({})) -> Path:
        try:
            return jvm.fetched(pom, properties)
        except jvm.UnreachableError as error:
            pytest.skip(f"the Java package registry is out of reach: {error}")

    return fetch
