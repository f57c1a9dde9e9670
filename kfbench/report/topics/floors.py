"""Compare the metadata of v2 and other formats with the metadata floor (a lower limit) on named workloads.

The floor is a small header of 29 bytes and a record count per batch, plus the entropy of the columns.
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
from kfbench.tables import Column, Table, number
from kfbench.workloads.catalogue import DEFAULT

OTHERS: Final = (NEW, HEADERS_FIRST)
NO_FLOORS: Final = "no floors; runs from before they were measured have none"


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The metadata of one workload or variant in bytes per record, without a codec.

    Args:
        floor: the metadata floor (a lower limit for metadata).
        header: the part of the floor for the batch header.
        of: format -> its metadata.
    """

    label: str
    is_variant: bool
    records_per_batch: float
    floor: float
    header: float
    of: Mapping[str, float]

    @property
    def above(self) -> float:
        """The part of v2's metadata that exceeds the floor, as a share of v2's metadata."""
        return 1 - self.floor / self.of[BASE_FORMAT]

    def saved(self, name: str) -> float | None:
        """Return the share that a format saves of v2's metadata above the floor; None if it was not measured."""
        return (self.of[BASE_FORMAT] - self.of[name]) / (self.of[BASE_FORMAT] - self.floor) if name in self.of else None


def floor_parts(floors: pd.DataFrame) -> str:
    """Describe in words what the metadata floor (a lower limit) consists of, with the number of bytes for headers."""
    sizes = [number(size, 0) for size in sorted({*(header_bytes(floors) / floors["batches"]).round()})]
    words = " to ".join(dict.fromkeys((sizes[0], sizes[-1])))
    return f"a lean header of {words} bytes per batch and the entropy of lengths, times and offsets"


def header_bytes(floors: pd.DataFrame) -> pd.Series:
    """Return the size in bytes of all batch headers in each metadata floor (a lower limit for metadata)."""
    return floors["field_bytes"].map(lambda fields: json.loads(fields)["batch_header"]).astype(float)


def gaps(results: Results, named: Named) -> list[Gap]:
    """Return the metadata of each named workload that was measured in v2 and has a metadata floor (a lower limit).

    The order is that of `named.sizes`.
    """
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
                records_per_batch=each.records_per_batch,
                floor=float(floors.loc[cell_id, "overhead_per_record"]),
                header=float(floors.loc[cell_id, "header_per_record"]),
                of={name: of[name] for name in (BASE_FORMAT, *OTHERS) if name in of},
            )
        )
    return found


def floors_table(every: Sequence[Gap], *, variants: bool = False) -> Table | None:
    """Return a table of metadata and its lower limit (the floor), with a row per workload or per variant.

    Return None if no floor was computed.
    """
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
                each.records_per_batch,
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
    """Give the share of v2's overhead that exceeds the metadata floor, and how much of it other formats save.

    The floor is a lower limit, computed from entropy.
    """
    found = [each for each in every if not each.is_variant]
    if not found:
        return ""
    percents = span([100 * each.above for each in found], 0)
    shares = {name: [100 * share for each in found if (share := each.saved(name)) is not None] for name in OTHERS}
    return " ".join(
        [
            f"{percents} % of {BASE_FORMAT}'s overhead is above the metadata floor.",
            *(f"Of this, {name} saves {span(each, 0)} %." for name, each in shares.items() if each),
        ]
    )
