"""A sweep measures the topics of a fingerprint. Its cells carry the topic, not the file's path."""

import json
import pickle
from pathlib import Path

import pytest

from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.host.compiling import compilations
from kfbench.sweep.run.cell import measure_cell
from kfbench.workloads.fingerprinted import files
from kfbench.workloads.fingerprinted.files import read_workloads
from kfbench.workloads.fingerprinted.model import TopicModel
from kfbench.workloads.fingerprinted.workload import FingerprintWorkload
from tests.recorded import FOLDER
from tests.sweep.profiles import HEAD, Load, block

BLOCK = block('workloads = ["prints/orders.json"]\ncodecs = { none = [], zstd = [] }')


@pytest.fixture(scope="module")
def text() -> bytes:
    return to_json(fingerprint(FOLDER / "service-headers.log", seed=0).fingerprint)


@pytest.fixture
def path(tmp_path: Path, text: bytes) -> Path:
    (tmp_path / "prints").mkdir()
    path = tmp_path / "prints" / "orders.json"
    path.write_bytes(text)
    return path


def test_a_block_measures_a_fingerprint(load: Load, path: Path, text: bytes) -> None:
    profile = load(BLOCK)
    digest = json.loads(text)["sha256"]
    assert {cell.workload.name for cell in profile.cells} == {f"fingerprint-{digest[:12]}"}
    assert digest in profile.text and profile.text.startswith(HEAD)
    assert [cell.axes for cell in profile.cells] == [{"batch_size": None}] * 2
    sent = [pickle.loads(pickle.dumps(cell)) for cell in profile.cells]
    path.unlink()  # an executor of a cluster does not have it
    rows = [row for cell in sent for row in measure_cell(cell)]
    assert {(row["format"], row["codec"], row["status"]) for row in rows} == {
        (name, codec, "ok") for name in ("v2", "v3") for codec in ("none", "zstd")
    }
    assert str(path.parent) not in str(rows) and str(path.parent).encode() not in pickle.dumps(sent)


def test_only_other_values_have_other_cells(load: Load, path: Path, text: bytes) -> None:
    ids = {cell.cell_id for cell in load(BLOCK).cells}
    path.write_bytes(text.replace(b"\n", b"\n "))
    assert ids == {cell.cell_id for cell in load(BLOCK).cells}
    path.write_bytes(to_json(fingerprint(FOLDER / "service-headers.log", seed=0, least_members=11).fingerprint))
    assert not ids & {cell.cell_id for cell in load(BLOCK).cells}


def test_each_of_many_files_is_fitted_once(tmp_path: Path, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = list[FingerprintWorkload]()

    def fitted(model: TopicModel) -> FingerprintWorkload:
        fits.append(FingerprintWorkload.of(model))
        return fits[-1]

    monkeypatch.setattr(files, "fitted", fitted)
    paths = [tmp_path / f"{number}.json" for number in range(12)]
    for path in paths:
        path.write_bytes(text)
    found = [read_workloads(path) for _ in range(3) for path in paths]
    assert found == [(each,) for each in fits] * 3


def test_batch_size_is_an_axis(load: Load, path: Path) -> None:
    cells = load(block('workloads = ["prints/orders.json"]\naxes = { batch_size = [1, 10] }')).cells
    assert [cell.axes["batch_size"] for cell in cells] == [1, 10]
    assert cells[0].seed == cells[1].seed  # the same records
    with pytest.raises(InvalidConfig, match="key_bytes"):
        load(block('workloads = ["prints/orders.json"]\naxes = { key_bytes = [1] }'))


def test_kernels_for_headers_and_payload_are_compiled(load: Load, path: Path) -> None:
    calls = {call.__name__: given for call, given in compilations(load(BLOCK).cells)}
    assert all(each.with_headers for each in calls["compile_formats"])
    assert [type(each) for each in calls["compile_payloads"]] == [FingerprintWorkload]


@pytest.mark.parametrize("words", [b"{}", b"", b"\xff"])
def test_a_file_that_is_no_fingerprint_is_refused(load: Load, path: Path, words: bytes) -> None:
    path.write_bytes(words)
    with pytest.raises(InvalidConfig, match=r"grid 'g'.*workloads: .*orders\.json: no fingerprint"):
        load(BLOCK)
    path.unlink()
    with pytest.raises(InvalidConfig, match=r"orders\.json: cannot be read"):
        load(BLOCK)


def test_a_folder_named_like_a_workload_does_not_hide_it(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user-activity").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load(block('workloads = ["user-activity"]')).cells


def test_a_fingerprint_takes_the_place_of_a_profiles_workloads(path: Path, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        HEAD + "publish = true\n" + block("axes = { batch_size = [1, 10], key_bytes = [16] }", formats='["v1", "v2"]')
    )
    profile = load_profile(sweep, [str(path)])
    assert [type(cell.workload) for cell in profile.cells] == [FingerprintWorkload] * 2
    assert not profile.publish
    (row, *_) = measure_cell(profile.cells[0])
    assert (row["format"], row["status"]) == ("v1", "skipped")  # it has no headers
