"""The explorer in the page of a what-if: it starts from the means of the log, and has the log's own sizes."""

from typing import Final

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.shown_formats import in_order
from kfbench.report.topics.explorer.data import Content, format_sets
from kfbench.report.topics.explorer.measured import Numbers, mean_settings
from kfbench.report.topics.explorer.rules import STOPS, equal_records
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.month import DAY_S, MB

THIS_LOG: Final = "this log"
MOST_RECORDS: Final = 100_000  # per batch, for the choice of a time span


def explorer_content(answer: WhatIf) -> Content:
    """Return what the explorer of this log shows: its means first, and its measured bytes as a workload."""
    settings = log_settings(answer)
    first = settings | {"workload": THIS_LOG}
    if answer.rate is not None:  # the explorer starts without a codec
        plain_share = sum(answer.breakdown[BASE_FORMAT].values()) / answer.base_bytes
        first["mb_per_s"] = float(f"{answer.rate.bytes_a_day * plain_share / DAY_S / MB:.4g}")
    sizes: Numbers = {}
    for arm in answer.arms:
        if arm.size_bytes is not None:
            sizes.setdefault(arm.codec, {})[arm.format] = round(arm.size_bytes / max(answer.records, 1), 4)
    return Content(
        workloads=[{"name": THIS_LOG, "settings": settings, "bytes": sizes, "cpu": {}}],
        sets={"This log's formats": in_order(answer.breakdown), **format_sets()},
        first=first,
        is_sampled=answer.sample is not None and answer.sample.is_partial,
        traffic=answer.traffic,
        prices=answer.prices,
    )


def log_settings(answer: WhatIf) -> Numbers:
    """Return the means of the log's records as settings of the explorer."""
    fields, records = answer.breakdown[BASE_FORMAT], max(answer.records, 1)
    settings = mean_settings(fields, records, max(sum(source.batches for source in answer.sources), 1))
    settings["span_ms"] = _span_ms(fields["timestamp_delta"] / records, settings["records"])
    if not settings["headers"]:  # their lengths have no mean
        settings = {name: value for name, value in settings.items() if not name.startswith("header_")}
    return settings


def _span_ms(delta_bytes: float, records: int) -> int:
    """Return the shortest time span of a batch, of the slider's stops, whose times in v2 take about these bytes.

    delta_bytes: the bytes of timestamp deltas per record.
    """
    count = min(records, MOST_RECORDS)

    def difference(span_ms: int) -> float:
        times = FORMATS[BASE_FORMAT].breakdown(equal_records(count, span_ms), count)["timestamp_delta"]
        return abs(times / count - delta_bytes)

    return min(STOPS["span_ms"], key=difference)
