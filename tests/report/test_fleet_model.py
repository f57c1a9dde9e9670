"""Add up the cells of the size model: which cells are left out, and the bytes of a fleet."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from kfbench.report.data.fleet_model import MESSAGES_A_DAY, Modelled, cells_of, modelled

V2, V3 = 70, 60  # bytes per record


def row(start: int, records: int, name: str = "v2", **changes: Any) -> dict[str, Any]:
    size = records * (V2 if name == "v2" else V3)
    return {
        "kind": "model", "status": "ok", "grid": "g", "workload": "w", "variant": None, "seed": 1, "format": name,
        "start": start, "records": records, "batches": records // 10, "size_bytes": size, "payload_bytes": 8 * records,
        "losses": '{"timestamps":2}', "generate_ns": 30 * records, "cpu_ns": [5 * records], "resident_bytes": 2**28,
        "host": "here",
    } | changes  # fmt: skip


def both(*cells: tuple[int, int]) -> list[dict[str, Any]]:
    return [row(*cell, name) for cell in cells for name in ("v2", "v3")]


def all_of(rows: list[dict[str, Any]]) -> list[Modelled]:
    return modelled(cells_of(pd.DataFrame(rows)))


def one(rows: list[dict[str, Any]]) -> Modelled:
    (found,) = all_of(rows)
    return found


CELLS = ((0, 1000), (1000, 1000), (2000, 2000))


def test_cells_add_up_in_any_order() -> None:
    found = one(both(*CELLS)[::-1])
    assert found == one(both(*CELLS)) and found.records == 4000
    total = found.formats["v2"]
    assert (total.records, total.batches, total.size_bytes, total.payload_bytes) == (4000, 400, 280_000, 32_000)
    assert total.losses == {"timestamps": 6} and total.bytes_for(1) == V2
    assert found.resident_bytes == 2**28 and found.hosts == {"here"}


def test_so_many_messages_take_what_these_take_on_average() -> None:
    found = one(both(*CELLS))
    assert found.formats["v3"].bytes_for() == V3 * MESSAGES_A_DAY
    assert found.saved_bytes("v3") == (V2 - V3) * 10**12 and found.saved_bytes("v3", 7) == 70
    assert found.saved_bytes("v0") is None


def test_a_format_that_lacks_a_cell_is_left_out() -> None:
    rows = both(*CELLS)
    rows[3] |= {"status": "error", "size_bytes": None}
    found = one(rows)
    assert set(found.formats) == {"v2"} and found.records == 4000


@pytest.mark.parametrize("lost", [0, 1])
def test_a_workload_that_lacks_a_cell_is_left_out(lost: int) -> None:
    assert all_of(both(*CELLS[:lost], *CELLS[lost + 1 :])) == []


def test_other_kinds_blocks_and_seeds_are_not_added() -> None:
    rows = both(*CELLS)
    others = [each | {"kind": "bytes"} for each in rows] + [each | {"seed": 2} for each in rows]
    found = all_of([*rows, *others, *(each | {"grid": "h"} for each in rows)])
    assert [each.records for each in found] == [4000] * 3
    assert len({(each.seed, each.workload) for each in found}) == 2


def test_a_linear_cost_has_exponent_one_and_another_has_not() -> None:
    growth = one(both(*CELLS)).growth
    assert growth.records == (1000, 2000, 4000) and growth.cpu_ns == (40_000, 80_000, 160_000)  # rows of both formats
    assert growth.ns_per_record == [40, 40, 40] and growth.exponent == pytest.approx(1)
    rows = both(*CELLS)
    for each in rows:
        end = each["start"] + each["records"]
        each |= {"generate_ns": end**2 - each["start"] ** 2, "cpu_ns": [0]}
    growth = one(rows).growth
    assert growth.exponent == pytest.approx(2) and growth.ns_per_record[-1] > growth.ns_per_record[0]


def test_what_came_before_does_not_hide_how_cost_grows() -> None:
    """Records cost twice as much from the fifth cell on.

    The growth is computed per cell, because sums still contain the cheaper cells.
    """
    rows = both(*((1_000 * i, 1_000) for i in range(8)))
    for each in rows:
        if each["start"] >= 4_000:
            each |= {"generate_ns": 2 * each["generate_ns"], "cpu_ns": [2 * each["cpu_ns"][0]]}
    growth = one(rows).growth
    summed, _ = np.polyfit(np.log(growth.records), np.log(growth.cpu_ns), 1)
    assert growth.exponent is not None and growth.exponent > summed + 0.1 > 1.1


def test_one_cell_says_nothing_of_growth() -> None:
    assert one(both((0, 1000))).growth.exponent is None
