"""The arms that are installed are listed, and a library that is missing gives a reason instead of its arms."""

import subprocess
import sys

import pytest

from kfbench.errors import CorruptLog
from kfbench.records import Records
from kfbench.research.rivals import NAMES, missing, rivals
from kfbench.research.rivals.base import Rival, to_table
from kfbench.workloads.catalogue import WORKLOADS
from tests.research.rivals.test_containers import relative

RECORDS = relative(WORKLOADS["user-activity"].generate(records=1_000, seed=7).records)


def python(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_extra_brings_all_arms() -> None:
    assert [*rivals()] == [*NAMES] and not missing()
    assert all(name == rival.name and rival.version() for name, rival in rivals().items())


@pytest.mark.thorough
def test_a_library_that_is_missing_or_broken_is_a_reason() -> None:
    found = python(
        "import sys; sys.modules['fastavro'] = None\n"
        "class Broken:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'vortex': raise OSError('a library of C is missing')\n"
        "sys.meta_path.insert(0, Broken())\n"
        "from kfbench.research.rivals import missing, rivals\n"
        "reasons = missing()\n"
        "print(len(rivals()) + len(reasons))\n"
        "print(*(name + ':' + reasons[name].split(':')[0] for name in reasons))"
    )
    errors = ["avro:ModuleNotFoundError", "avro-best:ModuleNotFoundError", "vortex:OSError", "vortex-best:OSError"]
    assert found == ["8", *errors]


def test_kfbench_imports_no_library_of_a_rival() -> None:
    libraries = "{'fastavro', 'vortex'}"
    modules = "kfbench, kfbench.cli, kfbench.research.rivals, kfbench.sweep.definition.profile"
    assert python(f"import sys, {modules}; print(*{libraries} & sys.modules.keys())") == []


@pytest.mark.parametrize("name", ["parquet", "avro", "vortex"])
@pytest.mark.parametrize("batch_size", [1, 10, 100, 1_000])
def test_the_best_is_smaller_than_the_documented(name: str, batch_size: int) -> None:
    def encoded(rival: Rival, records: Records) -> bytes:
        return rival.encode(rival.prepare_table(to_table(records)), "zstd", 3)

    part = RECORDS.part(0, batch_size)
    best, documented = rivals()[f"{name}-best"], rivals()[name]
    assert len(encoded(best, part)) < len(encoded(documented, part))


def test_avros_single_object_starts_with_the_fingerprint_of_its_schema() -> None:
    """Avro's specification: C3 01, then the CRC-64-AVRO in little-endian order."""
    rival = rivals()["avro-best"]
    container = rival.encode(rival.prepare_table(to_table(RECORDS.part(0, 3))), "none")
    assert container[:2] == b"\xc3\x01"
    for at in (0, 9):
        damaged = bytearray(container)
        damaged[at] ^= 1
        with pytest.raises(CorruptLog) as caught:
            rival.decode(bytes(damaged))
        assert (caught.value.position, caught.value.field) == (0, "schema")
