"""A sweep file may extend another one. A wrong key or value is refused, with file and place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kfbench.errors import InvalidConfig
from kfbench.measure.kinds import cell_key
from kfbench.sweep.definition import profile as profiles
from kfbench.sweep.definition import sweep_file
from kfbench.sweep.definition.filter import filter_profile
from kfbench.sweep.definition.profile import Profile, load_profile
from tests.sweep.profiles import BROKER, HEAD, MODEL, Load, block

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
    assert found.text.startswith('extends = "below.toml"') and below in found.text  # a resumed run needs this text


def test_what_is_extended_may_be_a_profile_and_extend_others(extend: Extend, tmp_path: Path) -> None:
    (tmp_path / "between.toml").write_text('extends = "below.toml"\nseed = 5\n')
    below = HEAD + block()
    assert (
        extend(below, 'extends = "between.toml"').cells
        == extend(HEAD + "seed = 5\n" + block(), 'extends = "below.toml"').cells
    )
    (tmp_path / "named.toml").write_text('extends = "smoke"\nbytes = { records = 10 }\n')
    smoke, named = load_profile("smoke"), load_profile(tmp_path / "named.toml")
    assert [*map(cell_key, named.cells)] == [*map(cell_key, smoke.cells)] and named.grids == smoke.grids


def test_a_sweep_says_for_itself_that_its_reports_are_for_publishing(extend: Extend) -> None:
    said = [
        (name, sweep_file.read(name)[1].publish)
        for name in ("default", "fleet", "full", "smoke", "dictionary", "rivals", "codec-cpu")
    ]
    assert said == [
        ("default", True),
        ("fleet", True),
        ("full", True),
        ("smoke", False),
        ("dictionary", True),
        ("rivals", True),
        ("codec-cpu", True),
    ]
    below = HEAD + "publish = true\n" + block()
    assert not extend(below, 'extends = "below.toml"').publish
    whole = extend(HEAD + block(), 'extends = "below.toml"\npublish = true')
    assert whole.publish and not filter_profile(whole, ["batch_size>0"]).publish


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('extends = "nowhere"', r"sweep\.toml: extends: nowhere: no such profile"),
        ('extends = "none.toml"', r"none\.toml: cannot be read"),
        ("extends = 3", r"sweep\.toml: \$\.extends: Expected `str`, got `int`"),
        ('extends = "sweep.toml"', r"sweep\.toml: extends: .* itself .*sweep\.toml"),
        (BELOW + "seeds = 3", r"sweep\.toml: \$: .*unknown field `seeds`"),
        (BELOW + "[[grid]]\naxes = {}", r"sweep\.toml: \$\.grid\[0\]\.name: a name is wanted"),
        (
            'extends = "below.toml"\n[[grid]]\nname = "g"\n[[grid]]\nname = "g"',
            r"grid 'g' .*: name: two blocks",
        ),
        (
            'extends = "below.toml"\n[[grid]]\nname = "new"',
            r"sweep\.toml: grid 'new' \(\$\.grid\[1\]\): .*missing required field",
        ),
        (BELOW + "bytes = { record = 3 }", r"sweep\.toml: \$\.bytes: .*unknown field `record`"),
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
    with pytest.raises(InvalidConfig, match=r"below\.toml: \$: .*missing required field `analysis`"):
        extend('title = "t"\n', 'extends = "below.toml"')


BAD = {
    "unknown key": (block("bogus = 1"), r"\(\$\.grid\[0\]\): .*unknown field `bogus`"),
    "no formats": (block(formats="[]"), "grid 'g' .*: formats: empty"),
    "no measure": (block(measure="[]"), "grid 'g' .*: measure: empty"),
    "unknown measure": (block(measure='["time"]'), r"\(\$\.grid\[0\]\): measure: no kind 'time' \(.*bytes, cpu, "),
    "unknown format": (block(formats='["v7"]'), "formats: no format 'v7'"),
    "unknown axis": (block("axes = { colour = [1] }"), "grid has no axis 'colour'"),
    "empty axis": (block("axes = { headers = [] }"), "axes.headers: empty"),
    "level off the axis": (block("axes = { batch_size = [0] }"), "axes.batch_size: 0 is not within"),
    "level of another type": (block('axes = { batch_size = ["many"] }'), "axes.batch_size: 'many': Expected `int`"),
    "fraction for int": (block("axes = { batch_size = [1.5] }"), "axes.batch_size: 1.5: Expected `int`"),
    "bool for int": (block("axes = { headers = [true] }"), "axes.headers: True: Expected `int`"),
    "unknown payload": (block('axes = { payload = ["xml"] }'), "axes.payload: 'xml'"),
    "codec without levels": (block("codecs = { gzip = 6 }"), r"grid 'g' .*: codecs\[\.\.\.\]: Expected `array`"),
    "no block": ("grid = [3]", r"\$\.grid\[0\]: Expected `object`, got `int`"),
    "unknown workload": (block('workload = "nowhere"'), "workload: no 'nowhere'"),
    "unknown workload of the catalogue": (
        block('workloads = ["user-activity", "grid"]'), "workloads: no 'grid' in the catalogue .*user-activity"
    ),
    "unknown variant": (
        block('workloads = ["user-activity/rate-7"]'),
        "workloads: user-activity has no variant 'rate-7' .variants: default, rate-10, ",
    ),
    "workloads and axes": (
        block('workloads = ["user-activity"]\naxes = { key_bytes = [1] }'), "axes: .* no 'key_bytes'"
    ),
    "no size of a batch": (
        block('workloads = ["user-activity"]\naxes = { batch_size = [0] }'), "axes.batch_size: 0 is not 1 to"
    ),
    "one record of compressed batches": (
        block("codecs = { zstd = [] }", measure='["record"]'), "codecs: record"
    ),
    "unknown counted path": (block('paths = ["teleport"]', measure='["instructions"]'), "paths: no path 'teleport'"),
    "nothing to count": (block("operations = []", measure='["instructions"]'), "operations: "),
    "nothing to convert to": (
        block('operations = []\npaths = ["convert"]', measure='["instructions"]'), "to: convert needs formats"
    ),
    "metadata without the base": (block(formats='["v3"]', measure='["metadata"]'), "metadata cells need v2"),
    "workloads and workload": (block('workload = "user-activity"\nworkloads = ["user-activity"]'), "replace workload"),
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
    "contexts that a prefix keeps": (
        block('cpu = { contexts = ["new"] }\ncodecs = { gzip = [] }', formats='["v3-full"]', measure='["prefix"]'),
        "cpu.contexts: prefix cells keep contexts",
    ),
    "contexts of a reader": (
        block('cpu = { contexts = ["new"] }', measure='["metadata"]'), "cpu.contexts: metadata cells keep contexts"
    ),
    "contexts that v0 keeps": (
        block('cpu = { contexts = ["new"] }\ncodecs = { lz4 = [] }', formats='["v0", "v2"]', measure='["cpu"]'),
        "cpu.contexts: v0's lz4 frames have no new contexts",
    ),
    "a context of no kind": (block('cpu = { contexts = ["old"] }'), "'old': it is not one of kept, new"),
    "no contexts": (block("cpu = { contexts = [] }"), "cpu.contexts: empty"),
    "a context twice": (block('cpu = { contexts = ["new", "new"] }'), "cpu.contexts: new is listed twice"),
    "no prefix": (block(measure='["prefix"]'), "formats: v2 .* no prefix"),
    "no codec for a prefix": (
        block(formats='["v3-full"]', measure='["prefix"]'), "codecs.none: prefix"
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
    "a format twice": (block(formats='["v2", "v3", "v2"]'), "grid 'g' .*: formats: 'v2' .* twice"),
    "too many cells": (
        block("axes = { " + ", ".join(f"{axis} = {list(range(1, 201))}" for axis in (
            "batch_size", "key_bytes", "value_bytes", "timestamp_spread_ms")) + " }"),
        "grid 'g' .*: axes: 1,600,000,000 cells, .* 100,000",
    ),
    "too many cells by codecs": (
        block(f"axes = {{ key_bytes = {list(range(8_334))} }}\ncodecs = {{ none = [], zstd = [1, 2, 3, 4, 5] }}",
              measure='["bytes", "cpu"]'),
        "axes: 100,008 cells",
    ),
    "a name twice": (block() + block(), "name: two blocks"),
    "broker without paths": (block(measure='["broker"]'), "paths: measure = "),
    "paths without broker": (block('paths = ["append"]'), "paths: they need measure = "),
    "unknown path": (block('paths = ["teleport"]', **BROKER), "paths: no path 'teleport' .paths: append, "),
    "convert to nothing": (block('paths = ["convert"]', **BROKER), "to: convert needs formats"),
    "to without convert": (block('paths = ["append"]\nto = ["v2"]', **BROKER), "to: no path converts"),
    "convert to the unknown": (block('paths = ["convert"]\nto = ["v9"]', **BROKER), "to: no format 'v9'"),
    "convert to itself": (
        block('paths = ["convert"]\nto = ["v2"]', formats='["v2"]', measure='["broker"]'),
        "to: v2 ",
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
        block("codecs = { none = [], zstd = [3] }", **MODEL), "codecs: the size model"
    ),
    "sizes that shapes do not tell": (
        block(formats='["v2", "v3-full"]', measure='["model"]'), "formats: sizes of v3-full"
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
    "dictionaries with another codec": (
        block("codecs = { none = [], zstd = [3] }", measure='["dictionary"]'), "grid 'g' .*codecs.none: dictionary "
    ),
    "dictionaries of a format without": (
        block("codecs = { zstd = [3] }", measure='["dictionary-cpu"]', formats='["v1", "v2"]\nillegal = "skip"'),
        "formats: v1 has no dictionaries",
    ),
    "a block's own dictionary": (
        block("dictionary = { trained_share = [] }"), "grid 'g' .*dictionary.trained_share: empty"
    ),
    "a rival in cells of bytes": (block(formats='["v2", "parquet"]'), "formats: no format 'parquet' "),
    "rivals with another codec": (
        block("codecs = { gzip = [] }", measure='["rivals"]', formats='["parquet"]'), "codecs.gzip: rivals cells have"
    ),
    "times of rivals without v2": (
        block(measure='["rivals-cpu"]', formats='["columnar", "parquet"]'), "rivals-cpu cells need v2"
    ),
    "a block's own rivals": (block("rivals = { batches = 0 }"), "grid 'g' .*rivals.batches: 0 is below 1"),
    "unknown illegal": (block('illegal = "maybe"'), "'maybe'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_block_is_refused_with_file_and_key(load: Load, tmp_path: Path, case: str) -> None:
    text, said = BAD[case]
    with pytest.raises(InvalidConfig, match=said) as caught:
        load(text)
    assert str(caught.value).startswith(str(tmp_path / "sweep.toml")) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('title = "t"\n', r"\$: .*missing required field `analysis`"),
        (HEAD + "seeds = 3\n", r"\$: .*unknown field `seeds` .*seed\?"),
        (HEAD + "seed = -1\n", r"\$\.seed: -1 is negative"),
        (HEAD + '[broker]\ncache = "warm"\n', "cache"),
        (HEAD + "[cpu]\nrounds = 0\n", r"\$\.cpu\.rounds: 0 is below 1"),
        (HEAD + "[broker]\nrecords = 0\n", r"\$\.broker\.records: 0 is below 1"),
        (HEAD + "[model]\ncell_records = 0\n", r"\$\.model\.cell_records: 0 is below 1"),
        (HEAD + "[dictionary]\nsize_bytes = []\n", r"\$\.dictionary\.size_bytes: empty"),
        (HEAD + "[dictionary]\nsize_bytes = [4096, 200000]\n", r"\$\.dictionary\.size_bytes: 200000 is not within"),
        (HEAD + "[dictionary]\ntrained_share = [1.0]\n", r"\$\.dictionary\.trained_share: 1.0 is not within"),
        (HEAD + "[dictionary]\nlive = [1, 1]\n", r"\$\.dictionary\.live: 1 is listed twice"),
        (HEAD + "[dictionary]\nparts = 0\n", r"\$\.dictionary\.parts: 0 is below 1"),
        (HEAD + "[dictionary]\nlive = 3\n", r"\$\.dictionary\.live: Expected `array`, got `int`"),
        (HEAD + "[dictionary]\nsize = [3]\n", r"\$\.dictionary: .*unknown field `size`"),
        (HEAD + "[bytes]\nrecord = 1\n", r"\$\.bytes: .*unknown field `record`"),
        ("title = \n", "line 1"),
    ],
)
def test_a_bad_head_is_refused(load: Load, head: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        load(block(), head=head)


def test_profiles_are_found_by_name_or_path(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidConfig,
        match=r"nowhere: no such profile \(profiles: codec-cpu, default, dictionary, fleet, full, instructions",
    ):
        load_profile("nowhere")
    with pytest.raises(InvalidConfig, match=r"none\.toml: cannot be read"):
        load_profile(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(InvalidConfig, match=r"latin\.toml: cannot be read"):
        load_profile(tmp_path / "latin.toml")


def test_a_workload_whose_batches_no_broker_takes_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MAX_BATCH_BYTES", 1_000_000)
    with pytest.raises(InvalidConfig, match=r"workloads: large-payload/1mib: .* 1,0\d\d,\d\d\d bytes in v2"):
        load(block('workloads = ["large-payload/1mib"]'))
