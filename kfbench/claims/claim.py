"""Compare figures that a document publishes with the real ones, and make a table of them per document.

No pandas: `kfbench table kip98` must answer in under two seconds.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from kfbench.present.table import Table, plain_columns

Numbers: TypeAlias = Mapping[str, int | float]
Fields: TypeAlias = Mapping[str, int | float | str]


@dataclass(frozen=True, kw_only=True)
class CheckedClaim:
    """A published figure that was compared with the real one.

    Args:
        claim: the subject of the figure.
        published: the published figure in words.
        real: the real figure in words.
        holds: True if the published figure is right.
        why: the reason for a difference, or a remark; may be empty.
        values: the real figure in numbers.
        shipped: the figure of the released layout, if the published layout was never released. It does not decide
            `holds`.
    """

    claim: str
    published: str
    real: str
    holds: bool
    why: str
    values: Numbers
    shipped: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimsTable:
    """All compared figures of one document."""

    name: str
    source: str
    rows: tuple[CheckedClaim, ...]
    remarks: tuple[str, ...] = ()  # errors in the document's text, not in a figure

    @property
    def differing(self) -> tuple[CheckedClaim, ...]:
        return tuple(row for row in self.rows if not row.holds)

    @property
    def summary(self) -> str:
        return f"{len(self.differing)} of {len(self.rows)} published figures differ from the real bytes."

    def to_table(self) -> Table:
        """Return the rows as one printable table; the reasons are its last column."""
        has_shipped = any(row.shipped for row in self.rows)
        names = ("published claim", "published", "real bytes", "holds", *(["v2, not counted"] if has_shipped else []))
        return Table(
            name=self.name,
            caption=f"{self.source}: {self.summary}",
            columns=plain_columns(*names, "because"),
            rows=tuple(
                (row.claim, row.published, row.real, "yes" if row.holds else "NO")
                + ((row.shipped,) if has_shipped else ())
                + (row.why,)
                for row in self.rows
            ),
            notes=self.remarks,
        )

    def to_text(self) -> str:
        """Return the figures as a table, and under it one line per reason."""
        table = self.to_table()
        without_reasons = replace(
            table, columns=table.columns[:-1], rows=tuple(row[:-1] for row in table.rows), notes=()
        )
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.why:
                reasons.setdefault(row.why, []).append(row.claim)
        lines = [f"  {'; '.join(rows)}: {why}" for why, rows in reasons.items()]
        return "\n".join([without_reasons.to_text(), "", "Why:", *lines, *self.remarks])

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source,
            "rows": [
                {name: value for name, value in asdict(row).items() if name != "shipped" or value} for row in self.rows
            ],
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A figure that a document publishes, and the way to measure its real value.

    The texts real, shipped, because and remark are templates: `{name}` is replaced by the field of this name.

    Args:
        fields: measures the real figure. Its numbers are the values of the claim; its texts only fill the templates.
        because: the reason that is printed if the claim does not hold.
        remark: printed if the claim holds.
        holds: decides by the values if the claim holds. None: it holds if `real` equals `published`.
    """

    claim: str
    published: str
    fields: Callable[[], Fields]
    real: str
    because: str = ""
    remark: str = ""
    shipped: str = ""
    holds: Callable[[Numbers], bool] | None = None

    def check(self) -> CheckedClaim:
        """Measure the real figure and compare it with the published one."""
        fields = self.fields()
        values = {name: value for name, value in fields.items() if not isinstance(value, str)}
        real = self.real.format_map(fields)
        holds = self.holds(values) if self.holds else real == self.published
        return CheckedClaim(
            claim=self.claim,
            published=self.published,
            real=real,
            holds=holds,
            why=(self.remark if holds else self.because).format_map(fields),
            values=values,
            shipped=self.shipped.format_map(fields),
        )
