"""The section about the size model: a fleet's bytes per day in each format, and the cost of running the model."""

from collections.abc import Sequence
from functools import cached_property
from statistics import fmean
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.migration.bills import Traffic
from kfbench.report.data.fleet_model import MESSAGES_A_DAY, Modelled, cells_of, modelled
from kfbench.report.data.named import NONE, Named
from kfbench.report.data.results import Results, as_cell
from kfbench.report.data.shown_formats import NEW, in_order
from kfbench.report.data.views import Views
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.tables import Cell, Column, Table, number, plain_columns
from kfbench.text import number_range
from kfbench.workloads.catalogue import DEFAULT

TB: Final = 10**12
MIB: Final = 1 << 20
COPIES: Final = Traffic().replication
TIMES: Final = ("first cell", "last cell", "least", "most")  # names of columns: the cost per record in these cells
ALL: Final = "equal shares"
SHARES: Final = f"{ALL}: the same number of messages of each workload, which is assumed. No known fleet is like that."
PACKED: Final = (
    "Under a codec the saving is an upper limit. It follows from this run's bytes per record, payload included, of a "
    "few thousand records per workload. Their batches are those of a client without a codec. A client that "
    "compresses fits more records into a batch that batch.size ends, so it has fewer headers to shorten."
)
ONE_COPY: Final = "One copy, as producers send it; replication multiplies it."


class Pair(NamedTuple):
    """The bytes of a workload in v2 (base) and in v3 (new)."""

    base: float
    new: float


class Fleet:
    """The results of the size model in one run. The model computes sizes without encoding records.

    A workload that was modelled several times (other seeds, other blocks of the sweep) counts once; the first one is
    used.
    """

    def __init__(self, results: Results) -> None:
        rows = results.all[results.all["kind"] == "model"]
        found: dict[str, Modelled] = {}
        for each in modelled(cells_of(rows)):
            found.setdefault(label(each), each)
        self.rows = rows
        self.workloads = dict(sorted(found.items()))
        self._results = results

    @cached_property
    def formats(self) -> list[str]:
        return in_order(name for each in self.workloads.values() for name in each.formats)

    @cached_property
    def compared(self) -> dict[str, Modelled]:
        """The workloads that were modelled in both v2 and v3."""
        return {name: each for name, each in self.workloads.items() if {BASE_FORMAT, NEW} <= each.formats.keys()}

    @cached_property
    def codecs(self) -> dict[str, dict[str, Pair]]:
        """Measured bytes per record: codec -> workload -> v2 and v3. Only workloads with both formats are included."""
        found: dict[str, dict[str, Pair]] = {}
        named = Named(self._results)
        for each in named.sizes:
            shown = each.with_codec != NONE and each.with_codec in named.shown_codecs
            if shown and {BASE_FORMAT, NEW} <= each.of.keys():
                found.setdefault(each.with_codec, {})[each.label] = Pair(each.of[BASE_FORMAT], each.of[NEW])
        return found

    @cached_property
    def growth(self) -> pd.DataFrame:
        """CPU seconds of computing sizes, with a row per number of records and a column per workload.

        Empty if several hosts computed them.
        """
        if len({host for each in self.workloads.values() for host in each.hosts}) != 1:
            return pd.DataFrame()
        lines = {
            name: pd.Series([cost / 1e9 for cost in each.growth.cpu_ns], index=each.growth.records)
            for name, each in self.workloads.items()
        }
        return pd.DataFrame(lines).sort_index()


def label(each: Modelled) -> str:
    return each.workload if each.variant in (None, DEFAULT) else f"{each.workload}/{each.variant}"


def day_table(fleet: Fleet) -> Table:
    """Return a table of bytes per day for MESSAGES_A_DAY messages, with a row per workload and a column per format."""
    body: list[tuple[Cell, ...]] = [
        (
            name,
            each.records,
            _records_per_batch(each),
            *(_scaled(total.bytes_for()) if (total := each.formats.get(fmt)) else None for fmt in fleet.formats),
        )
        for name, each in fleet.workloads.items()
    ]
    return Table(
        name="fleet",
        caption=f"{_messages()} messages a day in each format, no codec",
        columns=(
            *plain_columns("workload", "records modelled"),
            Column(name="records per batch", digits=1),
            *(Column(name=name, unit="TB a day", digits=1) for name in fleet.formats),
        ),
        rows=tuple(body),
        notes=(ONE_COPY,),
    )


def saved_table(fleet: Fleet) -> Table | None:
    """Return a table of the bytes per day that v3 saves compared with v2, without a codec and under each codec."""
    if not fleet.compared:
        return None
    rows = [(name, [_plain(each), *_packed(fleet, name)]) for name, each in fleet.compared.items()]
    if len(rows) > 1:
        rows.append((ALL, [_mean(each) for each in zip(*(pairs for _, pairs in rows), strict=True)]))
    columns = [Column(name="workload"), Column(name=f"{BASE_FORMAT}, one copy", unit="TB a day", digits=1)]
    for codec in (NONE, *fleet.codecs):
        what = "no codec" if codec == NONE else codec
        what += "" if codec == NONE else ", at most"
        columns += [
            *plain_columns(f"saved, {what} (%)", f"saved, {what}, {COPIES} copies (TB a day)"),
        ]
    notes = [f"Stored and sent {COPIES} times: the leader's copy and those of its followers."]
    if len(rows) > 1:
        notes.append(SHARES)
    if fleet.codecs:
        notes.append(PACKED)
    return Table(
        name="fleet-saved",
        caption=f"What {NEW} saves of {BASE_FORMAT} at {_messages()} messages a day",
        columns=tuple(columns),
        rows=tuple(
            (
                name,
                _scaled(pairs[0].base) if pairs[0] else None,
                *(cell for pair in pairs for cell in _saved_cells(pair)),
            )
            for name, pairs in rows
        ),
        notes=tuple(notes),
    )


def _plain(each: Modelled) -> Pair | None:
    return Pair(each.formats[BASE_FORMAT].bytes_for(), each.formats[NEW].bytes_for())


def _packed(fleet: Fleet, name: str) -> list[Pair | None]:
    found = [each.get(name) for each in fleet.codecs.values()]
    return [Pair(pair.base * MESSAGES_A_DAY, pair.new * MESSAGES_A_DAY) if pair else None for pair in found]


def _mean(pairs: Sequence[Pair | None]) -> Pair | None:
    """Return the mean over workloads; None if any workload is missing.

    Means over different workloads must not be compared.
    """
    known = [pair for pair in pairs if pair]
    if len(known) < len(pairs):
        return None
    return Pair(fmean(pair.base for pair in known), fmean(pair.new for pair in known))


def _saved_cells(pair: Pair | None) -> tuple[Cell, ...]:
    if pair is None:
        return None, None
    saved = pair.base - pair.new
    return 100 * saved / pair.base, _scaled(saved * COPIES)


def cost_table(fleet: Fleet) -> Table:
    """Return a table of the CPU time and memory of computing the sizes, with a row per workload.

    It also shows how the time grows with the number of records.
    """
    timed = not fleet.growth.empty
    body: list[tuple[Cell, ...]] = []
    for name, each in fleet.workloads.items():
        costs = each.growth.ns_per_record
        times = (each.growth.cpu_ns[-1] / 1e9, costs[0], costs[-1], min(costs), max(costs), each.growth.exponent)
        body.append((name, each.records, len(costs), *(times if timed else [None] * 6), each.resident_bytes / MIB))
    return Table(
        name="fleet-cost",
        caption="The cost of the model: records made and sized in all formats",
        columns=(
            *plain_columns("workload", "records", "cells"),
            Column(name="CPU", unit="s", digits=1),
            *(Column(name=name, unit="ns per record", digits=1) for name in TIMES),
            Column(name="exponent of records", digits=3),
            Column(name="largest worker", unit="MiB", digits=0),
        ),
        rows=tuple(body),
        notes=(
            "An exponent of 1 is a cost linear in records. It is fitted to the costs of cells, not to sums.",
            "The largest worker is a whole process, libraries included.",
        ),
    )


def growth_table(fleet: Fleet) -> Table:
    """Return a table with the numbers of the figure: CPU seconds per number of records, a column per workload."""
    return Table(
        name="fleet-growth",
        caption="CPU seconds of the model by the end of each cell",
        columns=(Column(name="records"), *(Column(name=name, unit="s") for name in fleet.growth)),
        rows=tuple(
            (int(at), *map(as_cell, row)) for at, row in zip(fleet.growth.index, fleet.growth.to_numpy(), strict=True)
        ),
    )


def fleet_sentence(fleet: Fleet) -> str:
    """Give the bytes that v3 saves compared with v2, and the cost of the model."""
    sentences = []
    if fleet.compared:
        each = sorted(fleet.compared, key=lambda name: _saved_share(fleet.compared[name]))
        ends = [fleet.compared[name] for name in dict.fromkeys((each[0], each[-1]))]
        shares = " to ".join(f"{100 * _saved_share(end):.2f} % ({label(end)})" for end in ends)
        saved = " and ".join(number(_scaled(end.saved_bytes(NEW) or 0.0), 2) for end in ends)
        sentences.append(f"Without a codec, {NEW} saves {shares} of {BASE_FORMAT}'s bytes.")
        sentences.append(f"At {_messages()} messages a day, this is {saved} TB per copy.")
    records = sum(each.records for each in fleet.workloads.values())
    worker = max(each.resident_bytes for each in fleet.workloads.values()) / MIB
    many = len(fleet.workloads)
    sentences.append(f"The model sized {number(records)} records of {many} workload{'s' if many > 1 else ''}.")
    exponents = [each.growth.exponent for each in fleet.workloads.values() if each.growth.exponent is not None]
    if exponents and not fleet.growth.empty:
        sentences.append(f"Its cost grows as records to the power of {number_range(exponents)}.")
    sentences.append(f"No worker held more than {worker:,.0f} MiB.")
    return " ".join(sentences)


def _saved_share(each: Modelled) -> float:
    return 1 - each.formats[NEW].bytes_for() / each.formats[BASE_FORMAT].bytes_for()


def _records_per_batch(each: Modelled) -> float:
    total = each.formats.get(BASE_FORMAT) or next(iter(each.formats.values()))
    return total.records / total.batches


def _scaled(size_bytes: float) -> float:
    return size_bytes / TB


def _messages() -> str:
    return f"{MESSAGES_A_DAY:,}"


def fleet_answer(run: Views) -> Answer | str:
    model = Fleet(run.results)
    if not model.workloads:
        return "no rows of the size model; the profile fleet has them"
    figure = growth_figure(model)
    return Answer(
        means=fleet_sentence(model),
        texts=Texts(rows=model.rows, of="any"),
        figures=(figure,),
        tables=(saved_table(model), day_table(model)),
        more=(cost_table(model), growth_table(model) if isinstance(figure, Figure) else None),
    )


def growth_figure(model: Fleet) -> Figure | Missing:
    if len(model.growth) < 2:
        return Missing(what="CPU seconds of the size model over records", why="no workload was sized in several cells")
    last = ", ".join(f"{name} {seconds:.1f}" for name, seconds in model.growth.ffill().iloc[-1].items())
    return Figure(
        name="fleet",
        svg=plots.growth(model.growth),
        alt=f"CPU seconds that the size model took, over records, a line per workload. At the end: {last}",
        caption="A line parallel to the dotted ones is a cost linear in records; a cell ends at each dot.",
        numbers=growth_table(model).name,
    )
