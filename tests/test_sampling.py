"""The functions that choose which cases of a test the quick suite runs."""

from itertools import product

import pytest

from tests.sampling import covering, part, spread

FORMATS, CODECS = ("v0", "v1", "v2", "v3"), ("none", "gzip", "zstd")


def test_a_sample_has_every_value_and_one_codec_a_format() -> None:
    pairs = list(product(FORMATS, CODECS))
    chosen = [pairs[i] for i in sorted(covering([frozenset([("format", f), ("codec", c)]) for f, c in pairs]))]
    assert [name for name, _ in chosen] == list(FORMATS) and {codec for _, codec in chosen} == set(CODECS)


@pytest.mark.parametrize(("cases", "count"), [(1368, 100), (7, 7), (3, 10), (100, 1)])
def test_a_count_is_kept_and_spread_over_all(cases: int, count: int) -> None:
    chosen = sorted(spread(cases, count))
    assert len(chosen) == min(cases, count) and chosen[0] == 0
    gaps = [after - before for before, after in zip(chosen, [*chosen[1:], cases], strict=True)]
    assert max(gaps) - min(gaps) <= 1


def test_parts_are_about_equal_and_have_each_name_once() -> None:
    names = [f"tests/test_a.py::test_b[{i}]" for i in range(999)]
    parts = [part(names, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(name for each in parts for name in each) == sorted(names)
    assert all(280 <= len(each) <= 390 for each in parts)
    assert part(names, "1/1") == set(names)
    for wanted in ("0/3", "4/3", "x", "1/0"):
        with pytest.raises(pytest.UsageError, match="--part"):
            part(names, wanted)
