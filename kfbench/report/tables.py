"""The tables of a report, and the one sentence each that says what its numbers mean.

Everything is computed from the stored rows of one run. No sentence holds a measured number of its own. What a run does
not have is None, and the page leaves it out.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kfbench.measure.prefix import LOST
from kfbench.records import PAYLOAD
from kfbench.report.render import Cell, Column, Interval, Table, listed, number
from kfbench.report.results import (
    AXES,
    BASE,
    REFERENCE,
    Frame,
    Results,
    Slice,
    distance,
    in_order,
    level,
    pictured,
    worth_a_column,
)

HEADLINE_BATCHES = (1, 10, 100, 1000)
LARGE_PAYLOAD_BYTES = 10_000  # a record that is nearly all payload: the negative control
CHECKSUM = {"v0": "CRC-32", "v1": "CRC-32"}  # the others pay CRC-32C, which the processor computes faster
ALONE = {"timestamp_spread_ms": 0, "offset_stride": 1}  # where a batch of one record is stored
SMALL_BLOCK_ROWS = 40  # more than that is read one axis at a time


# --- Tables


def axis_table(part: Slice, column: str, *, name: str, caption: str, digits: int = 2) -> Table:
    """One row a level of the axis, one column a format."""
    table = part.pivot(column)
    return Table(
        name=name,
        caption=f"{caption} ({part.setting})",
        columns=(
            AXES[part.axis],
            *(Column(name=f, digits=digits) for f in table.columns),
        ),
        rows=tuple(
            (level(part.axis, at), *map(as_cell, row)) for at, row in zip(table.index, table.to_numpy(), strict=True)
        ),
    )


def ratio_table(part: Slice, *, name: str, caption: str) -> Table:
    """Whole size, payload too, relative to v2."""
    sizes = part.pivot("size_per_record")
    ratios = sizes.div(sizes[BASE], axis=0).drop(columns=BASE) if BASE in sizes else sizes.iloc[:, :0]
    return Table(
        name=name,
        caption=f"{caption} ({part.setting})",
        columns=(
            AXES[part.axis],
            *(Column(name=f, digits=3) for f in ratios.columns),
        ),
        rows=tuple(
            (level(part.axis, at), *map(as_cell, row)) for at, row in zip(ratios.index, ratios.to_numpy(), strict=True)
        ),
    )


def as_cell(value: Any) -> Cell:
    if isinstance(value, Interval):
        return value
    return None if _absent(value) else float(value)


def verdict(results: Results) -> Table | None:
    """One row a format: overhead at a few batch sizes; all bytes, encode and decode CPU relative to v2."""
    part = results.along(results.uncompressed, "batch_size")
    if part is None:
        return None
    overhead = part.pivot("overhead_per_record")
    batches = [size for size in HEADLINE_BATCHES if size in overhead.index] or list(
        overhead.index[:: max(1, len(overhead) // 4)]
    )
    sizes = part.pivot("size_per_record")
    at = REFERENCE["batch_size"] if REFERENCE["batch_size"] in sizes.index else sizes.index[-1]
    cpu = headline_cpu(results)
    rows = []
    for name in overhead.columns:
        ratio = sizes.at[at, name] / sizes.at[at, BASE] if BASE in sizes else None
        rows.append(
            (
                name,
                *(as_cell(overhead.at[size, name]) for size in batches),
                as_cell(ratio),
                *(1.0 if name == BASE and (op, BASE) in cpu else cpu.get((op, name)) for op in ("encode", "decode")),
            )
        )
    return Table(
        name="verdict",
        caption=f"Overhead in bytes a record by batch size; ratios to {BASE} at {batch_words(at)} ({part.setting})",
        columns=(
            Column(name="format", swatch=True),
            *(Column(name=f"batch of {number(int(size))}", unit="bytes", digits=1) for size in batches),
            Column(name="all bytes", unit=f"× {BASE}", digits=3),
            Column(name="encode CPU", unit=f"× {BASE}"),
            Column(name="decode CPU", unit=f"× {BASE}"),
        ),
        rows=tuple(rows),
    )


def headline_cpu(results: Results) -> dict[tuple[str, str], Interval | None]:
    """(operation, format) -> ratio to v2 in the one CPU cell nearest to the reference, without a codec."""
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")]
    rows = results.with_ratios(results.nearest(rows))
    return {(row.operation, row.format): row.ratio for row in rows.itertuples()}


def verdict_sentence(results: Results) -> str:
    part = results.along(results.uncompressed, "batch_size")
    if part is None:
        return "This run holds no byte counts over batch size."
    overhead = part.pivot("overhead_per_record")
    if not {BASE, "v3"} <= set(overhead.columns):
        return f"This run compares {listed(list(overhead.columns))}."
    first, last = overhead.index[0], overhead.index[-1]
    v2, v3 = overhead[BASE], overhead["v3"]
    sizes = part.pivot("size_per_record")
    share = 1 - sizes["v3"] / sizes[BASE]
    text = (
        f"Compared with {BASE}, v3 saves {_amount(v2[first] - v3[first])} of {v2[first]:.1f} overhead bytes a record "
        f"at {batch_words(first)} and {_amount(v2[last] - v3[last])} of {v2[last]:.1f} at {batch_words(last)}: "
        f"{_percent(share[first])} and {_percent(share[last])} of all bytes."
    )
    cpu = headline_cpu(results)
    said = [
        f"{op} {_against(cpu[op, 'v3'], results.noise)}"
        for op in ("encode", "decode")
        if cpu.get((op, "v3")) is not None
    ]
    return f"{text} CPU against {BASE}: {listed(said)}." if said else text


def _amount(value: float) -> str:
    return f"{value:.1f}" if value >= 0 else f"−{-value:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace("-", "−")


def batch_words(size: Any) -> str:
    return "one record a batch" if size == 1 else f"{number(int(size))} records a batch"


def ties(ratio: Interval, noise: tuple[float, float] | None) -> bool:
    """Whether a ratio cannot be told from 1: its interval holds 1, or reaches into what v2 reads against itself."""
    low, high = noise or (1.0, 1.0)
    return ratio.holds(1.0) or (ratio.high >= low and ratio.low <= high)


def _against(ratio: Interval | None, noise: tuple[float, float] | None) -> str:
    if ratio is None:
        return "not measured"
    tie = "; a tie" if ties(ratio, noise) else ""
    return f"{ratio.median:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}{tie})"


def ends(column: Frame) -> tuple[tuple[int, float], tuple[int, float]]:
    """((first level, value), (last level, value)) of one column of a pivot, absent cells left out."""
    found = column.dropna()
    return (found.index[0], float(found.iloc[0])), (found.index[-1], float(found.iloc[-1]))


def overhead_sentence(part: Slice) -> str:
    overhead = pictured(part.pivot("overhead_per_record"))
    still = [name for name in overhead.columns if name not in moving(overhead)]
    parts = []
    if still:
        pays = listed([f"{name} pays {overhead[name].max():.0f}" for name in still])
        parts.append(f"{pays} bytes a record whatever the batch")
    spans = []
    for name in moving(overhead):
        (first, most), (last, least) = ends(overhead[name])
        spans.append(f"{name} from {most:.1f} at {number(int(first))} to {least:.1f} at {number(int(last))}")
    if spans:
        parts.append(f"the others share a header out over the batch: {listed(spans)} records a batch")
    return "; ".join(parts) + "." if parts else ""


# --- Break-even


def first_smaller(sizes: Frame, name: str, other: str) -> tuple[int | None, int | None]:
    """(largest batch size measured at which `name` is not smaller yet, first from which it always is).

    (None, x): smaller from the first on; (x, None): not smaller at the largest.
    """
    both = sizes[[name, other]].dropna()
    smaller = (both[name] < both[other]).to_numpy()
    levels = [int(v) for v in both.index]
    if smaller.all():
        return None, levels[0]
    last_not = int(np.flatnonzero(~smaller)[-1])
    return levels[last_not], (levels[last_not + 1] if last_not + 1 < len(levels) else None)


def _between(bracket: tuple[int | None, int | None]) -> str:
    after, at = bracket
    if at is None:
        return "never"
    if after is None:
        return f"{number(at)} (always)" if at == 1 else f"≤ {number(at)}"
    return number(at) if at == after + 1 else f"{number(after + 1)}–{number(at)}"


def break_even(results: Results) -> Table | None:
    """From how many records a batch each format is smaller than another, uncompressed."""
    parts = results.slices(results.uncompressed, "batch_size")
    # Coarse batch sizes would only blur the answer.
    parts = [each for each in parts if each.rows["batch_size"].nunique() * 2 > parts[0].rows["batch_size"].nunique()]
    if not parts:
        return None
    settings = _with_single_records(parts)
    shown = settings[0]
    batched = [name for name in shown.columns if name not in ("v0", "v1")]
    rows: list[tuple[Cell, ...]] = []
    for name in batched:
        for other in shown.columns:
            if other == name or (other in batched and other != BASE):
                continue
            everywhere = [
                first_smaller(sizes, name, other) for sizes in settings if {name, other} <= set(sizes.columns)
            ]
            rows.append((name, other, _between(everywhere[0]), _range(everywhere), len(everywhere)))
    return Table(
        name="break-even",
        caption=f"Records a batch from which a format is smaller, uncompressed ({parts[0].setting})",
        columns=(
            Column(name="format", swatch=True),
            Column(name="smaller than", swatch=True),
            Column(name="from, records a batch"),
            Column(name="over every setting swept"),
            Column(name="settings"),
        ),
        rows=tuple(rows),
        notes=("4–5: not at 3, yes at 5, and 4 was not measured. A setting: one point of all the other axes.",),
    )


def _with_single_records(parts: Sequence[Slice]) -> list[Frame]:
    """Sizes over batch size of each slice. One record has neither spread nor holes: its row belongs to them too."""
    sizes = {tuple(each.fixed.items()): each.pivot("size_per_record") for each in parts}
    found = []
    for key, frame in sizes.items():
        still = sizes.get(tuple((dict(key) | ALONE).items()))
        if 1 not in frame.index and still is not None and 1 in still.index:
            frame = pd.concat([still.loc[[1]].reindex(columns=frame.columns), frame])
        found.append(frame)
    return found


def _range(brackets: Sequence[tuple[int | None, int | None]]) -> str:
    """Earliest and latest of many brackets in words."""
    order = sorted(brackets, key=lambda b: (float("inf") if b[1] is None else b[1], b[0] or 0))
    first, last = _between(order[0]), _between(order[-1])
    return first if first == last else f"{first} to {last}"


def break_even_sentence(results: Results) -> str:
    part = results.along(results.uncompressed, "batch_size")
    if part is None:
        return ""
    sizes = part.pivot("size_per_record")
    if BASE not in sizes:
        return ""
    said = [f"{other} from {_between(first_smaller(sizes, BASE, other))}" for other in ("v0", "v1") if other in sizes]
    text = f"{BASE} is smaller than {listed(said)} records a batch on" if said else ""
    if "v3" in sizes:
        earlier = [
            f"{other} from {_between(first_smaller(sizes, 'v3', other))}" for other in ("v0", "v1") if other in sizes
        ]
        text += f"; v3 than {listed(earlier)}" if earlier else ""
    return text + "."


# --- One axis at a time


def moving(overhead: Frame) -> list[str]:
    """The formats whose overhead changes along the axis."""
    return [name for name in overhead.columns if overhead[name].max() - overhead[name].min() >= 0.005]


def step_sentence(part: Slice) -> str:
    """What the axis does to v2 and v3, and which formats do not care."""
    overhead = pictured(part.pivot("overhead_per_record"))
    swept = [name for name in overhead.columns if overhead[name].iloc[[0, -1]].notna().all()]
    changing = moving(overhead)
    still = [name for name in swept if name not in changing]
    first, last = (level(part.axis, overhead.index[i]) for i in (0, -1))
    unit = AXES[part.axis].unit
    ends = f"from {number(first)} to {number(last)} {unit}".rstrip()
    parts = []
    if goes := [f"{f} from {overhead[f].min():.2f} to {overhead[f].max():.2f}" for f in (BASE, "v3") if f in changing]:
        parts.append(f"{AXES[part.axis].name} {ends} takes {listed(goes)} bytes of overhead a record")
    if still:
        parts.append(f"{listed(still)} {'does' if len(still) == 1 else 'do'} not depend on it")
    if {BASE, "v3"} <= set(swept):
        gain = overhead[BASE] - overhead["v3"]
        least, most = f"{gain.min():.2f}", f"{gain.max():.2f}"
        parts.append(f"v3 stays {least if least == most else f'{least} to {most}'} bytes a record below {BASE}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text and goes else f"{text}." if text else ""


# --- Where the bytes go


def breakdown(results: Results, batch_size: int) -> Frame | None:
    """Index: fields; one column a format; bytes a record in the cell nearest to the reference."""
    rows = results.uncompressed[results.uncompressed["field_bytes"].notna()]
    rows = rows[rows["batch_size"] == batch_size]
    rows = results.nearest(rows, batch_size=batch_size)
    if rows.empty:
        return None
    fields = {
        row.format: pd.Series(json.loads(row.field_bytes), dtype=float) / row.records for row in rows.itertuples()
    }
    table = pd.concat(fields, axis=1, sort=False)
    table = table[in_order(table.columns)].drop(index=[f for f in PAYLOAD if f in table.index])
    return table.replace(0.0, np.nan).dropna(how="all")  # no bytes: the format has no such field there


def breakdown_table(table: Frame, batch_size: int) -> Table:
    total = table.sum()
    rows = [(str(field), *map(as_cell, row)) for field, row in zip(table.index, table.to_numpy(), strict=True)]
    return Table(
        name=f"fields-{batch_size}",
        caption=f"Overhead by field, bytes a record, {batch_words(batch_size)}",
        columns=(Column(name="field"), *(Column(name=str(f)) for f in table.columns)),
        rows=(*rows, ("all overhead", *map(as_cell, total))),
    )


def _owner(field: str) -> str:
    """The batch header as one, a record's field as itself."""
    return "the batch header" if field.startswith("batch_header.") else field


def breakdown_sentence(tables: Mapping[int, Frame]) -> str:
    said = []
    for size, table in tables.items():
        if BASE not in table:
            continue
        whole = table[BASE].groupby([_owner(str(field)) for field in table.index]).sum()
        top = whole.sort_values(ascending=False, kind="stable").head(3)
        share = top.sum() / whole.sum()
        said.append(
            f"at {batch_words(size)} {listed([str(f) for f in top.index])} are {100 * share:.0f} % of the "
            f"overhead of {BASE}"
        )
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""


# --- Compression


def compressed_slice(results: Results) -> Frame:
    """Rows with a codec at the reference point, for every batch size that the codecs were swept over."""
    rows = results.grid_bytes
    with_codec = rows[rows["codec"] != "none"]
    if with_codec.empty:
        return with_codec
    sizes = sorted(with_codec["batch_size"].unique())
    if len(sizes) > len(HEADLINE_BATCHES):
        sizes = [size for size in sizes if size in HEADLINE_BATCHES]
    cells = [results.nearest(with_codec[with_codec["batch_size"] == s], batch_size=s)["cell_id"].iloc[0] for s in sizes]
    shown = rows[rows["cell_id"].isin(cells)].copy()
    shown["arm"] = [codec_words(row.codec, row.level) for row in shown.itertuples()]
    base = shown[shown["format"] == BASE].set_index(["cell_id", "arm"])["size_bytes"]
    shown["to_base"] = [row.size_bytes / base.get((row.cell_id, row.arm), np.nan) for row in shown.itertuples()]
    plain = rows[(rows["codec"] == "none") & rows["cell_id"].isin(cells)].set_index(["cell_id", "format"])["size_bytes"]
    shown["to_plain"] = [row.size_bytes / plain.get((row.cell_id, row.format), np.nan) for row in shown.itertuples()]
    return shown


def codec_words(codec: str, codec_level: Any) -> str:
    return codec if pd.isna(codec_level) else f"{codec} {int(codec_level)}"


def compressed_table(shown: Frame, column: str, *, name: str, caption: str, digits: int) -> Table:
    if column == "to_base":
        shown = shown[shown["format"] != BASE]
    table = shown.pivot(index=["batch_size", "arm"], columns="format", values=column)
    table = table[worth_a_column(table)]
    order = list(dict.fromkeys(shown.sort_values(["codec", "level"], kind="stable")["arm"]))
    order.sort(key=lambda arm: (arm != "none",))
    index = sorted(table.index, key=lambda key: (key[0], order.index(key[1])))
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(name="records a batch"),
            Column(name="codec"),
            *(Column(name=f, digits=digits) for f in table.columns),
        ),
        rows=tuple((int(size), arm, *map(as_cell, table.loc[(size, arm)])) for size, arm in index),
        notes=("Compressed bytes depend on the codec's build: the versions stand under Environment.",)
        if column == "size_per_record"
        else (),
    )


def compressed_sentence(shown: Frame) -> str:
    rows = shown[(shown["format"] == "v3") & (shown["codec"] != "none") & shown["to_base"].notna()]
    if rows.empty:
        return ""
    low, high = rows["to_base"].min() - 1, rows["to_base"].max() - 1
    worst, best = rows.loc[rows["to_base"].idxmax()], rows.loc[rows["to_base"].idxmin()]
    return (
        f"Once compressed, v3 takes {_percent(low)} ({best['arm']}, {batch_words(best['batch_size'])}) to "
        f"{_percent(high)} ({worst['arm']}, {batch_words(worst['batch_size'])}) more bytes than {BASE} with the "
        "same codec; minus is a saving."
    )


# --- CPU


def cpu_slice(results: Results, axis: str) -> Slice | None:
    """CPU rows without a codec along one axis, both operations, with ratios."""
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")]
    part = results.along(rows, axis)
    return None if part is None else Slice(axis=axis, rows=results.with_ratios(part.rows), fixed=part.fixed)


def cpu_tables(part: Slice, operation: str, name: str) -> list[Table]:
    """Ratios to v2; and ns a record."""
    one = Slice(axis=part.axis, rows=part.rows[part.rows["operation"] == operation], fixed=part.fixed)
    others = Slice(axis=part.axis, rows=one.rows[one.rows["format"] != BASE], fixed=part.fixed)
    title = operation.capitalize()
    caption = f"{title}, CPU time relative to {BASE}"
    absolute = f"{title}, ns of CPU time a record"
    return [
        axis_table(others, "ratio", name=f"{name}-{operation}", caption=caption, digits=3),
        axis_table(one, "ns_per_record", name=f"{name}-{operation}-ns", caption=absolute, digits=1),
    ]


def cpu_sentence(results: Results, part: Slice) -> str:
    said = []
    for operation in ("encode", "decode"):
        rows = part.rows[(part.rows["operation"] == operation) & (part.rows["format"] == "v3")]
        ratios = [r for r in rows["ratio"] if r is not None]
        if ratios:
            medians = [r.median for r in ratios]
            said.append(f"{min(medians):.2f} to {max(medians):.2f} times the CPU time of {BASE} to {operation}")
    text = f"v3 takes {listed(said)}" if said else "This run times no v3"
    if results.noise:
        low, high = results.noise
        text += f"; {BASE} against itself reads {low:.2f} to {high:.2f}"
    return text + "."


def hosts_sentence(results: Results) -> str:
    """What was left out because another host timed it; empty where one timed all."""
    if not results.elsewhere:
        return ""
    told = listed([f"{count:,} cells of {host}" for host, count in results.elsewhere.items()])
    return f"CPU times of two hosts share no table: {told} are left out, as another host timed more."


def aa_sentence(results: Results) -> str:
    """The A/A statement: how often v2 against v2 holds 1.0, and which differences this run cannot tell."""
    ratios = [r for r in results.aa["ratio"] if r is not None]
    if not ratios or results.noise is None:
        return "This run has no A/A arm: its CPU ratios come without a measure of their noise."
    held = sum(r.holds(1.0) for r in ratios)
    medians = [r.median for r in ratios]
    low, high = results.noise
    return (
        f"A/A arm: {BASE} was measured against {BASE} {len(ratios)} times; the interval held 1.0 in {held} of "
        f"them ({_percent(held / len(ratios))}), medians from {min(medians):.3f} to {max(medians):.3f}. "
        f"Ratios between {low:.3f} and {high:.3f} are not told apart from 1 in this run."
    )


def aa_table(results: Results) -> Table | None:
    """v2 against v2, by operation: what the run reads where the truth is 1."""
    body = []
    for operation, rows in results.aa.groupby("operation", sort=False):
        ratios = [r for r in rows["ratio"] if r is not None]
        if ratios:
            medians = np.array([r.median for r in ratios])
            low, high = (float(v) for v in np.percentile(medians, [2.5, 97.5]))
            held = sum(r.holds(1.0) for r in ratios)
            body.append(
                (
                    str(operation),
                    len(ratios),
                    held,
                    float(np.median(medians)),
                    low,
                    high,
                    float(medians.min()),
                    float(medians.max()),
                )
            )
    if not body:
        return None
    return Table(
        name="aa",
        caption=f"A/A: {BASE} measured a second time in every cell, relative to the first",
        columns=(
            Column(name="operation"),
            Column(name="cells"),
            Column(name="interval holds 1.0", unit="cells"),
            Column(name="median", digits=3),
            Column(name="2.5 %", digits=3),
            Column(name="97.5 %", digits=3),
            Column(name="least", digits=3),
            Column(name="most", digits=3),
        ),
        rows=tuple(body),
    )


def control_rows(results: Results) -> Frame | None:
    """Rows with ratios of the one CPU cell with the largest values, if they are large at all."""
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["value_bytes"] >= LARGE_PAYLOAD_BYTES)]
    if rows.empty:
        return None
    most = int(rows["value_bytes"].max())
    return results.with_ratios(results.nearest(rows[rows["value_bytes"] == most], value_bytes=most))


def control(results: Results) -> Table | None:
    """The negative control: records nearly all payload, where formats with the same checksum must tie."""
    rows = control_rows(results)
    if rows is None:
        return None
    rows = rows[rows["ratio"].notna() & ~((rows["format"] == BASE) & (rows["arm"] == "measure"))]
    body = []
    for row in rows.sort_values(["operation", "format"], ascending=[False, True], kind="stable").itertuples():
        crc = CHECKSUM.get(row.format, "CRC-32C")
        said = "ties" if ties(row.ratio, results.noise) else "differs" if crc == "CRC-32C" else f"differs, pays {crc}"
        body.append((f"{row.format} (A/A)" if row.arm == "aa" else row.format, row.operation, crc, row.ratio, said))
    size, batch = int(rows["value_bytes"].iloc[0]), rows["batch_size"].iloc[0]
    return Table(
        name="control",
        caption=f"Negative control: {number(size)} byte values, {batch_words(batch)}, CPU relative to {BASE}",
        columns=(
            Column(name="format"),
            Column(name="operation"),
            Column(name="checksum"),
            Column(name=f"× {BASE}", digits=3),
            Column(name="verdict"),
        ),
        rows=tuple(body),
    )


def control_sentence(table: Table) -> str:
    same = [row for row in table.rows if row[2] == "CRC-32C" and "A/A" not in str(row[0])]
    broken = [f"{row[0]} {row[1]}" for row in same if row[4] != "ties"]
    if not broken:
        return f"All {len(same)} arms with the checksum of {BASE} tie with it on large payloads, as they must."
    return (
        f"{listed(broken)} {'does' if len(broken) == 1 else 'do'} not tie with {BASE} on large payloads, as they "
        "should: read smaller CPU differences of this run with that in mind."
    )


# --- Prefix reading


def prefix_tables(results: Results) -> list[Table]:
    """One a format: what the prefix takes of the whole."""
    rows = results.prefixes
    rows = rows.assign(arm=[codec_words(row.codec, row.level) for row in rows.itertuples()])
    varied = [axis for axis in results.axes if rows[axis].nunique() > 1] or ["batch_size"]
    found = []
    for name in in_order(rows["format"]):
        part = rows[rows["format"] == name].sort_values([*varied, "codec", "level"], kind="stable")
        body = tuple(
            (
                *(level(axis, getattr(row, axis)) for axis in varied),
                row.arm,
                row.plain_bytes / row.batches,
                row.metadata_bytes / row.batches,
                row.made_bytes / row.batches,
                row.made_bytes / row.plain_bytes,
                row.taken_share,
                row.decompress,
                row.read,
            )
            for row in part.itertuples()
        )
        found.append(
            Table(
                name=f"prefix-{name}",
                caption=f"{name}: offsets and times from the prefix of each batch",
                columns=(
                    *(AXES[axis] for axis in varied),
                    Column(name="codec"),
                    Column(name="plain", unit="bytes a batch", digits=0),
                    Column(name="metadata of it", unit="bytes a batch", digits=0),
                    Column(name="decompressed", unit="bytes a batch", digits=0),
                    Column(name="decompressed", unit="× plain", digits=3),
                    Column(name="compressed bytes taken", unit="× all", digits=3),
                    Column(name="codec CPU", unit="× whole", digits=3),
                    Column(name="reader CPU", unit="× whole", digits=3),
                ),
                rows=body,
                notes=("Codec: the library alone. Reader: decode_metadata against decode, CRC included in both.",),
            )
        )
    return found


def lost_table() -> Table:
    return Table(
        name="prefix-lost",
        caption="Checks that a reader of the prefix gives up",
        columns=(Column(name="check"), Column(name="what goes unseen")),
        rows=tuple(LOST.items()),
    )


def prefix_sentence(results: Results) -> str:
    """What is saved where a batch is more than one block of its codec, and what it costs where it is not."""
    rows = results.prefixes
    saving = rows[rows["made_bytes"] < rows["plain_bytes"]]
    whole = rows[rows["made_bytes"] == rows["plain_bytes"]]
    said = []
    if not saving.empty:
        shares = saving["made_bytes"] / saving["plain_bytes"]
        said.append(
            f"In {len(saving)} of {len(rows)} cases less than the whole is decompressed: {_percent(shares.min())} to "
            f"{_percent(shares.max())} of the plain bytes, for {_span(saving['decompress'])} times the codec's CPU "
            f"time and {_span(saving['read'])} times the reader's"
        )
    if not whole.empty:
        most = int((whole["plain_bytes"] / whole["batches"]).max())
        said.append(
            f"In {len(whole)} of {len(rows)} ({listed(sorted(set(whole['codec'])))}, batches of up to {number(most)} "
            f"plain bytes) the prefix ends in the last block of its codec and all is decompressed: there it takes "
            f"{_span(whole['decompress'])} times the codec's CPU time and {_span(whole['read'])} times the reader's"
        )
    dearer = [sum(ratio.low > 1 for ratio in rows[name]) for name in ("decompress", "read")]
    said.append(
        f"The prefix is dearer than the whole, its interval above 1, in {dearer[0]} cases for the codec and "
        f"{dearer[1]} for the reader; the whole against itself reads {_span(rows['aa'], 3)}"
    )
    return ". ".join(said) + "."


def _span(ratios: Frame, digits: int = 2) -> str:
    medians = [ratio.median for ratio in ratios]
    return f"{min(medians):.{digits}f} to {max(medians):.{digits}f}"


# --- One block of the sweep ------------------------------------------------------------------------------------------


def blocks(results: Results, grid: str) -> list[tuple[Table, Frame]]:
    """The tables of one block of the sweep, each with the rows that it shows.

    One table if the block is small; else one for each axis that it varies, the others standing near the reference.
    """
    found = []
    rows = results.grid_rows[results.grid_rows["grid"] == grid]
    plain = rows[rows["kind"] == "bytes"]
    if not plain.empty:
        compressed = bool((plain["codec"] != "none").any())
        value = _to_base(plain) if compressed else plain["overhead_bytes"] / plain["records"]
        caption = f"Bytes relative to {BASE} with the same codec" if compressed else "Overhead, bytes a record"
        found += _block(results, plain.assign(shown=value), f"{grid}-bytes", caption, 4 if compressed else 2)
    timed = results.cpu[results.cpu["cell_id"].isin(rows.loc[rows["kind"] == "cpu", "cell_id"])]
    timed = timed[(timed["arm"] == "measure") & timed["format"].isin(rows["format"])]
    timed = timed.merge(rows.loc[rows["kind"] == "cpu", ["cell_id", "codec"]].drop_duplicates())
    for operation, part in timed.groupby("operation", sort=False):
        part = results.with_ratios(part[part["format"] != BASE])
        caption = f"{str(operation).capitalize()}, CPU time relative to {BASE}"
        found += _block(results, part.assign(shown=part["ratio"]), f"{grid}-{operation}", caption, 3)
    return found


def _to_base(rows: Frame) -> Frame:
    """Size relative to v2 of the same cell and codec."""
    arms = rows["cell_id"] + "/" + rows["codec"] + "/" + rows["level"].astype(str)
    base = rows.assign(arm=arms)[rows["format"] == BASE].set_index("arm")["size_bytes"]
    return rows["size_bytes"] / arms.map(base[~base.index.duplicated()])


def _block(results: Results, rows: Frame, name: str, caption: str, digits: int) -> list[tuple[Table, Frame]]:
    rows = rows.assign(arm=[codec_words(row.codec, row.level) for row in rows.itertuples()])
    varied = [axis for axis in results.axes if rows[axis].nunique() > 1]
    with_codec = ["arm"] if rows["arm"].nunique() > 1 else []
    if len(rows.drop_duplicates([*varied, "arm"])) <= SMALL_BLOCK_ROWS:
        return [(_block_table(rows, [*varied, *with_codec], name, caption, digits), rows)]
    found = []
    for axis in varied:
        part, fixed = rows, []
        for other in (each for each in varied if each != axis):
            distances = {distance({other: value}): value for value in sorted(part[other].unique())}
            at = distances[min(distances)]
            part = part[part[other] == at]
            fixed.append(f"{AXES[other].name} {number(level(other, at))}")
        table = _block_table(part, [axis, *with_codec], f"{name}-{axis}", f"{caption} ({', '.join(fixed)})", digits)
        found.append((table, part))
    return found


def _block_table(rows: Frame, keys: list[str], name: str, caption: str, digits: int) -> Table:
    keys = keys or ["batch_size"]
    table = rows.pivot(index=keys, columns="format", values="shown").sort_index()
    formats = worth_a_column(table)
    names = {"arm": Column(name="codec")}
    body = []
    for at, values in zip(table.index, table[formats].to_numpy(), strict=True):
        levels = at if isinstance(at, tuple) else (at,)
        shown = [value if key == "arm" else level(key, value) for key, value in zip(keys, levels, strict=True)]
        body.append((*shown, *map(as_cell, values)))
    return Table(
        name=name,
        caption=caption,
        columns=(*(names.get(key) or AXES[key] for key in keys), *(Column(name=f, digits=digits) for f in formats)),
        rows=tuple(body),
    )


def block_sentence(found: Sequence[tuple[Table, Frame]]) -> str:
    """What v3 does against v2 in the rows shown, over all tables of the same kind together."""
    spans: dict[str, list[float]] = {}
    for table, rows in found:
        what = table.caption.partition(" (")[0]
        values = rows[rows["format"] == "v3"]["shown"]
        spans.setdefault(what, []).extend(v.median if isinstance(v, Interval) else v for v in values if not _absent(v))
    said = [
        f"{what[:1].lower() + what[1:]}: v3 {min(each):.3f} to {max(each):.3f}" for what, each in spans.items() if each
    ]
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""


def _absent(value: Any) -> bool:
    return value is None or (not isinstance(value, Interval) and bool(pd.isna(value)))


# --- What went wrong


def failures(results: Results) -> Table | None:
    """Every row that is not a number, by its reason: errors first, then combinations left out by rule."""
    rows = results.all[results.all["status"] != "ok"]
    if rows.empty:
        return None
    counted = rows.groupby(["status", "kind", "format", "codec", "error"], dropna=False)["cell_id"]
    body = [
        (
            status,
            kind,
            fmt,
            codec,
            int(cells.count()),
            str(cells.iloc[0]),
            "" if pd.isna(error) else str(error),
        )
        for (status, kind, fmt, codec, error), cells in counted
    ]
    body.sort(key=lambda row: (row[0] != "error", row))
    return Table(
        name="failures",
        caption="Rows that are not numbers",
        columns=(
            Column(name="status"),
            Column(name="kind"),
            Column(name="format"),
            Column(name="codec"),
            Column(name="rows"),
            Column(name="first cell"),
            Column(name="reason"),
        ),
        rows=tuple(body),
    )


def failures_sentence(results: Results) -> str:
    counts = results.all["status"].value_counts()
    errors, skipped = int(counts.get("error", 0)), int(counts.get("skipped", 0))
    total = len(results.all)
    if not errors and not skipped:
        return f"All {number(total)} rows of this run are numbers: no cell failed, none was left out."
    return (
        f"Of {number(total)} rows {number(errors)} failed and {number(skipped)} were left out by rule; "
        "none of them enters a table above."
    )
