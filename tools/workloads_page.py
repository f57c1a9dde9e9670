"""Write docs/workloads.md and its figures: the question of each named workload, and statistics of its records.

usage: workloads_page.py

The page is made from datasets/workloads and from one block (65,536 records) of each workload with seed 0. A test fails
if the page is out of date.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kfbench.formats import FORMATS
from kfbench.report.render import plots
from kfbench.tables import number
from kfbench.workloads import WORKLOADS, Sample
from kfbench.workloads.catalogue import NamedWorkload

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "workloads.md"
FIGURES: Final = ROOT / "docs" / "workloads"
RECORDS: Final = 65_536  # one block
HEAD: Final = """\
<!-- Written by `make workloads` from datasets/workloads: do not edit. -->
# Workloads

This page shows the question that each named workload answers, its assumptions, and statistics of its records. `kfbench
workloads` lists the workloads, and a sweep takes them by name. `datasets/workloads/NAME.toml` has every number with its
source. A number without a source is marked as assumed. Records depend only on seed and record number, so any slice is
the same everywhere.

- **Batches**: a producer opens a batch with its first record. It closes the batch after `linger.ms`, or when the next
  record does not fit into `batch.size`. At a rate λ a batch has 1 + λ · linger records on average, unless the size is
  the limit. If batches have another reason (a transaction, an upload, compaction), the file says so.
- **Bands** are the expected sizes after compression, as shares of the records' size, in batches of 1, 10 and 100
  records. Tests check them.
- **Tables** show one block: 65,536 records of seed 0. They have means over records or batches, lengths without nulls,
  and sizes in v2 without a codec.
- **Figures** show the first variant: lengths of values (bars) and keys (line), the time from a record to the next one
  in the log, and records per batch. A class is named by its lowest value. Heights are per cent of all values.
"""
TIME_CLASSES: Final = (
    ("< 0", -np.inf), ("0", 0), ("1 ms", 1), ("10 ms", 10), ("0.1 s", 100), ("1 s", 1_000), ("10 s", 10_000),
    ("1 min", 60_000), ("1 h", 3_600_000), ("1 d", 86_400_000),
)  # fmt: skip
SIZE_CLASSES: Final = (0, 1, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096, 65_536)
BATCH_CLASSES: Final = (1, 2, 3, 6, 11, 21, 51, 101, 201, 501, 1_001, 2_001)


def every() -> Iterator[NamedWorkload]:
    for each in WORKLOADS.values():
        if isinstance(each, NamedWorkload):
            yield each


def shares(values: NDArray[np.int64] | NDArray[np.int32], classes: Mapping[str, float]) -> pd.Series:
    """Return the share of the values in each class, by the name of the class.

    classes: the lowest value of each class by name, ascending. A class ends at the lowest value of the next class.
    """
    place = np.searchsorted(np.array(list(classes.values()), float), values, side="right") - 1
    return pd.Series(np.bincount(place, minlength=len(classes)) / max(len(values), 1), index=list(classes))


def trimmed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame without the empty rows (classes) at its beginning and end."""
    used = np.flatnonzero((frame > 0).any(axis=1).to_numpy())
    return frame.iloc[used[0] : used[-1] + 1]


def panels(sample: Sample) -> dict[str, pd.DataFrame]:
    shapes = sample.shapes
    sizes = dict(zip(["0", "1", *(f"{low:,}" for low in SIZE_CLASSES[2:])], SIZE_CLASSES, strict=True))
    lengths = {"value": shapes.value_lengths, "key": shapes.key_lengths}
    batches = dict(zip((f"{low:,}" for low in BATCH_CLASSES), BATCH_CLASSES, strict=True))
    by_length = {name: shares(found[found >= 0], sizes) for name, found in lengths.items() if np.any(found >= 0)}
    return {
        "Lengths (bytes, from)": trimmed(pd.DataFrame(by_length)),
        "Time to the next record (from)": trimmed(
            pd.DataFrame({"records": shares(np.diff(shapes.timestamps_ms), dict(TIME_CLASSES))})
        ),
        "Batches (records, from)": trimmed(pd.DataFrame({"batches": shares(np.diff(sample.bounds), batches)})),
    }


def digest(shown: Mapping[str, pd.DataFrame]) -> str:
    text = "".join(title + frame.to_csv(float_format="%.6f") for title, frame in shown.items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def row(name: str, sample: Sample) -> str:
    shapes, batches = sample.shapes, np.diff(sample.bounds)
    keys, values = (found[found >= 0] for found in (shapes.key_lengths, shapes.value_lengths))
    headers = shapes.header_key_lengths.sum() + np.maximum(shapes.header_value_lengths, 0).sum()
    written = int(FORMATS["v2"].size(shapes, sample.bounds).sum())
    overhead = written - shapes.payload_bytes
    nulls = np.mean(shapes.value_lengths < 0)
    cells = (
        name,
        number(float(batches.mean())),
        number(int(batches.max())),
        number(float(keys.mean()), 1) if len(keys) else "–",
        number(float(values.mean()), 1),
        number(float(headers / len(shapes)), 0) if headers else "–",
        f"{nulls:.1%}" if nulls else "–",
        number(overhead / len(shapes), 1),
        f"{overhead / written:.{1 if overhead > written / 1000 else 2}%}",
    )
    return f"| {' | '.join(cells)} |"


COLUMNS: Final = (
    "variant", "records per batch", "most", "key", "value", "headers", "nulls", "v2's overhead per record",
    "of all bytes",
)  # fmt: skip
TABLE: Final = f"| {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * (len(COLUMNS) - 1)}"


def bands(workload: NamedWorkload) -> str:
    found = [
        f"{codec} " + ", ".join(f"{least:g}–{most:g}" for least, most in pairs)
        for codec, pairs in workload.model.bands.items()
    ]
    return "; ".join(found)


def section(workload: NamedWorkload) -> str:
    model, samples = workload.model, {}
    for variant in workload.variants:
        named = NamedWorkload(name=workload.name, variant=variant)
        samples[variant] = named.generate(records=RECORDS, seed=0)
    figure = digest(panels(samples[workload.variant]))
    lines = [
        f"## {workload.name}",
        f"**{model.question}** {model.summary}.",
        model.story.strip(),
        f"![Lengths, times and batches of {workload.name}](workloads/{workload.name}.svg)\n<!-- {figure} -->",
        "\n".join([TABLE, *(row(variant, sample) for variant, sample in samples.items())]),
        f"Bands: {bands(workload)}.",
        "Assumed:\n" + "\n".join(f"- {text.rstrip('.')}." for text in model.assumptions),
        f"[Every number and its source](../datasets/workloads/{workload.file.name}).",
    ]
    return "\n\n".join(lines) + "\n"


def figure(workload: NamedWorkload) -> str:
    return plots.histograms(panels(workload.generate(records=RECORDS, seed=0)))


def page() -> str:
    rows = [f"| [{each.name}](#{each.name}) | {each.model.question} |" for each in every()]
    index = "\n".join(["| name | question |", "| --- | --- |", *rows])
    return "\n".join([HEAD, index, "", *map(section, every())])


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    for each in every():
        (FIGURES / f"{each.name}.svg").write_text(figure(each), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {sum(1 for _ in every())} workloads")


if __name__ == "__main__":
    main()
