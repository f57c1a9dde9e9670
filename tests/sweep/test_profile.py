"""The cells of a sweep file: which there are, their records and batches, and their ids, which never change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.cell import Cell, axes_of, workload_label
from kfbench.measure.kinds import cell_key
from kfbench.measure.kinds.base import illegal
from kfbench.measure.kinds.floor import FLOOR
from kfbench.measure.paths import PATHS
from kfbench.sweep.definition.profile import MAX_BATCH_BYTES, load_profile, whole_batches
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.grid import GridPoint
from tests.sweep.profiles import BROKER, HEAD, MODEL, Load, block

LARGEST = MAX_BATCH_BYTES - 61 - 11  # 61 bytes of header, two 3-byte lengths and five 1-byte fields of the record
CONTEXTS = "codecs = { none = [], zstd = [1], lz4 = [9] }\naxes = { batch_size = [10] }"
# The blocks of a file -> facts of its cells, in order: fields of Cell, or axes of its workload.
CELLS: dict[str, tuple[str, str, list[Any]]] = {
    "no spread in one record": (
        block("axes = { batch_size = [1, 2], timestamp_spread_ms = [0, 5] }"),
        "batch_size timestamp_spread_ms", [(1, 0), (2, 0), (2, 5)],
    ),
    "null": (block('axes = { key_bytes = ["null", 0] }'), "key_bytes", [(-1,), (0,)]),
    "the widest offsets of one record": (
        block("axes = { offset_stride = [2147483647], batch_size = [1] }"), "offset_stride", [(2147483647,)]
    ),
    "batches that a broker refuses": (
        block('axes = { value_bytes = [102400], key_bytes = ["null"], batch_size = [1, 10, 11, 10000] }'),
        "batch_size", [(1,), (10,)],
    ),
    "the largest batch": (
        block(f'axes = {{ value_bytes = [{LARGEST}, {LARGEST + 1}], key_bytes = ["null"], batch_size = [1] }}'),
        "value_bytes", [(LARGEST,)],
    ),
    "a cell of two blocks": (
        block("axes = { batch_size = [1, 10] }", name="a", formats='["v0", "v2"]')
        + block("axes = { batch_size = [10, 100] }", name="b", formats='["v2", "v3"]'),
        "batch_size formats grids", [
            (1, ("v0", "v2"), {"a": ("v0", "v2")}),
            (10, ("v0", "v2", "v3"), {"a": ("v0", "v2"), "b": ("v2", "v3")}),
            (100, ("v2", "v3"), {"b": ("v2", "v3")}),
        ],
    ),
    "whole batches": (
        "[bytes]\nrecords = 1000\npayload_bytes = 100000\n[cpu]\nrecords = 50\nrounds = 7\nsample_us = 9\n"
        + block("axes = { batch_size = [1, 300, 5000] }", measure='["bytes", "cpu"]', formats='["v2"]'),
        "kind batch_size records rounds sample_us", [
            ("bytes", 1, 862, 0, 0), ("bytes", 300, 600, 0, 0), ("bytes", 5000, 5000, 0, 0),
            ("cpu", 1, 50, 7, 9), ("cpu", 300, 300, 7, 9), ("cpu", 5000, 5000, 7, 9),
        ],
    ),
    "contexts": (
        'cpu = { contexts = ["kept", "new"] }\n' + block(CONTEXTS, measure='["bytes", "cpu"]'),
        "kind codec context", [
            ("bytes", "none", None), ("bytes", "zstd", None), ("bytes", "lz4", None),
            ("cpu", "none", None), ("cpu", "zstd", "kept"), ("cpu", "zstd", "new"),
            ("cpu", "lz4", "kept"), ("cpu", "lz4", "new"),
        ],
    ),
    "contexts only if asked": (block(CONTEXTS, measure='["cpu"]'), "context", [(None,)] * 3),
    "a prefix": (
        "cpu = { codec_payload_bytes = 30000, rounds = 7, sample_us = 9 }\n"
        + block("codecs = { gzip = [] }\naxes = {}", formats='["v3-headers-first"]', measure='["prefix"]'),
        "kind records rounds sample_us", [("prefix", 200, 7, 9)],
    ),
    "broker paths": (
        "broker = { rounds = 7, sample_us = 9 }\n"
        + block('paths = ["append", "convert"]\nto = ["v2", "v3"]\naxes = {}', **BROKER),
        "path to formats rounds sample_us", [
            ("append", None, ("v1", "v2"), 7, 9), ("convert", "v2", ("v1",), 7, 9),
            ("convert", "v3", ("v1", "v2"), 7, 9),
        ],
    ),
    "paths of two blocks": (
        block('paths = ["append"]\naxes = {}', name="a", **BROKER)
        + block('paths = ["append", "fetch"]\naxes = {}', name="b", formats='["v2", "v3"]', measure='["broker"]'),
        "path formats", [("append", ("v1", "v2", "v3")), ("fetch", ("v2", "v3"))],
    ),
    "a broker's working set": (
        "[broker]\npayload_bytes = 50000\ncodec_payload_bytes = 20000\n[cpu]\npayload_bytes = 1\n"
        + block('paths = ["append"]\ncodecs = { none = [], lz4 = [] }\naxes = {}', **BROKER),
        "records", [(400,), (100,)],
    ),
    "default levels": (
        block("codecs = { none = [], gzip = [], snappy = [], zstd = [3] }\naxes = {}"),
        "codec level", [("none", None), ("gzip", 6), ("snappy", None), ("zstd", 3)],
    ),
    "a level twice": (block("codecs = { gzip = [6, 6] }\naxes = {}"), "level", [(6,)]),
    "formats that may be skipped": (
        block('illegal = "skip"\ncodecs = { zstd = [] }\naxes = { headers = [0, 1] }', formats='["v0", "v2"]'),
        "headers codec formats", [(headers, "zstd", ("v0", "v2")) for headers in (0, 1)],
    ),
    "settings of a block": (
        "cpu = { rounds = 7 }\n"
        + block("cpu = { records = 300, rounds = 5 }\naxes = {}", measure='["cpu"]'), "records rounds", [(300, 5)],
    ),
    "settings of the file": (
        "cpu = { records = 200, rounds = 7 }\n" + block("axes = {}", measure='["cpu"]'), "records rounds", [(200, 7)]
    ),
    "a small model": (
        block("model = { records = 5 }\naxes = { batch_size = [10] }", **MODEL), "start records", [(0, 5)]
    ),
    "a floor, without codec and format": (
        block("codecs = { gzip = [6] }\naxes = {}", measure='["floor"]'),
        "kind codec level formats grids", [("floor", "none", None, (FLOOR,), {"g": (FLOOR,)})],
    ),
    "a floor of two blocks": (
        block("axes = {}", name="a", measure='["floor"]') + block("axes = {}", name="b", measure='["floor"]'),
        "grids", [({"a": (FLOOR,), "b": (FLOOR,)},)],
    ),
    "names, variants and patterns": (
        block('workloads = ["user-activity", "producer-perf/batch-1?", "producer-perf/batch-1*", "omb-*"]'),
        "workload_label", [
            (label,) for label in ("user-activity", "producer-perf/batch-10", "producer-perf/batch-1",
                                   "producer-perf/batch-1000", "omb-100b", "omb-1kb")
        ],
    ),
    "a variant by axis": (
        block('workload = "user-activity"\naxes = { variant = ["default", "rate-10"] }'),
        "workload_label", [("user-activity",), ("user-activity/rate-10",)],
    ),
    "a batch too large for a broker": (
        block('workloads = ["user-activity", "large-payload"]\naxes = { batch_size = [1, 100] }'),
        "workload_label batch_size", [("user-activity", 1), ("user-activity", 100), ("large-payload", 1)],
    ),
}  # fmt: skip


def fact(cell: Cell, name: str) -> object:
    if name == "workload_label":
        return workload_label(cell.workload)
    return cell.axes[name] if name in cell.axes else getattr(cell, name)


@pytest.mark.parametrize("case", CELLS)
def test_the_cells_of_a_file(load: Load, case: str) -> None:
    text, names, wanted = CELLS[case]
    cells = load(text).cells
    assert [tuple(fact(cell, name) for name in names.split()) for cell in cells] == wanted
    assert len({cell_key(cell) for cell in cells}) == len(cells)
    assert all(cell.formats == tuple(dict.fromkeys(sum(cell.grids.values(), ()))) for cell in cells)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (block('paths = ["append"]\naxes = {}', **BROKER), "cell f89214530cb698ba (grid: defaults; none; append)"),
        (block('paths = ["convert"]\nto = ["v2"]\naxes = {}', **BROKER), "; none; convert to v2)"),
        (block("axes = {}", measure='["floor"]'), "floor cell f89214530cb698ba "),
        (block('workloads = ["user-activity/rate-10"]'), "(user-activity: variant rate-10; none)"),
        (
            "model = { records = 1048577 }\n" + block('workloads = ["user-activity"]', **MODEL),
            "; none; from record 1,048,576 on)",
        ),
    ],
)  # fmt: skip
def test_a_title_tells_a_cell(load: Load, text: str, part: str) -> None:
    assert part in load(text).cells[-1].title


# Ids, seeds and records


# Stored runs contain cell ids. So the id of these cells may never change.
@pytest.mark.parametrize(
    ("point", "cell_id"),
    [
        ("axes = { batch_size = [100] }", "f89214530cb698ba"),
        ("axes = { timestamp_spread_ms = [1000] }", "cc62f5033f696696"),
        ("axes = { timestamp_spread_ms = [1000], batch_size = [10] }", "bbcbaec07248a49d"),
        ('workloads = ["user-activity"]', "8e4f7ecaf5149d03"),
        ('workloads = ["user-activity/rate-10"]', "b2dc82e835007195"),
    ],
)
def test_ids_are_for_ever(load: Load, point: str, cell_id: str) -> None:
    (cell,) = load(block(point)).cells
    assert cell.cell_id == cell_id
    assert isinstance(cell.workload, NamedWorkload) or cell.seed == int(cell_id, 16) >> 1


def test_an_axis_at_its_default_does_not_enter_the_id(load: Load) -> None:
    axes = axes_of(GridPoint())
    spelled = ", ".join(
        f"{axis} = [{str(value).lower() if isinstance(value, bool) else repr(value)}]" for axis, value in axes.items()
    )
    (cell,) = load(block(f"axes = {{ {spelled} }}")).cells
    assert cell.cell_id == load(block("axes = {}")).cells[0].cell_id
    assert cell.workload == GridPoint()


def test_all_arms_of_a_comparison_see_the_same_records(load: Load) -> None:
    cells = load(block("codecs = { none = [], zstd = [1, 3] }", measure='["bytes", "cpu", "floor"]')).cells
    assert len(cells) == 2 * (3 * 2 + 1)
    assert len({(cell.cell_id, cell.seed) for cell in cells}) == 2  # one per batch size
    sizes = {(cell.cell_id, cell.records, cell.batches) for cell in cells if cell.kind != "cpu"}
    assert len(sizes) == 2  # a floor has the records of the bytes
    names = 'workloads = ["user-activity", "large-payload"]'
    own, other = load(block(names)).cells, load(block(f"{names}\naxes = {{ batch_size = [1, 100] }}")).cells
    assert {cell.seed for cell in own} == {cell.seed for cell in other}  # other batch sizes, the same records
    first, hundred = (cell.workload.generate(records=cell.records, seed=cell.seed) for cell in other[:2])
    assert set(np.diff(first.bounds)) == {1} and set(np.diff(hundred.bounds)) == {100}
    assert first.records.part(0, 100) == hundred.records.part(0, 100)


def test_another_seed_gives_other_records_of_the_same_cells(load: Load) -> None:
    text = 'workloads = ["user-activity"]\ncodecs = { none = [], zstd = [3] }\n'
    one, other = load(block(text)).cells, load("seed = 7\n" + block(text)).cells
    assert [cell.cell_id for cell in one] == [cell.cell_id for cell in other]
    assert not {cell.seed for cell in one} & {cell.seed for cell in other}
    cells = load(block(text + "seeds = [0, 1, 1, 7]")).cells
    assert len(cells) == 3 * 2 and len({cell.seed for cell in cells}) == 3
    assert {cell.seed for cell in (*one, *other)} < {cell.seed for cell in cells}
    assert load(block(text + "seeds = [7]")).cells == other


def test_the_widest_offsets_of_a_batch_are_legal(load: Load) -> None:
    (cell,) = load(block("axes = { offset_stride = [2147483647], batch_size = [2] }")).cells
    sample = cell.workload.generate(records=2, seed=0)
    assert FORMATS["v2"].decode(FORMATS["v2"].encode(sample.records, sample.bounds).data).records == sample.records


def test_the_size_model_is_cut_where_its_cost_can_be_told(load: Load) -> None:
    cells = load(
        "model = { records = 70000000, cell_records = 20000000 }\n" + block('workloads = ["user-activity"]', **MODEL)
    ).cells
    ends = [cell.start + cell.records for cell in cells]
    assert [cell.start for cell in cells] == [0, *ends[:-1]]  # the slices follow one another and cover all records
    assert ends[:6] == [1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, (1 << 24) + (1 << 24)] and ends[-1] == 70_000_000
    assert all(end % BLOCK_RECORDS == 0 for end in ends[:-1])
    assert max(cell.records for cell in cells) <= 20_000_000
    assert len({cell_key(cell) for cell in cells}) == len(cells) and len({cell.seed for cell in cells}) == 1
    cells = load(
        "model = { records = 3000001, cell_records = 1 }\n" + block("axes = { batch_size = [3000] }", **MODEL)
    ).cells
    assert [cell.records % 3000 for cell in cells] == [0] * (len(cells) - 1) + [1]
    assert sum(cell.records for cell in cells) == 3_000_001 and cells[0].records == BLOCK_RECORDS // 3000 * 3000


# Named workloads


def test_every_variant_of_the_catalogue_goes_by_a_pattern(load: Load) -> None:
    assert [cell.workload for cell in load(block('workloads = ["*/*"]')).cells] == [
        NamedWorkload(name=name, variant=variant) for name, each in CATALOGUE.items() for variant in each.variants
    ]


def test_a_folder_named_like_a_workload_does_not_hide_it(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user-activity").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load(block('workloads = ["user-activity"]')).cells


def test_a_workload_takes_the_place_of_a_profiles_workloads(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        HEAD + "publish = true\n" + block("axes = { batch_size = [1, 10], key_bytes = [16] }", formats='["v1", "v2"]')
    )
    profile = load_profile(sweep, ["service-events"])
    assert [cell.workload for cell in profile.cells] == [
        NamedWorkload(name="service-events", batch_size=batch_size) for batch_size in (1, 10)
    ]
    assert not profile.publish
    (row, *_) = measure_cell(profile.cells[0])
    assert (row["format"], row["status"]) == ("v1", "skipped")  # it has no headers
    with pytest.raises(InvalidConfig, match=r"^--workload: no 'orders\.json' in the catalogue"):
        load_profile(sweep, ["orders.json"])


def test_a_cell_takes_whole_batches_of_the_workload(load: Load) -> None:
    """A cell has a whole number of batches, at least one.

    It has about `records` records and at most `payload_bytes` bytes of payload.
    """
    text = 'workloads = ["user-activity/rate-10000", "omb-1kb", "cluster-metadata", "service-events"]\nbytes = { %s }'
    for records, payload_bytes in ((1_000, 1 << 17), (300, 1 << 20)):
        for cell in load(block(text % f"records = {records}, payload_bytes = {payload_bytes}")).cells:
            sample = cell.workload.generate(records=BLOCK_RECORDS, seed=cell.seed)
            at = sample.bounds.tolist().index(cell.records)  # raises ValueError if the cell ends inside a batch
            assert at == cell.batches >= 1
            cut = cell.workload.generate(records=cell.records, seed=cell.seed).shapes
            assert cut.payload_bytes == cell.payload_bytes
            more = cell.workload.generate(records=int(sample.bounds[at + 1]), seed=cell.seed).shapes
            assert sample.bounds[at - 1] < records
            assert cell.payload_bytes <= payload_bytes or at == 1
            assert cell.records >= records or more.payload_bytes > payload_bytes
    text = 'workloads = ["cluster-metadata"]\nbytes = { records = 70000, payload_bytes = 1073741824 }'
    (cell,) = load(block(text)).cells
    assert 70_000 <= cell.records < 70_100  # more than a block
    assert whole_batches(GridPoint(batch_size=300), 0, 1_024) == 1_200
    bounds = CATALOGUE["omb-100b"].generate(records=BLOCK_RECORDS, seed=5).bounds
    assert whole_batches(CATALOGUE["omb-100b"], 5, 1_024) == bounds[1] > 1_024


def test_the_rows_of_a_workload_say_which_it_is(load: Load) -> None:
    text = 'illegal = "skip"\nbytes = { records = 50 }\nworkloads = ["transactional/single"]'
    (cell,) = load(block(text, formats='["v1", "v2"]')).cells
    v1, v2 = measure_cell(cell)
    assert {(row["workload"], row["variant"]) for row in (v1, v2)} == {("transactional", "single")}
    assert (v1["status"], v1["error"]) == ("skipped", "v1 has no transactions")
    assert (v2["status"], v2["records"], v2["batches"]) == ("ok", cell.records, cell.batches)


# What a format cannot have

OTHER = BatchedFormat(name="other", magic=5, summary="declares no `appending`")


@pytest.mark.parametrize(
    ("workload", "fmt", "path", "to", "reason"),
    [
        ("service-events", "v0", "", None, "v0 has no headers"),
        ("service-events", "enriched", "", None, "enriched has no headers"),
        ("transactional", "v1", "", None, "v1 has no transactions"),
        ("transactional", "enriched", "", None, "enriched has no transactions"),
        ("compacted-changelog", "v1", "", None, "v1 has no delete horizons"),
        ("user-activity", "v0", "", None, None),  # producer ids are lost, which is counted and allowed
        ("user-activity", "kip98", "", None, None),
        ("user-activity", "other", "", None, None),
        ("user-activity", "v2", "append", None, None),
        ("user-activity", "v2", "append-convert", "v3", None),
        # Kafka's LogValidator refuses batches with missing offsets, and to convert idempotent batches.
        ("user-activity", "v2", "append-convert", "v1", "a broker refuses to convert idempotent batches to v1"),
        *(("user-activity", "other", path, None, "other") for path in ("append", "fetch", "convert")),
        *(("user-activity", "v2", path, "other", "other") for path in ("append", "fetch", "convert")),
        ("transactional", "v2", "compact", None, "no control batches and no compacted batches"),
        ("compacted-changelog", "v2", "compact", None, "no control batches and no compacted batches"),
    ],
)
def test_what_a_format_or_path_cannot_have_has_a_reason(
    workload: str, fmt: str, path: str, to: str | None, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kfbench.measure.kinds.base.FORMATS", {**FORMATS, "other": OTHER})
    found = illegal(fmt, CATALOGUE[workload].generate(records=2_000, seed=3), "none", path, to)
    assert found is None if reason is None else reason in (found or "")


def test_columnar_has_one_broker_path() -> None:
    sample = CATALOGUE["user-activity"].generate(records=200, seed=3)
    only_append = "no path for columnar: it is a research format; append is the only one"
    for path in PATHS:
        reason = illegal("columnar", sample, "none", path, to="v2" if PATHS[path].converts else None)
        assert reason == (None if path == "append" else only_append), path
    assert illegal("v2", sample, "none", "convert", to="columnar") == only_append


def test_a_broker_path_begins_with_batches_without_holes() -> None:
    sample = CATALOGUE["user-activity"].generate(records=200, seed=3)
    offsets = sample.shapes.offsets.copy()
    offsets[1:] += 5
    with_hole = replace(sample, shapes=replace(sample.shapes, offsets=offsets))
    assert "compacted" in (illegal("v2", with_hole, "none", "append") or "")
    assert illegal("v2", with_hole, "none") is None
