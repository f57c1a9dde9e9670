import json
import socket
import subprocess

import pytest

from kfbench.codecs import CODECS
from kfbench.measure.environment import environment, git_revision, host, libraries, without_hosts


def test_it_is_json_and_names_what_bytes_and_times_depend_on() -> None:
    facts = environment()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["codecs"] == {name: codec.version for name, codec in CODECS.items()}
    assert {"numpy", "numba", "pyarrow", "pyspark", "zstandard"} <= facts["packages"].keys()
    assert facts["cores"] >= 1 and facts["cpu"] and facts["python"] and facts["host"]


def test_hosts_are_told_apart_and_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "anna-laptop")
    one = host()
    assert one == environment()["host"] == host() and "anna" not in one
    monkeypatch.setattr(socket, "gethostname", lambda: "anna-laptop-2")
    assert host() != one


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


def test_libraries_that_a_result_depends_on_are_all_there() -> None:
    found = libraries(environment())
    assert {"python", "numpy", "numba", "cramjam"} <= found.keys() and all(found.values())


def test_revision_is_this_checkouts() -> None:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    found = git_revision()
    if asked.returncode:
        assert found is None
    else:
        assert found is not None and found.removesuffix("-dirty") == asked.stdout.strip()
