"""A command that needs an optional extra of the package names it."""

import pickle
import shlex
import subprocess
import sys
from importlib.metadata import requires

import pytest

from kfbench.errors import MODULE_OF_EXTRA, KfbenchError, MissingExtra, MissingTool, has_extra, require_extra

WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None"


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"{WITHOUT_SPARK}; sys.argv[0] = 'kfbench'\n{code}"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


def test_every_extra_is_known_and_here() -> None:
    declared = {line.split("extra ==")[1].strip(" '\"") for line in requires("kfbench") or () if "extra ==" in line}
    assert declared >= MODULE_OF_EXTRA.keys()
    assert all(has_extra(name) for name in MODULE_OF_EXTRA)


@pytest.mark.parametrize("extra", MODULE_OF_EXTRA)
def test_an_extra_that_is_missing_is_one_line_with_the_command(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra(extra)
    monkeypatch.setitem(sys.modules, MODULE_OF_EXTRA[extra], None)
    assert not has_extra(extra)
    with pytest.raises(MissingExtra) as caught:
        require_extra(extra)
    assert f"pip install 'kfbench[{extra}]'" in str(caught.value)
    assert isinstance(caught.value, KfbenchError) and isinstance(caught.value, MissingTool)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.extra) == (str(caught.value), extra)


@pytest.mark.parametrize("arguments", [["run", "smoke"], ["sweep", "smoke"], ["pack", "environment.tar.gz"]])
def test_commands_that_need_spark_name_the_extra(arguments: list[str]) -> None:
    done = python("from kfbench.cli import main; sys.exit(main())", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"kfbench: needs the extra 'sweep': {shlex.quote(sys.executable)} -m pip install 'kfbench[sweep]'"
    ]


def test_importing_what_needs_spark_raises_a_typed_error() -> None:
    code = (
        "import kfbench.errors\n"
        "for name in ('executors', 'jobs', 'session', 'tasks', 'topic'):\n"
        "    try: __import__(f'kfbench.sweep.spark.{name}')\n"
        "    except kfbench.errors.MissingExtra as error: print(name, error.extra)"
    )
    done = python(code)
    assert done.stdout.split()[1::2] == ["sweep"] * 5, done.stderr
