"""`kfbench migrate`: options, defaults and output."""

import json
from inspect import signature
from pathlib import Path

import pytest

from kfbench.cli.migrate import migrate
from kfbench.codecs import CODECS
from kfbench.migration.bills import Prices, Traffic
from tests.cli.command import Run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plan", "kip32"], "--plan: 'kip32' is not one of kip31, kip724, v3"),
        (["--codec", "brotli"], f"--codec: 'brotli' is not one of {', '.join(CODECS)}"),
        (["--plan", "kip31", "--codec", "zstd"], "v0 has no zstd (codecs: none, gzip, snappy, lz4)"),
        (["--old-producers", "1.5"], "old_producers: 1.5 is not 0 to 1"),
        (["--old-consumers", "-0.1"], "old_consumers: -0.1 is not 0 to 1"),
        (["--old-data", "nan"], "old_data: nan is not 0 to 1"),
        (["--canary-leaders", "many"], "--canary-leaders"),
        (["--fan-out", "-1"], "fan_out: -1.0 is not 0 or more"),
        (["--replication", "0"], "replication: 0 is not 1 or more"),
        (["--replication", "2.5"], "--replication"),
        (["--retention-days", "inf"], "retention_days: inf is not 0 or more"),
        (["--price-network-gb", "-1"], "network_gb: -1.0 is not 0 or more"),
    ],
)
def test_migrate_refuses_what_cannot_be(kfbench: Run, segment: Path, arguments: list[str], said: str) -> None:
    assert said in kfbench("migrate", segment, *arguments).refused(status=2)


def test_migrate_defaults_are_the_documented_ones() -> None:
    given = {name: parameter.default for name, parameter in signature(migrate).parameters.items()}
    prices = {name.removeprefix("price_"): value for name, value in given.items() if name.startswith("price_")}
    assert prices == vars(Prices())
    assert {name: given[name] for name in vars(Traffic())} == vars(Traffic())


def test_a_plan_is_given_with_its_option(kfbench: Run) -> None:
    assert "kip31 is a plan: kfbench migrate --plan kip31" in kfbench("migrate", "kip31").refused(status=2)


def test_migrate_as_text_and_json(kfbench: Run, segment: Path) -> None:
    text = kfbench("migrate", segment, "--plan", "kip31", "--codec", "none", "--old-consumers", "0.5")
    data = kfbench("migrate", segment, "--plan", "kip31", "--codec", "none", "--old-consumers", "0.5", "--json")
    assert (text.status, data.status, text.err, data.err) == (0, 0, "", "")
    found = json.loads(data.out)
    assert found["traffic"]["old_consumers"] == 0.5
    (subject,) = found["subjects"]
    assert subject["name"] == segment.parent.name
    for phase in found["phases"]:
        assert f"{phase['name']} ({phase['source']}): {phase['summary']}" in text.out
