import json
import subprocess

from kfbench.codecs import CODECS
from kfbench.measure.environment import environment, git_revision


def test_it_is_json_and_names_what_bytes_and_times_depend_on() -> None:
    facts = environment()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["codecs"] == {name: codec.version for name, codec in CODECS.items()}
    assert {"numpy", "numba", "pyarrow", "pyspark", "zstandard"} <= facts["packages"].keys()
    assert facts["cores"] >= 1 and facts["cpu"] and facts["python"] and facts["host"]


def test_revision_is_this_checkouts() -> None:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    found = git_revision()
    if asked.returncode:
        assert found is None
    else:
        assert found is not None and found.removesuffix("-dirty") == asked.stdout.strip()
