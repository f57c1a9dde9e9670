"""Write the table of a run's columns into docs/results.md, from kfbench/measure/schema.py.

usage: results_page.py

tests/tools/test_results_page.py fails if the page is out of date. It also runs the examples of the page.
"""

from pathlib import Path
from typing import Final

import pyarrow as pa

from kfbench.measure.schema import COLUMNS, DETERMINISTIC, SCHEMA_VERSION, WORKLOAD_COLUMNS, Column
from tools.block import Block

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "results.md"
BLOCK: Final = Block(page=PAGE, name="columns", by="`make results` from kfbench/measure/schema.py")
HEAD: Final = "| column | type | unit | exact | |\n| --- | --- | --- | --- | --- |"


def type_name(type_: pa.DataType) -> str:
    return f"list of {type_.value_type}" if pa.types.is_list(type_) else str(type_)


def line(column: Column) -> str:
    kind = type_name(column.type) + ("" if column.nullable else ", never null")
    exact = "yes" if column.name in DETERMINISTIC else ""
    axis = "axis: " if column in WORKLOAD_COLUMNS else ""
    cells = f"`{column.name}`", kind, column.unit, exact, axis + column.meaning.replace("|", "\\|")
    return f"| {' | '.join(cells)} |"


def columns() -> str:
    return "\n".join([f"Version {SCHEMA_VERSION} of the schema, {len(COLUMNS)} columns.\n", HEAD, *map(line, COLUMNS)])


def main() -> None:
    BLOCK.write(columns())


if __name__ == "__main__":
    main()
