"""A published figure beside the real one, and all those of a document as a table.

No pandas and no matplotlib: `kfbench table kip98` must answer in under two seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfbench.report.render.tables import Column, Table


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published figure. real: what the bytes say; values: the same in numbers; why: a sentence, or none; shipped:
    for the figures of a layout that never shipped, those of the one that did, which decide nothing."""

    claim: str
    published: str
    real: str
    holds: bool
    why: str
    values: Mapping[str, int | float]
    shipped: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimsTable:
    """All checked figures of one document."""

    name: str
    source: str
    rows: tuple[Claim, ...]
    remarks: tuple[str, ...] = ()  # what is wrong in the words and not in a figure

    @property
    def differing(self) -> tuple[Claim, ...]:
        return tuple(row for row in self.rows if not row.holds)

    @property
    def summary(self) -> str:
        return f"{len(self.differing)} of {len(self.rows)} published figures differ from the real bytes."

    def to_table(self) -> Table:
        """The rows as one printable table; the reasons are its last column."""
        shipped = any(row.shipped for row in self.rows)
        columns = ("published claim", "published", "real bytes", "holds", *(["v2, not counted"] if shipped else []))
        return Table(
            name=self.name,
            caption=f"{self.source}: {self.summary}",
            columns=tuple(Column(name=name) for name in (*columns, "because")),
            rows=tuple(
                (row.claim, row.published, row.real, "yes" if row.holds else "NO")
                + ((row.shipped,) if shipped else ())
                + (row.why,)
                for row in self.rows
            ),
            notes=self.remarks,
        )

    def to_text(self) -> str:
        """The figures as a table, and beneath it one line for each reason."""
        table = self.to_table()
        short = Table(
            name=table.name,
            caption=table.caption,
            columns=table.columns[:-1],
            rows=tuple(row[:-1] for row in table.rows),
        )
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.why:
                reasons.setdefault(row.why, []).append(row.claim)
        lines = [f"  {'; '.join(rows)}: {why}" for why, rows in reasons.items()]
        return "\n".join([short.to_text(), "", "Why:", *lines, *self.remarks])

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source,
            "rows": [
                {
                    "claim": row.claim,
                    "published": row.published,
                    "real": row.real,
                    "holds": row.holds,
                    "why": row.why,
                    "values": dict(row.values),
                    **({"shipped": row.shipped} if row.shipped else {}),
                }
                for row in self.rows
            ],
            "remarks": list(self.remarks),
        }
