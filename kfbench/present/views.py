"""Views: the rows of a table for a page's script, the presets that draw them, and a plain table without a script.

`templates/view.js` reads them. Values of dimensions are indices, numbers are whole multiples of a scale.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Interval
from kfbench.present.declaration import PresetView, nearest
from kfbench.present.engine import BuiltTable, dimension
from kfbench.present.names import batch_words, level
from kfbench.present.table import Column, Table, number

Values = Mapping[str, list[Any]]
NO_WORDS: Final = {"with_codec": "none", "context": "new"}  # left out in the name of a row


def view_json(built: BuiltTable, table: Table, run: str, cite: Mapping[str, str]) -> dict[str, Any]:
    """Return the rows of a table: its dimensions with their values, its metrics, and a list per column.

    run: the run's machine and noise in words. cite: what a reader needs to cite a row.
    """
    names, keys = built.view.rows, built.shown_keys
    dims: dict[str, Any] = {}
    columns: dict[str, list[int | None]] = {}
    for place, name in enumerate(names):
        values = built.ordered_values(name)
        at = {value: index for index, value in enumerate(values)}
        numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        dims[name] = {
            "label": dimension(name, built.view.headings).label,
            "values": [chip_words(name, value) for value in values],
            "names": [words(name, value) for value in values],
            "numbers": numbers if len(numbers) == len(values) else None,
        }
        columns[name] = [at[key[place]] for key in keys]
    metrics = {}
    for metric in built.view.metrics:
        key = metric.key or metric.metric
        at_column = built.places.get(key)
        column = Column(name=metric.name or key) if at_column is None else table.columns[at_column]
        cells = [None if at_column is None else row[at_column] for row in table.rows]
        scale = 10 ** -(column.digits + 1)
        metrics[key] = {"label": column.name, "unit": column.unit, "digits": column.digits, "scale": scale}
        columns[key] = [_whole(_median(cell), scale) for cell in cells]
        if any(isinstance(cell, Interval) for cell in cells):
            for end in ("low", "high"):
                columns[f"{key}_{end}"] = [_whole(getattr(cell, end, None), scale) for cell in cells]
    return {"dims": dims, "metrics": metrics, "columns": columns, "run": run, "cite": cite}


def table_json(table: Table, dims: Sequence[str], cite: Mapping[str, str]) -> dict[str, Any]:
    """Return the rows of a table whose first columns are dimensions, and whose others are metrics of their names.

    dims: the names of the dimensions. Their values stay in the order of the rows.
    """
    found: dict[str, Any] = {"dims": {}, "metrics": {}, "columns": {}, "run": "", "cite": cite}
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        if place < len(dims):
            values = list(dict.fromkeys(cells))
            is_number = all(isinstance(value, int | float) for value in values)
            shown = [number(value) for value in values]
            names = {"names": None if is_number else shown, "numbers": values if is_number else None}
            found["dims"][dims[place]] = {"label": column.label, "values": shown, **names}
            found["columns"][dims[place]] = [values.index(cell) for cell in cells]
        else:
            scale = 10 ** -(column.digits + 1)
            unit = {"label": column.name, "unit": column.unit, "digits": column.digits, "scale": scale}
            found["metrics"][column.name] = unit
            found["columns"][column.name] = [_whole(_median(cell), scale) for cell in cells]
    return found


def _median(cell: Any) -> float | None:
    return cell.median if isinstance(cell, Interval) else cell


def _whole(value: float | None, scale: float) -> int | None:
    return None if value is None else round(value / scale)


def chip_words(name: str, value: Any) -> str:
    """Return a value of a dimension as it stands on a chip, for example: 1,000."""
    return number(level(name, value)) if value is not None else ""


def words(name: str, value: Any) -> str:
    """Return a value of a dimension as a part of a row's name, for example: 100 records per batch. It may be empty."""
    if value is None or NO_WORDS.get(name) == value:
        return ""
    if name == "batch_size":
        return batch_words(value)
    text, unit = chip_words(name, value), dimension(name).unit
    return f"{text} {unit} {dimension(name).name}" if unit else text


def preset_json(
    preset: PresetView, view: Mapping[str, Any], place: str, caption: str, text: str, *, is_strict: bool = False
) -> dict[str, Any]:
    """Return a preset for the script, with the values that the run has.

    Raises InvalidConfig for an unknown dimension or metric; if it is strict, for an unknown value, too.
    """
    dims, metrics = view["dims"], view["metrics"]
    axes = [axis for axis in (preset.x, preset.y, preset.series) if axis]
    for name in (*preset.label, *preset.where, *preset.chips, *preset.one, *preset.base, *axes):
        if name not in dims:
            raise InvalidConfig(f"{place}: no dimension {name}{nearest(name, dims)}")
    for name in (preset.metric, *preset.beside):
        if name not in metrics:
            raise InvalidConfig(f"{place}: no metric {name}{nearest(name, metrics)}")
    where = {name: [chip_words(name, value) for value in values] for name, values in preset.where.items()}
    base = {name: chip_words(name, value) for name, value in preset.base.items()}
    wanted = [(name, value) for name, values in where.items() for value in values]
    for name, value in (*wanted, *base.items()):
        if is_strict and value not in dims[name]["values"]:
            raise InvalidConfig(f"{place}: no {name} {value}{nearest(value, dims[name]['values'])}")
    found = {name: getattr(preset, name) for name in preset.__struct_fields__}
    return found | {
        "where": {name: [value for value in values if value in dims[name]["values"]] for name, values in where.items()},
        "base": base or None,
        "caption": caption,
        "text": text,
    }


def rows_of(preset: Mapping[str, Any], view: Mapping[str, Any]) -> list[int]:
    """Return the rows that a preset shows first."""
    dims, columns = view["dims"], view["columns"]
    wanted = {name: {dims[name]["values"].index(value) for value in values} for name, values in preset["where"].items()}
    count = len(next(iter(columns.values()), []))
    return [row for row in range(count) if all(columns[name][row] in of for name, of in wanted.items())]


def plain_table(preset: Mapping[str, Any], view: Mapping[str, Any]) -> Table:
    """Return the rows that a preset shows first, for a page without a script, with their change against its base."""
    dims, metrics, columns = view["dims"], view["metrics"], view["columns"]
    names = preset["label"] or [name for name in (preset["series"], preset["y"], preset["x"]) if name]
    shown_metrics = [preset["metric"], *preset["beside"]]
    scales = {key: metrics[key]["scale"] for key in shown_metrics}

    def values(row: int) -> dict[str, Any]:
        return {name: dims[name]["values"][columns[name][row]] for name in dims}

    every = [values(row) for row in range(len(next(iter(columns.values()), [])))]
    sizes = {tuple(each.values()): columns[preset["metric"]][row] for row, each in enumerate(every)}

    def change(row: int) -> float | None:
        size, base = columns[preset["metric"]][row], sizes.get(tuple((every[row] | preset["base"]).values()))
        if size is None or not base:
            return None
        return float(size / base if preset["is_log"] else 100 * (size / base - 1))

    has_change = preset["base"] and metrics[preset["metric"]]["unit"] != "×"  # a ratio has a base of its own
    unit, digits = ("×", 2) if preset["is_log"] else ("%", 1)

    rows = [
        (
            *(every[row][name] for name in names),
            *(None if columns[key][row] is None else columns[key][row] * scales[key] for key in shown_metrics),
            *([change(row)] if has_change else []),
        )
        for row in rows_of(preset, view)
    ]
    fixed = [f"{dims[name]['label']} {of[0]}" for name, of in preset["where"].items() if name not in names and of]
    against = [f"against {', '.join(preset['base'].values())}"] if has_change else []
    return Table(
        name=f"preset-{preset['id']}",
        caption=" ".join([preset["title"], ", ".join(fixed)]).strip(),
        columns=(
            *(Column(name=dims[name]["label"]) for name in names),
            *(Column(name=metrics[key]["label"], unit=metrics[key]["unit"], digits=metrics[key]["digits"])
              for key in shown_metrics),
            *(Column(name=name, unit=unit, digits=digits) for name in against),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def sparse(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the views of a page with {row: value} for each column that has few values, to keep the page small."""
    views = {
        name: view | {"columns": {key: _sparse(column) for key, column in view["columns"].items()}}
        for name, view in shown["views"].items()
    }
    return {**shown, "views": views}


def _sparse(column: Sequence[Any]) -> Any:
    known = {row: value for row, value in enumerate(column) if value is not None}
    return known if len(known) < len(column) / 3 else column
