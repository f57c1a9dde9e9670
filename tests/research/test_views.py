"""The pages of research packages name what there is. tests/report/test_second_path.py computes their numbers again."""

import pytest

from kfbench.present.declaration import read_view
from kfbench.present.engine import BuiltTable, TableSource
from kfbench.report.view_packages import VIEWS, ViewPackage
from tests.present.made import counted, runs_of


@pytest.mark.parametrize("package", VIEWS.values(), ids=lambda each: each.name)
def test_a_part_of_the_page_names_what_there_is(package: ViewPackage) -> None:
    view = read_view(package.path)
    assert view.page is not None and view.page.name == "research"
    tables = {table.name: table for table in view.tables}
    shown = [name for section in view.sections for name in (*section.tables, *section.more)]
    assert sorted(shown) == sorted(name for name, table in tables.items() if not table.is_hidden)
    assert {table.source for table in view.tables} - {"run"} == package.sources.keys()
    # Without rows there is no table, and no error.
    runs = runs_of([counted("v2", 1000, workload="user-activity")])
    for table in (each for each in view.tables if each.source != "run"):
        assert BuiltTable(table, TableSource(frame=package.sources[table.source](runs)), view.path.name).table is None
