"""Stated capabilities of a format are its behaviour: it refuses exactly the records that it cannot carry."""

from collections.abc import Mapping
from typing import Any

import pytest

from kfbench.batches import FIELD_DEFAULTS, BatchFields
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, WouldLose
from kfbench.formats import FORMATS, PROPOSED, SHIPPED
from kfbench.records import Records
from kfbench.report.data.capability import in_words, is_our_own, lacking

PLAIN = Records.from_lists([b"value"], timestamps_ms=[1_700_000_000_000])
FIELDS = [name for name in FIELD_DEFAULTS if name != "is_control"]  # control batches need records of their own
ASKS: Mapping[str, Mapping[str, Any]] = {
    "times": {},
    "milliseconds": {"records": Records.from_lists([b"value"], timestamps_ms=[1_700_000_000_001])},
    "headers": {
        "records": Records.from_lists([b"value"], timestamps_ms=[1_700_000_000_000], headers=[[("key", b"value")]])
    },
    "empty batches": {"batch_size": [0, 0, 1]},
    **{codec: {"codec": codec} for codec in CODECS},
    **{
        word: {
            "batch_fields": BatchFields(**dict[str, Any]((name, 1) for name in FIELDS if in_words([name]) == (word,)))
        }
        for word in in_words(FIELDS)
    },
}


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_format_lacks_it_refuses(name: str) -> None:
    told = set(lacking(name, "v2"))
    assert told <= ASKS.keys() | {"control batches"}
    for what, asked in ASKS.items():
        arguments: dict[str, Any] = {"records": PLAIN, "batch_size": 1, **asked}
        if what in told:
            with pytest.raises((WouldLose, IllegalCombination)):
                FORMATS[name].encode(**arguments)
        elif not told:
            assert FORMATS[name].encode(**arguments).data.size


def test_a_format_lacks_nothing_of_itself_and_unknown_formats_have_no_limits() -> None:
    assert lacking("v0", "v0") == lacking("v3-of-tomorrow", "v2") == ()
    assert "control batches" in lacking("v1", "v2") and "control batches" not in lacking("kip98", "v2")


def test_features_not_proposed_by_others_are_ours() -> None:
    """A format counts as ours unless a Kafka release or a proposal defines it.

    A format with only a part of a proposal is ours, too.
    """
    assert {name for name in FORMATS if not is_our_own(name)} == SHIPPED | PROPOSED and not is_our_own("v3-of-tomorrow")
    parts = {name for name in FORMATS if name.startswith("v3-")}
    unknown = {name for name, each in FORMATS.items() if each.magic not in (0, 1, 2, 3)}
    assert "v3-header-only" in parts and all(map(is_our_own, parts | unknown))
