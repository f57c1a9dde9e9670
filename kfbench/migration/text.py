"""The printed answer of `kfbench migrate`: assumptions, matrix and load of each phase, costs, break-even."""

from collections.abc import Iterator
from itertools import chain

from kfbench.migration.ask import Migration
from kfbench.migration.bills import GIB, BreakEven, Load
from kfbench.migration.plans import (
    FETCH_API,
    PRODUCE_API,
    BrokerAction,
    Operation,
    Phase,
    Plan,
    lost,
    on_fetch,
    on_produce,
)
from kfbench.money import PRICES_ASSUMED
from kfbench.text import count_words, percent, printable, text_table

LOAD_TITLES = ("append CPU s", "fetch CPU s", "GiB in", "GiB out", "GiB on disk", "zero-copy", "refused")


def migration_text(answer: Migration) -> str:
    """Return the whole answer as text, in blocks that are separated by empty lines."""
    return "\n\n".join("\n".join(map(printable, lines)) for lines in _blocks(answer))


def _blocks(answer: Migration) -> Iterator[list[str]]:
    yield _headline(answer)
    yield _break_even(answer)
    yield _assumptions(answer)
    for phase in answer.plan.phases:
        yield phase_matrix(answer.plan, phase, answer.codec)
        yield _load_tables(answer, phase)
        if phase.forces:
            yield _upgrade_costs(answer, phase)
    yield _operation_costs(answer)


def _headline(answer: Migration) -> list[str]:
    """Return a line per measured set of records: bytes saved, dollars saved, and when the new format pays."""
    plan = answer.plan
    lines = [f"{plan.name}: {plan.summary}"]
    for subject in answer.subjects:
        ratio, by_bill = subject.costs.size_bytes[plan.new] / subject.costs.size_bytes[plan.old], subject.by_bill
        bytes_words = f"{percent(abs(1 - ratio), 2)} {'fewer' if ratio <= 1 else 'more'} bytes"
        dollars = by_bill.saved_without * 1_024
        money = f"{'saves' if dollars >= 0 else 'costs'} {abs(dollars):.2f} $ per TiB produced without old consumers"
        pays = f"pays {pays_text(by_bill)}" + ("" if by_bill.share is None else " of old consumers")
        name = f"{subject.name}, codec {subject.costs.codec}"
        lines.append(f"{name}: {plan.new} takes {bytes_words} than {plan.old}; {money}; {pays}")
    if answer.unmeasured:
        lines.append(f"not measured: {', '.join(answer.unmeasured)}")
    return lines


def _assumptions(answer: Migration) -> list[str]:
    traffic, prices, plan = answer.traffic, answer.prices, answer.plan
    produced = [(row.produce.spoken, row.produce.format) for row in answer.rows]
    fetched = [(row.stored, row.fetch.format) for row in answer.rows]
    down = sorted({(source, target) for source, target in (*produced, *fetched) if target and target < source})
    clients = [f"{name} (produce {PRODUCE_API[name]}, fetch {FETCH_API[name]})" for name in plan.formats]
    rows = [
        (percent(traffic.old_producers), "of the records produced come from old clients", "--old-producers"),
        (percent(traffic.old_consumers), "of the records fetched go to old clients", "--old-consumers"),
        (percent(traffic.old_data), "of the records fetched were stored before", "--old-data"),
        (percent(traffic.canary_leaders), "of the leaders are on the canary", "--canary-leaders"),
        (count_words(traffic.fan_out, "time"), "each record is read", "--fan-out"),
        (count_words(traffic.replication, "time"), "each record is stored", "--replication"),
        (count_words(traffic.retention_days, "day"), "is the retention", "--retention-days"),
        (f"{prices.cpu_core_hour:g} $", "per core hour", "--price-cpu-core-hour"),
        (f"{prices.storage_gb_month:g} $", "per GB and month on disk", "--price-storage-gb-month"),
        (f"{prices.network_gb:g} $", "per GB in or out of a broker", "--price-network-gb"),
    ]
    return [
        f"assumed ({PRICES_ASSUMED}) unless given by the option:",
        *text_table(rows, right=[0]),
        f"clients, by the newest format that they know: {', '.join(clients)}",
        f"a GiB produced: the records that take one GiB in {plan.old}, the same records in every phase",
        "in: from producers, and by followers from leaders; out: to consumers and followers",
        "CPU: brokers' thread time, measured on this machine",
        f"in {plan.before!r} all clients are {plan.old}",
        *(
            f"{source} to {target} loses, if records have them: {', '.join(losses)}"
            for source, target in down
            if (losses := lost(source, target))
        ),
        *(f"{subject.name}: measured without {what}" for subject in answer.subjects for what in subject.left_out),
    ]


def phase_matrix(plan: Plan, phase: Phase, codec: str) -> list[str]:
    """Return the lines of a phase: its summary, then a table of the broker's action for each client."""
    rows = [["client", "produce", *(f"fetch of {stored}" for stored in phase.stored)]]
    for client in plan.clients(phase):
        fetches = [_action(on_fetch(phase, stored, client, codec)) for stored in phase.stored]
        rows.append([client, _action(on_produce(phase, client, codec)), *fetches])
    return [f"{phase.name} ({phase.source}): {phase.summary}", *text_table(rows)]


def _action(cell: BrokerAction) -> str:
    if cell.error:
        return f"{cell.action} ({cell.error})"
    words = f"{cell.action} to {cell.format}" if cell.action.endswith("convert") else cell.action
    return f"{words}; idempotent: refused ({cell.idempotent})" if cell.idempotent else words


def _load_tables(answer: Migration, phase: Phase) -> list[str]:
    """Return tables of the loads in a phase. A canary phase has two tables: of the canary, and of the cluster."""
    lines = []
    for name in answer.subjects[0].loads:
        if name == phase.name or name.startswith(f"{phase.name}: "):
            part = name.removeprefix(phase.name).lstrip(": ")
            rows = [[f"per GiB produced{', ' + part if part else ''}", *LOAD_TITLES]]
            rows += [[subject.name, *_load_cells(subject.loads[name])] for subject in answer.subjects]
            lines += _numbers_table(rows)
    return lines


def _load_cells(load: Load) -> list[str]:
    shares = (load.refused_produced, "produce"), (load.refused_fetched, "fetch")
    refused = [f"{percent(share)} of {what}" for share, what in shares if share]
    return [
        f"{load.append_cpu_s:.2f}",
        f"{load.fetch_cpu_s:.2f}",
        *(f"{size / GIB:.3f}" for size in (load.in_bytes, load.out_bytes, load.disk_bytes)),
        "-" if load.zero_copy_share is None else percent(load.zero_copy_share),
        ", ".join(refused) or "-",
    ]


def _upgrade_costs(answer: Migration, phase: Phase) -> list[str]:
    sources = [name for name in answer.plan.formats if name != phase.writes]
    rows = [["once, per GiB on disk", *(f"of {name}: {what}" for name in sources for what in ("CPU s", "GiB after"))]]
    for subject in answer.subjects:
        costs = [subject.costs.of(Operation("upgrade", name, phase.writes)) for name in sources]
        cells = [(f"{cost.cpu_s_per_gib:.2f}", f"{cost.bytes_ratio:.3f}") for cost in costs]
        rows.append([subject.name, *chain.from_iterable(cells)])
    return _numbers_table(rows)


def _operation_costs(answer: Migration) -> list[str]:
    rows = [["CPU seconds per GiB of input", *(subject.name for subject in answer.subjects)]]
    for operation in answer.subjects[0].costs.operations:
        path, source, target = operation
        title = f"{path} {source} to {target}" if source != target else f"{path} {source}"
        rows.append([title, *(f"{subject.costs.of(operation).cpu_s_per_gib:.2f}" for subject in answer.subjects)])
    controls = [subject.costs.control[0] for subject in answer.subjects if subject.costs.control]
    base = next(iter(answer.subjects[0].costs.operations))
    against_itself = f"{min(controls):.3f} to {max(controls):.3f}"
    return [*_numbers_table(rows), f"{base.path} {base.source} against itself, which should be 1: {against_itself}"]


def _break_even(answer: Migration) -> list[str]:
    plan = answer.plan
    titles = [
        f"{plan.new} bytes / {plan.old}'s",
        "pays",
        "saved, no old consumers",
        "saved, all old",
        "other CPU saved",
        "pays by the whole bill",
        "by CPU alone",
    ]
    rows = [[f"{plan.new} against {plan.old}", *titles]]
    for subject in answer.subjects:
        size, conversion = subject.costs.size_bytes, subject.by_conversion
        other_cpu = subject.by_bill.saved_without - conversion.saved_without
        dollars = (conversion.saved_without, conversion.saved_with_all, other_cpu)
        saved = [f"{amount * 1_024:+.4f} $/TiB" for amount in dollars]
        shares = [pays_text(found) for found in (conversion, subject.by_bill, subject.by_cpu)]
        rows.append([subject.name, f"{size[plan.new] / size[plan.old]:.4f}", shares[0], *saved, *shares[1:]])
    return [
        *_numbers_table(rows),
        f"{plan.goal!r} against {plan.before!r}, by share of old consumers; clients' CPU is not counted",
        "pays, saved: only storage, network, and the CPU of down-conversions for old consumers",
        "in brackets: shares that are undecided, because CPU times have 95 % intervals over the rounds",
        "other CPU: zero-copy, and appends including up-conversions for old producers; it is in the whole bill",
    ]


def pays_text(found: BreakEven) -> str:
    """Return a break-even in words, rounded to a whole percent from 10 % on, and to a tenth below.

    Examples: "below 9.1 % (8.2 to 10)", "above 24 %", "always (open: 97 to 100 %)".
    """
    share, *span = (f"{100 * value:.{0 if value >= 0.1 else 1}f}" for value in (found.share or 0, *(found.span or ())))
    between = " to ".join(span)
    if found.share is None:
        return found.pays + (f" (open: {between} %)" if span else "")
    return f"{found.pays} {share} %" + (f" ({between})" if span else "")


def _numbers_table(rows: list[list[str]]) -> list[str]:
    return text_table(rows, right=range(1, len(rows[0])))
