"""Everything that a sweep calls is called once before."""

from kfbench.formats import FORMATS
from kfbench.measure.broker import PATHS
from kfbench.sweep.compiling import compilations, compile_payloads
from kfbench.sweep.grid import load_profile


def test_every_format_and_path_of_a_sweep_is_there_once() -> None:
    cells = load_profile("default").cells
    (*formats, (compile_workloads, workloads)), paths = compilations(cells)
    named = [name for _, names in formats for name in names]
    assert sorted(named) == sorted({name for cell in cells for name in cell.formats})
    assert compile_workloads is compile_payloads
    assert set(workloads) == {cell.workload for cell in cells if cell.workload.name != "grid"}
    assert {path for _, (path, _) in paths} == {cell.path for cell in cells if cell.path} <= PATHS.keys()
    assert len(formats) > 1
    assert all(len({type(FORMATS[name]) for name in names}) == 1 for _, names in formats)


def test_they_can_be_called() -> None:
    for stage in compilations(load_profile("smoke").cells):
        for function, names in stage:
            function(names)
