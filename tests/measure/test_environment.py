"""The facts of a host and its software are complete, and what is published of them names no host and no home."""

import json
import platform
import re
import socket
import subprocess
import sys

import pytest

from kfbench.codecs import CODECS
from kfbench.kernels.jit import INTERPRETED, VECTORS
from kfbench.measure.environment import (
    environment,
    git_revision,
    host,
    kernel,
    libraries,
    published,
    published_command,
    without_hosts,
)


def test_it_is_json_and_names_what_bytes_and_times_depend_on() -> None:
    facts = environment()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["codecs"] == {name: codec.version for name, codec in CODECS.items()}
    assert {"numpy", "numba", "pyarrow", "pyspark", "zstandard"} <= facts["packages"].keys()
    assert facts["cpu"] and facts["python"] and facts["host"]
    assert facts["virtual"] in (True, False, None)
    assert facts["logical_cores"] >= facts["cores"] >= 1
    assert facts["logical_cores"] >= (facts["physical_cores"] or 1)
    features = facts["kernel_features"]
    assert features.keys() == {"fast_crc", "wide_crc", "vectors", "host_vectors"}
    assert features["vectors"] in (*VECTORS, INTERPRETED) and features["host_vectors"] in VECTORS
    found = libraries(facts)
    assert {"python", "numpy", "numba", "cramjam"} <= found.keys() and all(found.values())


def test_hosts_are_told_apart_and_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "anna-laptop")
    one = host()
    assert one == environment()["host"] == host() and "anna" not in one
    monkeypatch.setattr(socket, "gethostname", lambda: "anna-laptop-2")
    assert host() != one


@pytest.mark.parametrize(
    ("system", "release", "said"),
    [
        ("Linux", "6.1.0-17-anna-amd64", "Linux 6.1"),
        ("Linux", "6.18+", "Linux 6.18"),
        ("Darwin", "23.1.0", "Darwin 23.1"),
        ("", "", ""),
    ],
)
def test_a_kernel_is_told_without_its_build(
    system: str, release: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "release", lambda: release)
    assert kernel() == said
    assert re.fullmatch(re.escape(said) + r"(, )?(glibc [0-9.]+)?", environment()["system"])


def test_revision_is_this_checkouts() -> None:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    found = git_revision()
    if asked.returncode:
        assert found is None
    else:
        assert found is not None and found.removesuffix("-dirty") == asked.stdout.strip()


@pytest.mark.parametrize(
    ("said", "name", "model"),
    [
        ("processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t\t: 9\n",
         "AMD EPYC", "family 25, model 17"),
        ("processor\t: 0\nmodel name\t: ARMv8: rev 1\nBogoMIPS\t: 2.0\n", "ARMv8: rev 1", None),
    ],
)  # fmt: skip
def test_processors_of_one_name_are_told_apart(
    said: str, name: str, model: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["kfbench.measure.environment"]
    monkeypatch.setattr(module, "_text", lambda _: said)
    assert (module._cpu_name.__wrapped__(), module.cpu_model()) == (name, model)


# What is published


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/homes/anna/mine/sweep.toml", "sweep.toml"),
        ("--out=/homes/anna/reports", "--out=reports"),
        ("/", "."),
        ("mine/sweep.toml", "mine/sweep.toml"),
        ("local[2]", "local[2]"),
        ("--filter=workload=user-*/*", "--filter=workload=user-*/*"),
        ("--out=/homes/anna/run=3/reports", "--out=reports"),
        ("file:///homes/anna/mine/sweep.toml", "sweep.toml"),
        ("../clients/acme/sweep.toml", "sweep.toml"),
        ("--out=mine/../../acme", "--out=acme"),
        ("~anna/sweep.toml", "sweep.toml"),
        ("../..", "."),
        ("", ""),
        ("spark://there.corp:7077", f"spark://{host('there.corp')}:7077"),
        ("--master=k8s://https://10.1.2.3:443", f"--master=k8s://https://{host('10.1.2.3')}:443"),
    ],
)
def test_the_command_that_is_published_names_no_home_and_no_host(given: str, kept: str) -> None:
    assert published(given) == kept


def test_a_command_is_what_a_shell_would_take() -> None:
    words = ["kfbench", "run", "/homes/anna/two words.toml", "--filter", "batch_size>5"]
    assert published_command(words) == "kfbench run 'two words.toml' --filter 'batch_size>5'"


@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("local[2,4]", "local[2,4]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("yarn", "yarn"),
        ("spark://one.corp:7077", "spark://ONE:7077"),
        ("spark://one.corp:7077,10.0.0.7:7078", "spark://ONE:7077,TWO:7078"),
        ("spark://[fe80::1]:7077", "spark://THREE:7077"),
        ("k8s://https://one.corp:443/of/anna", "k8s://https://ONE:443/of/anna"),
        ("spark://one.corp", "spark://ONE"),
        ("spark://one.corp:", "spark://FOUR"),
    ],
)
def test_a_master_is_told_without_its_hosts(url: str, hidden: str) -> None:
    names = {"ONE": "one.corp", "TWO": "10.0.0.7", "THREE": "[fe80::1]", "FOUR": "one.corp:"}
    for word, name in names.items():
        hidden = hidden.replace(word, host(name))
    assert without_hosts(url) == hidden
