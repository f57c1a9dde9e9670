"""A sweep file is checked before anything runs. Its cells keep their ids."""

from dataclasses import replace

import pytest

from kfbench.formats import FORMATS
from kfbench.measure.cell import axes_of
from kfbench.measure.floor import FLOOR
from kfbench.measure.kinds import cell_key
from kfbench.sweep.definition.batch_plan import MAX_BATCH_BYTES
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.grid import GridPoint
from tests.sweep.profiles import BROKER, HEAD, MODEL, Load, block


# Stored runs contain cell ids. So the id of these cells may never change.
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
    assert len(seeds) == 2  # one per batch size; codecs, levels and kinds share it


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
    # The largest batch: 61 bytes of header, two 3-byte lengths and five 1-byte fields of the record.
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


def test_contexts_are_cells_of_each_codec_and_named_only_if_asked(load: Load) -> None:
    codecs = "codecs = { none = [], zstd = [1], lz4 = [9] }\naxes = { batch_size = [10] }"
    text = block(codecs, measure='["bytes", "cpu"]', formats='["v2", "v3"]')
    plain, both = (load(text, head=HEAD + head).cells for head in ("", 'cpu = { contexts = ["kept", "new"] }\n'))
    asked = [(cell.codec, cell.context) for cell in both if cell.kind == "cpu"]
    assert asked == [("none", None), ("zstd", "kept"), ("zstd", "new"), ("lz4", "kept"), ("lz4", "new")]
    assert [replace(cell, context=None) for cell in both if cell.context != "new"] == [*plain]
    assert len({*map(cell_key, both)}) == len(both)


def test_a_prefix_cell_is_timed_like_a_cpu_cell_under_a_codec(load: Load) -> None:
    text = block("codecs = { gzip = [] }\naxes = {}", formats='["v3-headers-first"]', measure='["prefix"]')
    (cell,) = load(text, head=HEAD + "cpu = { codec_payload_bytes = 30000, rounds = 7, sample_us = 9 }\n").cells
    assert (cell.kind, cell.records, cell.rounds, cell.sample_us) == ("prefix", 200, 7, 9)


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
    assert len({(cell.cell_id, cell.seed) for cell in cells}) == 1  # all paths use the same records
    assert len({cell_key(cell) for cell in cells}) == 3
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


def test_the_size_model_is_cut_where_its_cost_can_be_told(load: Load) -> None:
    cells = load(
        block('workloads = ["user-activity"]', **MODEL),
        head=HEAD + "model = { records = 70000000, cell_records = 20000000 }\n",
    ).cells
    ends = [cell.start + cell.records for cell in cells]
    assert [cell.start for cell in cells] == [0, *ends[:-1]]  # the slices follow one another and cover all records
    assert ends[:6] == [1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, (1 << 24) + (1 << 24)] and ends[-1] == 70_000_000
    assert all(end % BLOCK_RECORDS == 0 for end in ends[:-1])
    assert max(cell.records for cell in cells) <= 20_000_000
    assert len({cell_key(cell) for cell in cells}) == len(cells) and len({cell.seed for cell in cells}) == 1
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
    assert measure_cell(cell)[0]["status"] == "ok"  # it does not matter that v0 has no headers


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


def test_default_levels_are_resolved(load: Load) -> None:
    cells = load(block("codecs = { none = [], gzip = [], snappy = [], zstd = [3] }\naxes = {}")).cells
    assert [(cell.codec, cell.level) for cell in cells] == [("none", None), ("gzip", 6), ("snappy", None), ("zstd", 3)]
    assert len(load(block("codecs = { gzip = [6, 6] }\naxes = {}")).cells) == 1


def test_illegal_combinations_may_be_skipped_by_name(load: Load) -> None:
    skip = 'illegal = "skip"\ncodecs = { none = [], zstd = [] }\naxes = { headers = [0, 1] }'
    assert len(load(block(skip, formats='["v0", "v2"]')).cells) == 4


def test_a_block_may_have_settings_of_its_own(load: Load) -> None:
    text = "bytes = { records = 400 }\ncpu = { records = 300, rounds = 5 }\naxes = {}"
    own, other = (
        load(block(each, measure='["bytes", "cpu"]'), head=HEAD + "cpu = { rounds = 7 }\n").cells
        for each in (text, "axes = {}")
    )
    assert [(cell.kind, cell.records, cell.rounds) for cell in own] == [("bytes", 400, 0), ("cpu", 300, 5)]
    assert [(cell.kind, cell.rounds) for cell in other] == [("bytes", 0), ("cpu", 7)]
