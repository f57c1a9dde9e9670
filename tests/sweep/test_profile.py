"""Sweeps are checked as a whole before anything runs, and their cells keep their ids."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.measure.floor import FLOOR
from kfbench.measure.paths import PATHS
from kfbench.sweep.definition import batch_plan, sweep_file
from kfbench.sweep.definition.batch_plan import MAX_BATCH_BYTES, whole_batches
from kfbench.sweep.definition.cell import axes_of, workload_label
from kfbench.sweep.definition.filter import filtered
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.definition.sweep_file import Kind
from kfbench.sweep.run.cell import measure_cell
from kfbench.sweep.run.estimate import estimate_s
from kfbench.sweep.run.plan import CELL_BUDGET_S
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.grid import GridPoint

Load = Callable[..., Profile]

HEAD = 'title = "t"\nanalysis = "a"\n'


def block(text: str = "", *, name: str = "g", formats: str = '["v2", "v3"]', measure: str = '["bytes"]') -> str:
    head = f'[[grid]]\nname = "{name}"\ntitle = "t"\nanalysis = "prose of {name}"\n'
    axes = "" if "axes" in text or "workloads" in text else "axes = { batch_size = [1, 10] }\n"
    return f"{head}measure = {measure}\nformats = {formats}\n{text}\n{axes}"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(*blocks: str, head: str = HEAD) -> Profile:
        path = tmp_path / "sweep.toml"
        path.write_text(head + "".join(blocks))
        return load_profile(path)

    return loaded


# A cell's id is in stored runs: it may never change for a point that was measurable once.
@pytest.mark.parametrize(
    ("point", "cell_id"),
    [
        ("axes = { batch_size = [100] }", "f89214530cb698ba"),
        ("axes = { timestamp_spread_ms = [1000] }", "cc62f5033f696696"),
        ("axes = { batch_size = [1] }", "c34aa974487f5f80"),
        ("axes = { timestamp_spread_ms = [1000], batch_size = [10] }", "bbcbaec07248a49d"),
    ],
)
def test_ids_are_for_ever(load: Load, point: str, cell_id: str) -> None:
    (cell,) = load(block(point)).cells
    assert cell.cell_id == cell_id and cell.seed == int(cell_id, 16) >> 1


def test_an_axis_at_its_default_does_not_enter_the_id(load: Load) -> None:
    axes = axes_of(GridPoint())
    spelled = ", ".join(
        f"{axis} = [{str(value).lower() if isinstance(value, bool) else repr(value)}]" for axis, value in axes.items()
    )
    (cell,) = load(block(f"axes = {{ {spelled} }}")).cells
    assert cell.cell_id == load(block("axes = {}")).cells[0].cell_id
    assert cell.workload == GridPoint()


def test_all_arms_of_a_comparison_see_the_same_records(load: Load) -> None:
    cells = load(
        block("codecs = { none = [], zstd = [1, 3] }", measure='["bytes", "cpu"]'),
        head=HEAD,
    ).cells
    assert len(cells) == 2 * 3 * 2
    seeds = {(cell.cell_id, cell.seed) for cell in cells}
    assert len(seeds) == 2  # one a batch size, whatever the codec, level and kind


def test_another_seed_gives_other_records_of_the_same_cells(load: Load) -> None:
    one, other = load(block()).cells, load(block(), head=HEAD + "seed = 1\n").cells
    assert [cell.cell_id for cell in one] == [cell.cell_id for cell in other]
    assert not {cell.seed for cell in one} & {cell.seed for cell in other}


def test_one_record_a_batch_has_no_spread(load: Load) -> None:
    cells = load(block("axes = { batch_size = [1, 2], timestamp_spread_ms = [0, 5] }")).cells
    assert [(cell.axes["batch_size"], cell.axes["timestamp_spread_ms"]) for cell in cells] == [(1, 0), (2, 0), (2, 5)]


def test_the_widest_offsets_of_a_batch_are_legal(load: Load) -> None:
    (cell,) = load(block("axes = { offset_stride = [2147483647], batch_size = [2] }")).cells
    sample = cell.workload.generate(records=2, seed=0)
    assert FORMATS["v2"].decode(FORMATS["v2"].encode(sample.records, sample.bounds).data).records == sample.records
    assert len(load(block("axes = { offset_stride = [2147483647], batch_size = [1] }")).cells) == 1


def test_batches_that_a_broker_refuses_are_left_out(load: Load) -> None:
    cells = load(
        block('axes = { value_bytes = [102400], key_bytes = ["null"], batch_size = [1, 10, 11, 10000] }')
    ).cells
    assert [cell.axes["batch_size"] for cell in cells] == [1, 10]
    # The limit itself: a header of 61 bytes; two lengths of 3 bytes and five fields of 1 in the record.
    largest = MAX_BATCH_BYTES - 61 - 11
    cells = load(
        block(f'axes = {{ value_bytes = [{largest}, {largest + 1}], key_bytes = ["null"], batch_size = [1] }}')
    ).cells
    assert [cell.axes["value_bytes"] for cell in cells] == [largest]
    assert FORMATS["v2"].size(cells[0].workload.generate(records=1, seed=0).shapes).sum() == MAX_BATCH_BYTES


def test_null_is_spelled_out(load: Load) -> None:
    cells = load(block('axes = { key_bytes = ["null", 0] }')).cells
    assert [cell.axes["key_bytes"] for cell in cells] == [-1, 0]


def test_a_cell_that_two_blocks_name_is_measured_once(load: Load) -> None:
    cells = load(
        block("axes = { batch_size = [1, 10] }", name="a", formats='["v0", "v2"]'),
        block("axes = { batch_size = [10, 100] }", name="b", formats='["v2", "v3"]'),
    ).cells
    assert len(cells) == 3
    shared = next(cell for cell in cells if cell.axes["batch_size"] == 10)
    assert shared.formats == ("v0", "v2", "v3")
    assert shared.grids == {"a": ("v0", "v2"), "b": ("v2", "v3")}


def test_cells_hold_whole_batches(load: Load) -> None:
    head = HEAD + "[bytes]\nrecords = 1000\npayload_bytes = 100000\n[cpu]\nrecords = 50\nrounds = 7\nsample_us = 9\n"
    cells = load(
        block("axes = { batch_size = [1, 300, 5000] }", measure='["bytes", "cpu"]', formats='["v2"]'), head=head
    ).cells
    sizes = [(cell.kind, cell.axes["batch_size"], cell.records) for cell in cells]
    assert sizes == [
        ("bytes", 1, 862), ("bytes", 300, 600), ("bytes", 5000, 5000),
        ("cpu", 1, 50), ("cpu", 300, 300), ("cpu", 5000, 5000),
    ]  # fmt: skip
    assert {(cell.kind, cell.rounds, cell.sample_us) for cell in cells} == {("bytes", 0, 0), ("cpu", 7, 9)}


def test_the_prose_stays_with_its_block(load: Load) -> None:
    profile = load(block(name="a"), block("axes = { headers = [1] }", name="b"))
    assert [(grid.name, grid.analysis) for grid in profile.grids] == [("a", "prose of a"), ("b", "prose of b")]
    assert profile.text.startswith(HEAD) and profile.name == "sweep"


def test_a_prefix_cell_is_timed_like_a_cpu_cell_under_a_codec(load: Load) -> None:
    text = block("codecs = { gzip = [] }\naxes = {}", formats='["v3-headers-first"]', measure='["prefix"]')
    (cell,) = load(text, head=HEAD + "cpu = { codec_payload_bytes = 30000, rounds = 7, sample_us = 9 }\n").cells
    assert (cell.kind, cell.records, cell.rounds, cell.sample_us) == ("prefix", 200, 7, 9)


BROKER = {"formats": '["v1", "v2"]', "measure": '["broker"]'}


def test_a_broker_block_has_a_cell_for_each_path_and_each_format_that_it_converts_to(load: Load) -> None:
    text = 'paths = ["append", "convert"]\nto = ["v2", "v3"]\naxes = {}'
    cells = load(
        block(text, formats='["v1", "v2"]', measure='["broker"]'),
        head=HEAD + "broker = { rounds = 7, sample_us = 9 }\n",
    ).cells
    assert [(cell.path, cell.to, cell.formats) for cell in cells] == [
        ("append", None, ("v1", "v2")), ("convert", "v2", ("v1",)), ("convert", "v3", ("v1", "v2")),
    ]  # fmt: skip
    assert {(cell.kind, cell.rounds, cell.sample_us) for cell in cells} == {("broker", 7, 9)}
    assert len({(cell.cell_id, cell.seed) for cell in cells}) == 1  # all paths see the same records
    assert len({cell.key for cell in cells}) == 3
    assert cells[1].title.endswith("; convert to v2)") and cells[0].title.endswith("(grid: defaults; none; append)")


def test_paths_of_two_blocks_are_not_the_same_cell(load: Load) -> None:
    cells = load(
        block('paths = ["append"]\naxes = {}', name="a", **BROKER),
        block('paths = ["append", "fetch"]\naxes = {}', name="b", formats='["v2", "v3"]', measure='["broker"]'),
    ).cells
    assert [(cell.path, cell.formats) for cell in cells] == [("append", ("v1", "v2", "v3")), ("fetch", ("v2", "v3"))]


def test_a_broker_cell_has_a_working_set_of_its_own(load: Load) -> None:
    head = HEAD + "[broker]\npayload_bytes = 50000\ncodec_payload_bytes = 20000\n[cpu]\npayload_bytes = 1\n"
    cells = load(block('paths = ["append"]\ncodecs = { none = [], lz4 = [] }\naxes = {}', **BROKER), head=head).cells
    assert [cell.records for cell in cells] == [400, 100]


MODEL = {"measure": '["model"]', "formats": '["v2", "v3"]'}


def test_the_size_model_is_cut_where_its_cost_can_be_told(load: Load) -> None:
    cells = load(
        block('workloads = ["user-activity"]', **MODEL),
        head=HEAD + "model = { records = 70000000, cell_records = 20000000 }\n",
    ).cells
    ends = [cell.start + cell.records for cell in cells]
    assert [cell.start for cell in cells] == [0, *ends[:-1]]  # one after another, all of them
    assert ends[:6] == [1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, (1 << 24) + (1 << 24)] and ends[-1] == 70_000_000
    assert all(end % BLOCK_RECORDS == 0 for end in ends[:-1])
    assert max(cell.records for cell in cells) <= 20_000_000
    assert len({cell.key for cell in cells}) == len(cells) and len({cell.seed for cell in cells}) == 1
    assert {(cell.kind, cell.codec, cell.formats) for cell in cells} == {("model", "none", ("v2", "v3"))}
    assert cells[1].title.endswith("(user-activity: defaults; none; from record 1,048,576 on)")


def test_the_size_model_of_a_point_of_the_grid_has_whole_batches(load: Load) -> None:
    head = HEAD + "model = { records = 3000001, cell_records = 1 }\n"
    cells = load(block("axes = { batch_size = [3000] }", **MODEL), head=head).cells
    assert [cell.records % 3000 for cell in cells] == [0] * (len(cells) - 1) + [1]
    assert sum(cell.records for cell in cells) == 3_000_001 and cells[0].records == BLOCK_RECORDS // 3000 * 3000
    one = load(block("model = { records = 5 }\naxes = { batch_size = [10] }", **MODEL)).cells
    assert [(cell.start, cell.records) for cell in one] == [(0, 5)]


def test_a_floor_is_of_no_format_and_no_codec_and_of_the_records_of_the_bytes_cell(load: Load) -> None:
    axes = (
        "bytes = { records = 5000, payload_bytes = 512000 }\naxes = { batch_size = [5], value_bytes = [100, 102400] }"
    )
    cells = load(block(f"codecs = {{ gzip = [6], zstd = [3] }}\n{axes}", measure='["floor"]')).cells
    assert {(cell.kind, cell.codec, cell.level, cell.formats) for cell in cells} == {("floor", "none", None, (FLOOR,))}
    assert cells[0].grids == {"g": (FLOOR,)} and cells[0].title.startswith("floor cell ")
    own = [(cell.cell_id, cell.seed, cell.records, cell.batches) for cell in cells]
    assert own == [(cell.cell_id, cell.seed, cell.records, cell.batches) for cell in load(block(axes)).cells]
    (cell,) = load(block("axes = { headers = [1] }", formats='["v0"]', measure='["floor"]')).cells
    assert measure_cell(cell)[0]["status"] == "ok"  # v0 has no headers, which is no matter to it


def test_a_floor_of_two_blocks_is_one_cell(load: Load) -> None:
    (one, other) = load(block(name="a", measure='["floor"]'), block(name="b", measure='["floor"]')).cells
    assert one.grids == other.grids == {"a": (FLOOR,), "b": (FLOOR,)}
    rows = measure_cell(one)
    assert [row["grid"] for row in rows] == ["a", "b"] and len({row["overhead_bytes"] for row in rows}) == 1


def test_a_block_may_have_seeds_of_its_own(load: Load) -> None:
    text = 'workloads = ["user-activity"]\ncodecs = { none = [], zstd = [3] }\n'
    cells = load(block(text + "seeds = [0, 1, 1, 7]")).cells
    assert (
        len(cells) == 3 * 2 and len({cell.seed for cell in cells}) == 3 and len({cell.cell_id for cell in cells}) == 1
    )
    assert {cell.seed for cell in load(block(text)).cells} < {cell.seed for cell in cells}
    assert load(block(text + "seeds = [7]")).cells == load(block(text), head=HEAD + "seed = 7\n").cells


BELOW = 'extends = "below.toml"\n'


@pytest.fixture
def extend(tmp_path: Path) -> Callable[[str, str], Profile]:
    def loaded(below: str, text: str) -> Profile:
        (tmp_path / "below.toml").write_text(below)
        (tmp_path / "sweep.toml").write_text(text)
        return load_profile(tmp_path / "sweep.toml")

    return loaded


Extend = Callable[[str, str], Profile]


def test_a_sweep_may_extend_another_one(extend: Extend) -> None:
    below = HEAD + "seed = 3\nbytes = { records = 50, payload_bytes = 4000 }\n" + block(name="a") + block(name="b")
    found = extend(
        below,
        'extends = "below.toml"\ntitle = "other"\nbytes = { records = 20 }\n'
        '[[grid]]\nname = "b"\naxes = { batch_size = [5] }\n' + block("axes = { headers = [1] }", name="c"),
    )
    assert (found.title, found.analysis, found.seed, found.name) == ("other", "a", 3, "sweep")
    assert [(grid.name, grid.analysis) for grid in found.grids] == [(name, f"prose of {name}") for name in "abc"]
    sizes = [(next(iter(cell.grids)), cell.axes["batch_size"], cell.records) for cell in found.cells]
    assert sizes == [("a", 1, 20), ("a", 10, 20), ("b", 5, 20), ("c", 100, 100)]
    assert found.text.startswith('extends = "below.toml"') and below in found.text  # what a run has to be continued by


def test_what_is_extended_may_be_a_profile_and_extend_others(extend: Extend, tmp_path: Path) -> None:
    (tmp_path / "between.toml").write_text('extends = "below.toml"\nseed = 5\n')
    below = HEAD + block()
    assert (
        extend(below, 'extends = "between.toml"').cells
        == extend(HEAD + "seed = 5\n" + block(), 'extends = "below.toml"').cells
    )
    (tmp_path / "named.toml").write_text('extends = "smoke"\nbytes = { records = 10 }\n')
    smoke, named = load_profile("smoke"), load_profile(tmp_path / "named.toml")
    assert [cell.key for cell in named.cells] == [cell.key for cell in smoke.cells] and named.grids == smoke.grids


def test_a_sweep_says_for_itself_that_its_reports_are_for_publishing(extend: Extend) -> None:
    said = [(name, sweep_file.read(name)[1].publish) for name in ("default", "fleet", "full", "smoke")]
    assert said == [("default", True), ("fleet", True), ("full", True), ("smoke", False)]
    below = HEAD + "publish = true\n" + block()
    assert not extend(below, 'extends = "below.toml"').publish
    whole = extend(HEAD + block(), 'extends = "below.toml"\npublish = true')
    assert whole.publish and not filtered(whole, ["batch_size>0"]).publish


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('extends = "nowhere"', r"sweep\.toml: extends: nowhere: no such profile"),
        ('extends = "none.toml"', r"none\.toml: cannot be read"),
        ("extends = 3", r"sweep\.toml: \$\.extends: a text is wanted, not 3"),
        ('extends = "sweep.toml"', r"sweep\.toml: extends: itself, by way of sweep\.toml"),
        (BELOW + "seeds = 3", r"sweep\.toml: \$: seeds: unknown key"),
        (BELOW + "[[grid]]\naxes = {}", r"sweep\.toml: \$\.grid\[0\]\.name: a name is wanted"),
        (
            'extends = "below.toml"\n[[grid]]\nname = "g"\n[[grid]]\nname = "g"',
            r"grid 'g' .*: name: two blocks have it",
        ),
        (
            'extends = "below.toml"\n[[grid]]\nname = "new"',
            r"sweep\.toml: grid '.*' \(\$\.grid\[1\]\): .*: missing",
        ),
        (BELOW + "bytes = { record = 3 }", r"sweep\.toml: \$\.bytes: record: unknown key"),
        (
            'extends = "below.toml"\n[[grid]]\nname = "g"\naxes = { colour = [1] }',
            r"grid 'g' .*grid has no axis 'colour'",
        ),
    ],
)
def test_what_extends_badly_is_refused(extend: Extend, text: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        extend(HEAD + block(), text)


def test_what_is_wrong_below_is_said_of_that_file(extend: Extend) -> None:
    with pytest.raises(InvalidConfig, match=r"below\.toml: \$: analysis: missing"):
        extend('title = "t"\n', 'extends = "below.toml"')


def test_default_levels_are_resolved(load: Load) -> None:
    cells = load(block("codecs = { none = [], gzip = [], snappy = [], zstd = [3] }\naxes = {}")).cells
    assert [(cell.codec, cell.level) for cell in cells] == [("none", None), ("gzip", 6), ("snappy", None), ("zstd", 3)]
    assert len(load(block("codecs = { gzip = [6, 6] }\naxes = {}")).cells) == 1


BAD = {
    "unknown key": (block("bogus = 1"), r"\(\$\.grid\[0\]\): bogus: unknown key"),
    "no formats": (block(formats="[]"), "grid 'g' .*: formats: empty"),
    "no measure": (block(measure="[]"), "grid 'g' .*: measure: empty"),
    "unknown measure": (block(measure='["time"]'), r"\(\$\.grid\[0\]\): measure\.0: 'time' is not one of bytes, cpu, "),
    "unknown format": (block(formats='["v7"]'), "formats: no format 'v7'"),
    "unknown axis": (block("axes = { colour = [1] }"), "grid has no axis 'colour'"),
    "empty axis": (block("axes = { headers = [] }"), "axes.headers: empty"),
    "level off the axis": (block("axes = { batch_size = [0] }"), "axes.batch_size: 0 is not within"),
    "level of another type": (block('axes = { batch_size = ["many"] }'), "axes.batch_size: a whole number is wanted"),
    "date for list": (block("axes = { headers = 2020-01-01 }"), r"axes\.headers: a list is wanted, not a date"),
    "time for list": (
        block("axes = { headers = 2020-01-01T00:00:00 }"), r"axes\.headers: a list is wanted, not a date and time"
    ),
    "fraction for int": (block("axes = { batch_size = [1.5] }"), "axes.batch_size: a whole number is wanted, not 1.5"),
    "list for int": (block("axes = { batch_size = [[1]] }"), "axes.batch_size: a whole number is wanted, not a list"),
    "date for int": (
        block("axes = { batch_size = [2020-01-01] }"), "axes.batch_size: a whole number is wanted, not a date"
    ),
    "bool for int": (block("axes = { headers = [true] }"), "axes.headers: a whole number is wanted, not True"),
    "unknown payload": (block('axes = { payload = ["xml"] }'), "axes.payload: 'xml'"),
    "codec without levels": (block("codecs = { gzip = 6 }"), r"grid 'g' .*: codecs\.gzip: a list is wanted, not 6"),
    "axis without list": (block("axes = { headers = 1 }"), r"axes\.headers: a list is wanted, not 1"),
    "unknown workload": (block('workload = "nowhere"'), "workload: no 'nowhere'"),
    "unknown workload of the catalogue": (
        block('workloads = ["user-activity", "grid"]'), "workloads: no 'grid' in the catalogue .*user-activity"
    ),
    "unknown variant": (
        block('workloads = ["user-activity/rate-7"]'),
        "workloads: user-activity has no variant 'rate-7' .variants: default, rate-10, ",
    ),
    "workloads and axes": (
        block('workloads = ["user-activity"]\naxes = { key_bytes = [1] }'), "axes: workloads by name have no 'key_by"
    ),
    "no size of a batch": (
        block('workloads = ["user-activity"]\naxes = { batch_size = [0] }'), "axes.batch_size: 0 is not 1 to"
    ),
    "one record of compressed batches": (
        block("codecs = { zstd = [] }", measure='["record"]'), "codecs: record cells have none"
    ),
    "metadata without the base": (block(formats='["v3"]', measure='["metadata"]'), "metadata cells need v2"),
    "workloads and workload": (block('workload = "user-activity"\nworkloads = ["user-activity"]'), "take the place of"),
    "a name for an axis": (block('workload = "user-activity"\naxes = { name = ["x"] }'), "has no axis 'name'"),
    "unknown variant by axis": (
        block('workload = "user-activity"\naxes = { variant = ["rate-7"] }'), "axes.*no variant 'rate-7'"
    ),
    "headers of a workload": (block('workloads = ["service-events"]', formats='["v1", "v2"]'), "v1 has no headers"),
    "a block's own settings": (block("bytes = { records = 0 }"), "grid 'g' .*bytes.records: 0 is below 1"),
    "unknown codec": (block("codecs = { brotli = [] }"), "codecs.brotli: no codec 'brotli'"),
    "unknown level": (block("codecs = { gzip = [12] }"), "codecs.gzip: gzip has no level 12"),
    "zstd in v1": (block("codecs = { zstd = [] }", formats='["v1", "v2"]'), "codecs.zstd: v1 has no zstd"),
    "headers in v0": (block("axes = { headers = [1] }", formats='["v0", "v2"]'), "formats: v0 has no headers"),
    "cpu without base": (block(formats='["v3"]', measure='["cpu"]'), "cpu cells need v2"),
    "a cold prefix": (
        block('cpu = { cache = "cold" }\ncodecs = { gzip = [] }', formats='["v3-full"]', measure='["prefix"]'),
        "cpu.cache: prefix cells have no cold mode",
    ),
    "a cache of no kind": (block('cpu = { cache = "warm" }'), "'warm'"),
    "no prefix": (block(measure='["prefix"]'), "formats: v2 has no headers first"),
    "no codec for a prefix": (
        block(formats='["v3-full"]', measure='["prefix"]'), "codecs.none: prefix cells compare how much is decompressed"
    ),
    "nothing valid": (block("axes = { batch_size = [1], timestamp_spread_ms = [5] }"), "axes: no valid cell is left"),
    "far too large": (block("axes = { batch_size = [2000000000] }"), "axes: no valid cell is left"),
    "too far apart": (
        block("axes = { offset_stride = [1, 2147483647] }"),
        "axes.offset_stride: 2147483647 at batch_size 100",
    ),
    "time overflows": (
        block("axes = { base_timestamp_ms = [4611686018427387904], timestamp_spread_ms = [0, 4611686018427387904] }"),
        "axes.timestamp_spread_ms: 4611686018427387904 after base_timestamp_ms 4611686018427387904 is beyond int64",
    ),
    "a format twice": (block(formats='["v2", "v3", "v2"]'), "grid 'g' .*: formats: 'v2' is there twice"),
    "too many cells": (
        block("axes = { " + ", ".join(f"{axis} = {list(range(1, 201))}" for axis in (
            "batch_size", "key_bytes", "value_bytes", "timestamp_spread_ms")) + " }"),
        "grid 'g' .*: axes: 1,600,000,000 cells, and a block may have 100,000",
    ),
    "too many cells by codecs": (
        block(f"axes = {{ key_bytes = {list(range(8_334))} }}\ncodecs = {{ none = [], zstd = [1, 2, 3, 4, 5] }}",
              measure='["bytes", "cpu"]'),
        "axes: 100,008 cells",
    ),
    "a name twice": (block() + block(), "name: two blocks have it"),
    "broker without paths": (block(measure='["broker"]'), "paths: measure = .* and paths need each other"),
    "paths without broker": (block('paths = ["append"]'), "paths: measure = .* and paths need each other"),
    "unknown path": (block('paths = ["teleport"]', **BROKER), "paths: no path 'teleport' .paths: append, "),
    "convert to nothing": (block('paths = ["convert"]', **BROKER), "to: convert needs formats"),
    "to without convert": (block('paths = ["append"]\nto = ["v2"]', **BROKER), "to: no path converts"),
    "convert to the unknown": (block('paths = ["convert"]\nto = ["v9"]', **BROKER), "to: no format 'v9'"),
    "convert to itself": (
        block('paths = ["convert"]\nto = ["v2"]', formats='["v2"]', measure='["broker"]'),
        "to: v2 is all that there is to convert",
    ),
    "zstd on its way to v1": (
        block('paths = ["convert"]\nto = ["v1"]\ncodecs = { zstd = [] }', formats='["v2", "v3"]', measure='["broker"]'),
        "codecs.zstd: v1 has no zstd",
    ),
    "seek by time without times": (
        block('paths = ["seek-time"]', formats='["v0"]', measure='["broker"]'), "formats: v0 has no timestamps"
    ),
    "no log append time": (
        block('paths = ["append-time"]', formats='["v0"]', measure='["broker"]'), "formats: v0 has no log append time"
    ),
    "compaction without keys": (
        block('paths = ["compact"]\naxes = { key_bytes = ["null"] }', **BROKER), "formats: records without a key "
    ),
    "a codec for the model": (
        block("codecs = { none = [], zstd = [3] }", **MODEL), "codecs: the size model has none"
    ),
    "sizes that shapes do not tell": (
        block(formats='["v2", "v3-full"]', measure='["model"]'), "formats: sizes of v3-full depend on what is in"
    ),
    "records beyond all times": (
        block('model = { records = 1000000000000000 }\nworkloads = ["iot-telemetry"]', **MODEL),
        "axes: 29,802,323 cells",
    ),
    "records beyond the times of a workload": (
        block(f'model = {{ records = {10**15}, cell_records = {10**15} }}\nworkloads = ["iot-telemetry"]', **MODEL),
        "model.records: iot-telemetry: records 1 from start 999999999999999 on take .* microseconds",
    ),
    "no records for the model": (block("model = { records = 0 }", **MODEL), "grid 'g' .*model.records: 0 is below 1"),
    "a seed below 0": (block("seeds = [1, -1]"), "grid 'g' .*seeds: -1 is negative"),
    "too many cells by seeds": (
        block(f"axes = {{ key_bytes = {list(range(1_001))} }}\nseeds = {list(range(100))}"), "axes: 100,100 cells"
    ),
    "unknown illegal": (block('illegal = "maybe"'), "'maybe'"),
}  # fmt: skip


def test_a_date_for_a_text_is_called_one(load: Load) -> None:
    with pytest.raises(InvalidConfig, match=r"\$\.title: a text is wanted, not a date$"):
        load(block(), head='title = 2020-01-01\nanalysis = "a"\n')


@pytest.mark.parametrize("case", BAD)
def test_a_bad_block_is_refused_with_file_and_key(load: Load, tmp_path: Path, case: str) -> None:
    text, said = BAD[case]
    with pytest.raises(InvalidConfig, match=said) as caught:
        load(text)
    assert str(caught.value).startswith(str(tmp_path / "sweep.toml")) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('title = "t"\n', r"\$: analysis: missing"),
        (HEAD + "seeds = 3\n", r"\$: seeds: unknown key"),
        (HEAD + "seed = -1\n", r"\$\.seed: -1 is negative"),
        (HEAD + '[broker]\ncache = "warm"\n', "cache"),
        (HEAD + "[cpu]\nrounds = 0\n", r"\$\.cpu\.rounds: 0 is below 1"),
        (HEAD + "[broker]\nrecords = 0\n", r"\$\.broker\.records: 0 is below 1"),
        (HEAD + "[model]\ncell_records = 0\n", r"\$\.model\.cell_records: 0 is below 1"),
        (HEAD + "[bytes]\nrecord = 1\n", r"\$\.bytes: record: unknown key"),
        ("title = \n", "line 1"),
    ],
)
def test_a_bad_head_is_refused(load: Load, head: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        load(block(), head=head)


def test_illegal_combinations_may_be_skipped_by_name(load: Load) -> None:
    skip = 'illegal = "skip"\ncodecs = { none = [], zstd = [] }\naxes = { headers = [0, 1] }'
    assert len(load(block(skip, formats='["v0", "v2"]')).cells) == 4


def test_profiles_are_found_by_name_or_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"nowhere: no such profile \(profiles: default, fleet, full, smoke"):
        load_profile("nowhere")
    with pytest.raises(InvalidConfig, match=r"none\.toml: cannot be read"):
        load_profile(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(InvalidConfig, match=r"latin\.toml: cannot be read"):
        load_profile(tmp_path / "latin.toml")


def test_workloads_of_the_catalogue_go_by_name_variant_and_pattern(load: Load) -> None:
    text = 'workloads = ["user-activity", "producer-perf/batch-1?", "producer-perf/batch-1*", "omb-*"]'
    assert [workload_label(cell.workload) for cell in load(block(text)).cells] == [
        "user-activity", "producer-perf/batch-10", "producer-perf/batch-1", "producer-perf/batch-1000",
        "omb-100b", "omb-1kb",
    ]  # fmt: skip
    every = [cell.workload for cell in load(block('workloads = ["*/*"]')).cells]
    assert every == [
        NamedWorkload(name=name, variant=variant) for name, each in CATALOGUE.items() for variant in each.variants
    ]
    by_axis = load(block('workload = "user-activity"\naxes = { variant = ["default", "rate-10"] }')).cells
    by_name = load(block('workloads = ["user-activity", "user-activity/rate-10"]')).cells
    assert by_axis == by_name
    assert by_name[1].title.endswith("(user-activity: variant rate-10; none)")


def test_ids_of_workloads_are_for_ever_too(load: Load) -> None:
    cells = load(block('workloads = ["user-activity", "user-activity/rate-10"]')).cells
    assert [cell.cell_id for cell in cells] == ["8e4f7ecaf5149d03", "b2dc82e835007195"]


def test_a_cell_takes_whole_batches_of_the_workload(load: Load) -> None:
    """As many as its own bounds say, about so many records, within the payload, and one at least."""
    text = 'workloads = ["user-activity/rate-10000", "omb-1kb", "cluster-metadata"]\nbytes = { %s }'
    for records, payload_bytes in ((1_000, 1 << 17), (300, 1 << 20)):
        cells = load(block(text % f"records = {records}, payload_bytes = {payload_bytes}")).cells
        for cell in cells:
            sample = cell.workload.generate(records=BLOCK_RECORDS, seed=cell.seed)
            at = sample.bounds.tolist().index(cell.records)  # raises: a batch was cut
            assert at == cell.batches >= 1
            cut = cell.workload.generate(records=cell.records, seed=cell.seed).shapes
            assert cut.payload_bytes == cell.payload_bytes
            more = cell.workload.generate(records=int(sample.bounds[at + 1]), seed=cell.seed).shapes
            assert sample.bounds[at - 1] < records
            assert cell.payload_bytes <= payload_bytes or at == 1
            assert cell.records >= records or more.payload_bytes > payload_bytes
    headers = load(block('workloads = ["service-events"]')).cells[0]
    shapes = headers.workload.generate(records=headers.records, seed=headers.seed).shapes
    assert shapes.payload_bytes == headers.payload_bytes and shapes.has_headers


def test_more_records_than_a_block_has(load: Load) -> None:
    text = 'workloads = ["cluster-metadata"]\nbytes = { records = 70000, payload_bytes = 1073741824 }'
    (cell,) = load(block(text)).cells
    assert 70_000 <= cell.records < 70_100


def test_a_block_may_have_settings_of_its_own(load: Load) -> None:
    text = "bytes = { records = 400 }\ncpu = { records = 300, rounds = 5 }\naxes = {}"
    own, other = (
        load(block(each, measure='["bytes", "cpu"]'), head=HEAD + "cpu = { rounds = 7 }\n").cells
        for each in (text, "axes = {}")
    )
    assert [(cell.kind, cell.records, cell.rounds) for cell in own] == [("bytes", 400, 0), ("cpu", 300, 5)]
    assert [(cell.kind, cell.rounds) for cell in other] == [("bytes", 0), ("cpu", 7)]


def test_a_workload_whose_batches_no_broker_takes_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_plan, "MAX_BATCH_BYTES", 1_000_000)
    with pytest.raises(InvalidConfig, match=r"workloads: large-payload/1mib: a batch of 1,0\d\d,\d\d\d bytes in v2"):
        load(block('workloads = ["large-payload/1mib"]'))


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("service-events", {"v0": "v0 has no headers", "enriched": "enriched has no headers"}),
        ("transactional", {"v1": "v1 has no transactions", "enriched": "enriched has no transactions"}),
        ("compacted-changelog", {"v1": "v1 has no delete horizons"}),
        ("user-activity", {"v0": None, "kip98": None}),  # producer ids are lost, and counted
    ],
)
def test_what_a_format_cannot_carry_is_left_out_with_the_reason(name: str, reasons: dict[str, str | None]) -> None:
    sample = CATALOGUE[name].generate(records=2_000, seed=3)
    assert {fmt: illegal(fmt, sample, "none") for fmt in reasons} == reasons
    assert illegal("v2", sample, "none") is illegal("v3", sample, "zstd") is None


def test_a_broker_takes_what_clients_send(load: Load) -> None:
    """Keys of many lengths are used again by compaction; control batches and survivors come from no client."""
    settings = "broker = { records = 60, rounds = 3, sample_us = 9 }\n"
    text = (
        'illegal = "skip"\npaths = ["compact"]\nworkloads = ["user-activity", "transactional", "compacted-changelog"]'
    )
    cells = load(block(text, formats='["v2"]', measure='["broker"]'), head=HEAD + settings).cells
    (sent, *_), (control, *_), (kept, *_) = (measure_cell(cell) for cell in cells)
    assert sent["status"] == "ok" and (control["status"], kept["status"]) == ("skipped", "skipped")
    assert control["error"] == kept["error"] and control["error"].startswith("compact begins with what clients send")


def test_the_rows_of_a_workload_say_which_it_is(load: Load) -> None:
    text = 'illegal = "skip"\nbytes = { records = 50 }\nworkloads = ["transactional/single"]'
    (cell,) = load(block(text, formats='["v1", "v2"]')).cells
    v1, v2 = measure_cell(cell)
    assert {(row["workload"], row["variant"]) for row in (v1, v2)} == {("transactional", "single")}
    assert (v1["status"], v1["error"]) == ("skipped", "v1 has no transactions")
    assert (v2["status"], v2["records"], v2["batches"]) == ("ok", cell.records, cell.batches)


def test_whole_batches_of_any_workload() -> None:
    assert whole_batches(GridPoint(batch_size=300), 0, 1_024) == 1_200
    bounds = CATALOGUE["omb-100b"].generate(records=BLOCK_RECORDS, seed=5).bounds
    assert whole_batches(CATALOGUE["omb-100b"], 5, 1_024) == bounds[1] > 1_024


def test_workloads_by_name_in_batches_of_other_sizes(load: Load) -> None:
    """Of the same records: the seed is that of the workload itself."""
    names = 'workloads = ["user-activity", "large-payload"]'
    own = load(block(names)).cells
    cells = load(block(f"{names}\naxes = {{ batch_size = [1, 100] }}")).cells
    assert [(cell.workload.name, cell.axes["batch_size"]) for cell in cells] == [
        ("user-activity", 1), ("user-activity", 100), ("large-payload", 1),  # 100 of these are no batch of a broker's
    ]  # fmt: skip
    assert len({cell.cell_id for cell in (*own, *cells)}) == 5
    assert {cell.seed for cell in cells} == {cell.seed for cell in own}
    first, hundred = (cell.workload.generate(records=cell.records, seed=cell.seed) for cell in cells[:2])
    assert set(np.diff(first.bounds)) == {1} and set(np.diff(hundred.bounds)) == {100}
    assert first.records.part(0, 100) == hundred.records.part(0, 100)


@pytest.mark.parametrize(("name", "least", "rounds"), [("smoke", (80, 30), 19), ("default", (2_400, 350), 67)])
def test_the_profiles_that_we_ship(name: str, least: tuple[int, int], rounds: int) -> None:
    profile = load_profile(name)
    kinds = Counter(cell.kind for cell in profile.cells)
    assert kinds["bytes"] >= least[0] and kinds["cpu"] >= least[1] and kinds["prefix"] >= 8
    assert {cell.path for cell in profile.cells if cell.kind == "broker"} == set(PATHS)
    assert len({cell.key for cell in profile.cells}) == len(profile.cells)
    assert {"v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only"} <= {
        name for cell in profile.cells for name in cell.formats
    }
    assert any(cell.kind == "cpu" and cell.axes.get("value_bytes", 0) >= 10_000 for cell in profile.cells)  # control
    named = {(cell.kind, cell.workload) for cell in profile.cells if isinstance(cell.workload, NamedWorkload)}
    assert len(named) >= 4 + 2
    if name == "smoke":
        assert set(kinds) == set(get_args(Kind))
    if name == "default":
        assert {("cpu", each) for each in CATALOGUE.values()} <= named
        every = [replace(each, variant=variant) for each in CATALOGUE.values() for variant in each.variants]
        assert {("bytes", each) for each in every} <= named
    for grid in profile.grids:
        assert grid.title and grid.analysis
    assert {cell.rounds for cell in profile.cells if cell.kind == "cpu" and cell.cache == "resident"} == {rounds}


@pytest.mark.thorough
def test_the_profiles_for_a_lunch_break_and_for_a_cluster() -> None:
    full, fleet = load_profile("full"), load_profile("fleet")
    kinds = Counter(cell.kind for cell in full.cells)
    assert kinds["bytes"] > 55_000 and kinds["cpu"] > 4_000 and "model" not in kinds
    assert Counter(cell.kind for cell in fleet.cells)["bytes"] > 75_000
    assert {cell.key for cell in full.cells} < {cell.key for cell in fleet.cells}
    assert {cell.rounds for cell in fleet.cells if cell.kind == "cpu" and cell.cache == "resident"} == {67}
    assert {cell.rounds for cell in fleet.cells if cell.kind == "broker"} == {30}
    assert {cell.cache for cell in fleet.cells} == {"resident", "cold"}
    assert all(estimate_s(cell) < CELL_BUDGET_S for cell in fleet.cells)
    modelled = Counter[str]()
    for cell in fleet.cells:
        if cell.kind == "model":
            modelled[cell.workload.name] += cell.records
    assert modelled == dict.fromkeys(CATALOGUE, 10**9)
    for profile in (full, fleet):
        assert len({cell.key for cell in profile.cells}) == len(profile.cells)
        assert all(grid.title and grid.analysis for grid in profile.grids)
    of_grid = [cell.axes for cell in full.cells if isinstance(cell.workload, GridPoint)]
    levels = {axis: {axes[axis] for axes in of_grid} for axis in axes_of(GridPoint())}
    assert levels["batch_size"] == {1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
    assert levels["key_bytes"] == {-1, 0, 8, 16, 36, 63, 64, 100, 512}
    assert levels["value_bytes"] == {-1, 0, 10, 100, 1000, 10000, 102400}
    assert levels["headers"] == {0, 1, 2, 5, 10} and levels["offset_stride"] == {1, 2, 64, 8192}
    assert levels["timestamp_spread_ms"] >= {0, 1, 63, 64, 1000, 8191, 8192, 60000, 3600000, 86400000}
    packed = {(cell.codec, cell.level) for cell in full.cells if cell.kind == "bytes"}
    assert len(packed) == 1 + 3 + 1 + 3 + 4
    seeds = {cell.seed for cell in full.cells if cell.workload == CATALOGUE["user-activity"] and cell.kind == "bytes"}
    assert len(seeds) == 5


def test_a_cell_says_where_it_is(load: Load) -> None:
    (cell,) = load(block("codecs = { gzip = [9] }\naxes = { batch_size = [10], headers = [2] }")).cells
    assert cell.title == f"bytes cell {cell.cell_id} (grid: batch_size 10, headers 2; gzip 9)"
    assert replace(cell, workload=GridPoint(), codec="none", level=None).title.endswith("(grid: defaults; none)")
