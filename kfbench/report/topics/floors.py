"""The metadata floor of the named workloads: v2's overhead above it, and the part of it that other formats save.

The floor is a lean header of 29 bytes and a count per batch, and the entropy of the columns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.floor import FLOOR, HEADER_BYTES, PRODUCER_BYTES
from kfbench.report.data.named import NONE, Named
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW
from kfbench.report.data.words import span
from kfbench.tables import Column, Table, listed, number
from kfbench.workloads.catalogue import DEFAULT

OTHERS: Final = (NEW, HEADERS_FIRST)
NO_FLOORS: Final = "no floors; runs from before they were measured have none"


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Bytes of metadata per record of one workload or variant, without a codec.

    floor: the metadata floor. header: the batch header's part of the floor. of: the bytes of each format.
    """

    label: str
    is_variant: bool
    records_a_batch: float
    floor: float
    header: float
    of: Mapping[str, float]

    @property
    def above(self) -> float:
        """The share of v2's overhead that lies above the floor."""
        return 1 - self.floor / self.of[BASE_FORMAT]

    def saved(self, name: str) -> float | None:
        """Return the share of v2's bytes above the floor that the format saves; None if it was not measured."""
        return (self.of[BASE_FORMAT] - self.of[name]) / (self.of[BASE_FORMAT] - self.floor) if name in self.of else None


def floor_parts(floors: pd.DataFrame) -> str:
    """Name the parts of a floor, with the header bytes of these floors."""
    sizes = [number(size, 0) for size in sorted({*(header_bytes(floors) / floors["batches"]).round()})]
    words = " to ".join(dict.fromkeys((sizes[0], sizes[-1])))
    return f"a lean header of {words} bytes per batch and the entropy of the columns of lengths, times and offsets"


def header_bytes(floors: pd.DataFrame) -> pd.Series:
    """Return the bytes of batch headers in each of these floors."""
    return floors["field_bytes"].map(lambda fields: json.loads(fields)["batch_header"]).astype(float)


def gaps(results: Results, named: Named) -> list[Gap]:
    """Return the gaps of the named workloads with a floor and v2, in the order of the other tables."""
    floors = results.floors.assign(header_per_record=header_bytes(results.floors) / results.floors["records"])
    floors = floors.set_index("cell_id")
    overheads: dict[tuple[str, str], dict[str, float]] = {}
    cells: dict[tuple[str, str], str] = {}
    for arm in named.arms:
        if arm.kind == "bytes" and arm.codec == NONE:
            cells.setdefault((arm.workload, arm.variant), arm.cell_id)
            of = overheads.setdefault((arm.workload, arm.variant), {})
            of[arm.format] = (arm.size_bytes - arm.payload_bytes) / arm.records
    found = []
    for each in named.sizes:
        of = overheads.get((each.workload, each.variant), {})
        cell_id = cells.get((each.workload, each.variant), "")
        if each.with_codec != NONE or cell_id not in floors.index or BASE_FORMAT not in of:
            continue
        found.append(
            Gap(
                label=each.label,
                is_variant=each.variant != DEFAULT,
                records_a_batch=each.records_a_batch,
                floor=float(floors.loc[cell_id, "overhead_per_record"]),
                header=float(floors.loc[cell_id, "header_per_record"]),
                of={name: of[name] for name in (BASE_FORMAT, *OTHERS) if name in of},
            )
        )
    return found


def floors_table(every: Sequence[Gap], *, variants: bool = False) -> Table | None:
    """Return one row per workload, or per variant; None without a floor."""
    found = [each for each in every if each.is_variant == variants]
    if not found:
        return None
    others = [name for name in OTHERS if any(name in each.of for each in found)]
    return Table(
        name="floors-variants" if variants else "floors",
        caption=f"{'Variants' if variants else 'Workloads'}: bytes of metadata per record beside the metadata floor",
        columns=(
            Column(name="workload"),
            Column(name="records per batch", digits=1),
            *(Column(name=name, unit="bytes") for name in (FLOOR, f"{FLOOR}: header", f"{FLOOR}: columns")),
            *(Column(name=name, unit="bytes") for name in (BASE_FORMAT, *others)),
            Column(name=f"{BASE_FORMAT} above the floor", unit="%", digits=0),
            *(Column(name=f"saved of it by {name}", unit="%", digits=0) for name in others),
        ),
        rows=tuple(
            (
                each.label,
                each.records_a_batch,
                each.floor,
                each.header,
                each.floor - each.header,
                *(each.of.get(name) for name in (BASE_FORMAT, *others)),
                100 * each.above,
                *(None if (share := each.saved(name)) is None else 100 * share for name in others),
            )
            for each in found
        ),
        notes=(
            f"{FLOOR}: a lean batch header, and the zero-order entropy of each column of lengths, times and offsets.",
            f"Its header is a choice, no limit: {HEADER_BYTES} bytes, a count, {PRODUCER_BYTES} with a producer.",
            (
                "Each workload has one static model, whose size is not counted: docs/methodology.md says what that "
                "leaves out."
            ),
        ),
    )


def floors_sentence(every: Sequence[Gap]) -> str:
    """Give the share of v2's overhead above the floor, and the part of it that other formats save."""
    found = [each for each in every if not each.is_variant]
    if not found:
        return ""
    percents = span([100 * each.above for each in found], 0)
    above = f"{percents} % of the overhead of {BASE_FORMAT} lies above the metadata floor"
    shares = {name: [100 * share for each in found if (share := each.saved(name)) is not None] for name in OTHERS}
    saved = [f"{name} saves {span(each, 0)} %" for name, each in shares.items() if each]
    return f"{above}; of that {listed(saved)}." if saved else f"{above}."
