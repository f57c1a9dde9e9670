"""Filters select the right cells of a sweep. An error names the wrong part of the filter."""

import pytest

from kfbench.errors import InvalidConfig
from kfbench.measure.kinds import cell_key
from kfbench.sweep.definition.filter import Filter, filter_profile
from kfbench.sweep.definition.profile import Profile
from tests.sweep.profiles import BROKER, block, load_in

SIZES = """codecs = { none = [], gzip = [1, 9] }
axes = { batch_size = [1, 10, 100], key_bytes = ["null", 16], producer = [false, true] }"""
SWEEP = (
    block(SIZES, name="sizes", measure='["bytes", "cpu"]'),
    block("axes = { batch_size = [10, 100], value_bytes = [5, 100] }", name="more-sizes", formats='["v1", "v2"]'),
    block(
        'workloads = ["user-activity", "user-activity/*", "large-payload"]',
        name="named", formats='["v2"]', measure='["bytes", "floor"]',
    ),
    block('paths = ["append", "convert"]\nto = ["v2"]\naxes = {}', name="broker", **BROKER),
)  # fmt: skip


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return load_in(tmp_path_factory.mktemp("profile"), *SWEEP)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("kind=cpu", 36),
        ("kind!=bytes,cpu,floor", 2),
        ("kind=c*", 36),
        ("kind=floor", 5),
        ("grid=sizes", 72),
        ("grid=*sizes", 74),  # two of the four cells of the block more-sizes are also in sizes
        ("codec=gzip", 48),
        ("level=9", 24),
        ("level=null", 38),
        ("level>1", 24),
        ("workload=grid", 76),
        ("workload!=grid", 10),
        ("variant=default,calm", 4),
        ("path=append", 1),
        ("to=v2", 1),
        ("to!=null", 1),
        ("batch_size=10", 25),
        ("batch_size >= 10", 52),
        ("batch_size<1.5", 24),
        ("key_bytes=null", 36),
        ("key_bytes<=16", 40),  # null is no number
        ("producer=true", 36),
        ("value_bytes=5", 2),
    ],
)
def test_cells_are_chosen_by_column(profile: Profile, text: str, cells: int) -> None:
    found = filter_profile(profile, [text])
    assert len(found.cells) == cells and found.filter == (text,)
    left = {cell_key(cell) for cell in found.cells}
    assert left <= {cell_key(cell) for cell in profile.cells} and len(left) == cells
    assert [grid.name for grid in found.grids] == [
        grid.name for grid in profile.grids if any(grid.name in cell.grids for cell in found.cells)
    ]


def test_all_filters_have_to_hold(profile: Profile) -> None:
    found = filter_profile(profile, ["grid=sizes", "batch_size=10", "codec=none", "kind=bytes"])
    assert len(found.cells) == 4 and found.filter == ("grid=sizes", "batch_size=10", "codec=none", "kind=bytes")


def test_a_cell_of_two_blocks_stays_for_the_one_that_is_wanted(profile: Profile) -> None:
    both = ["batch_size=10", "key_bytes=16", "value_bytes=100", "producer=false", "codec=none", "kind=bytes"]
    (cell,) = filter_profile(profile, both).cells
    assert cell.grids == {"sizes": ("v2", "v3"), "more-sizes": ("v1", "v2")} and cell.formats == ("v2", "v3", "v1")
    (cell,) = filter_profile(profile, [*both, "grid=more-*"]).cells
    assert cell.grids == {"more-sizes": ("v1", "v2")} and cell.formats == ("v2", "v1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind", "'kind': COLUMN=VALUE"),
        ("kind=", "'kind=': COLUMN=VALUE"),
        ("kind=a,,b", "COLUMN=VALUE"),
        ("=cpu", "COLUMN=VALUE"),
        ("batch_size<ten", "'batch_size<ten': < takes one number"),
        ("batch_size>=1,2", ">= takes one number"),
        ("batchsize=1", r"no column 'batchsize' \(columns: grid, kind, workload, codec, level, path, to, batch_size"),
        ("key_size=1", r"no column 'key_size' \(columns: .*, variant\)"),
        ("kind=prefix", r"kind=prefix: none of the 86 cells of sweep .*\(grids: sizes, more-sizes, named, broker\)"),
    ],
)
def test_what_is_no_filter_or_leaves_nothing_is_refused_by_name(profile: Profile, text: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said) as caught:
        filter_profile(profile, [text])
    assert "\n" not in str(caught.value)


def test_filters_are_read_with_spaces_and_lists() -> None:
    found = Filter.parse(" codec != gzip , zstd ")
    assert (found.column, found.sign, found.values) == ("codec", "!=", ("gzip", "zstd"))
    assert [found.matches(codec) for codec in ("gzip", "zstd", "lz4", None)] == [False, False, True, True]
