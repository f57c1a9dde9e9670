"""The functions that choose which cases of a test the quick suite runs."""

from itertools import product

import pytest

from tests.sampling import covering, spread

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
