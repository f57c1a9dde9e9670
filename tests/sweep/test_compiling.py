"""Everything that a sweep calls is called once before."""

from kfbench.formats import FORMATS
from kfbench.sweep.compiling import compilations, compile_payloads
from kfbench.sweep.grid import load_profile


def test_every_format_and_path_of_a_sweep_is_there_once() -> None:
    cells = load_profile("default").cells
    *families, (compile_workloads, workloads) = compilations(cells)
    named = [name for _, (names, _) in families for name in names]
    assert sorted(named) == sorted({name for cell in cells if cell.kind != "floor" for name in cell.formats})
    assert len(families) > 1
    assert all(len({type(FORMATS[name]) for name in names}) == 1 for _, (names, _) in families)
    assert compile_workloads is compile_payloads
    assert set(workloads) == {cell.workload for cell in cells if cell.workload.name != "grid"}
    assert sorted((path, name) for _, (_, paths) in families for path, on in paths for name in on) == sorted(
        {(cell.path, name) for cell in cells if cell.path and not cell.to for name in cell.formats}
    )


def test_they_can_be_called() -> None:
    for function, what in compilations(load_profile("smoke").cells):
        function(what)
