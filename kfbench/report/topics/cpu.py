"""CPU along one axis: ratios to v2, and what they are in nanoseconds."""

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.results import Results, Slice
from kfbench.report.render.tables import Table, listed
from kfbench.report.topics import axis


def along(results: Results, name: str) -> Slice | None:
    """CPU rows without a codec along one axis, both operations, with ratios."""
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")]
    part = results.along(rows, name)
    return None if part is None else Slice(axis=name, rows=results.with_ratios(part.rows), fixed=part.fixed)


def tables(part: Slice, operation: str, name: str) -> list[Table]:
    """Ratios to v2; and ns a record."""
    one = Slice(axis=part.axis, rows=part.rows[part.rows["operation"] == operation], fixed=part.fixed)
    others = Slice(axis=part.axis, rows=one.rows[one.rows["format"] != BASE_FORMAT], fixed=part.fixed)
    title = operation.capitalize()
    caption = f"{title}, CPU time relative to {BASE_FORMAT}"
    absolute = f"{title}, ns of CPU time a record"
    return [
        axis.table(others, "ratio", name=f"{name}-{operation}", caption=caption, digits=3),
        axis.table(one, "ns_per_record", name=f"{name}-{operation}-ns", caption=absolute, digits=1),
    ]


def sentence(results: Results, part: Slice) -> str:
    said = []
    for operation in OPERATIONS:
        rows = part.rows[(part.rows["operation"] == operation) & (part.rows["format"] == "v3")]
        ratios = [r for r in rows["ratio"] if r is not None]
        if ratios:
            medians = [r.median for r in ratios]
            said.append(f"{min(medians):.2f} to {max(medians):.2f} times the CPU time of {BASE_FORMAT} to {operation}")
    text = f"v3 takes {listed(said)}" if said else "This run times no v3"
    if results.noise:
        low, high = results.noise
        text += f"; over the cells of the grid {BASE_FORMAT} against itself reads {low:.2f} to {high:.2f}"
    return text + "."
