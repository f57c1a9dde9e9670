"""Read a named workload's TOML file (datasets/workloads/). Its tables and keys:

summary, question, story, assumptions = […]      prose
class            the row of a report's verdict that the workload counts in; without it, a row of its own
[sources]        the source of each number: its path, or that of its table, to a text. A number without a source has a
                 text that begins with "assumed: "
[arrival]        when records reach the producer (`arrivals`): process = "poisson", rate_per_s = …
[batching]       which of them share a batch (`batching`): model = "linger", linger_ms = …
[time]           timestamps that are not the time of arrival
[producer]       idempotent = false where it is (Kafka's default is true since 3.0)
[key]            template (`payload.template`), length (`distributions`; absent: the template's own), cardinality, skew,
                 in_turn (`keys`); no table: null keys
[value]          template, length, null_share
[[header]]       name, template, length: every record has them all, in this order
[[other]]        records of another kind, `share` of all: key and value where they differ. tombstone = true: a null of
                 the same key follows, as after a delete
[bands]          the share of records that each codec should leave, framing included and a batch's header not, in
                 batches of 1, 10 and 100 records: [least, most]
[variant.NAME]   the same tables, laid over the others. A table that names its kind (process, model, dist) replaces
                 the whole table; `without = ["key"]` leaves one out
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.workloads.base.workload import Parameter
from kfbench.workloads.named.tables import Model

KINDS: Final = ("process", "model", "dist")  # keys that name a table's kind
WORDS: Final = (*KINDS, "name", "without")  # values of these keys are words, not numbers: they need no source


@lru_cache(maxsize=256)
def load(path: Path, variant: str | None = None) -> Model:
    """Return the workload of a file, or a variant of it. Raises InvalidConfig with file and key."""
    tables = dict(_tables(path))
    found = tables.pop("variant", {})
    if variant is not None:
        if variant not in found:
            known = ", ".join(found) or "none"
            raise InvalidConfig(f"{path}: no variant {variant!r} (variants: {known})")
        over = dict(found[variant])
        for name in over.pop("without", []):
            if name not in tables:
                raise InvalidConfig(f"{path}: variant.{variant}.without: no table {name!r}")
            del tables[name]
        tables = _laid_over(tables, over)
    try:
        return msgspec.convert(tables, Model)
    except (msgspec.ValidationError, InvalidConfig) as error:
        raise InvalidConfig(f"{path}: {f'variant.{variant}: ' if variant else ''}{error}") from None


class Prose(msgspec.Struct, frozen=True, kw_only=True):
    summary: str
    question: str
    story: str
    class_: str = msgspec.field(name="class", default="")
    assumptions: list[str] = []


@lru_cache(maxsize=64)
def prose(path: Path) -> Prose:
    """Return the prose of a file; its numbers are not read. Raises InvalidConfig."""
    try:
        return msgspec.convert(_tables(path), Prose)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {error}") from None


@lru_cache(maxsize=64)
def variants(path: Path) -> tuple[str, ...]:
    """Return the names of a file's variants, in its order. Raises InvalidConfig."""
    return tuple(_tables(path).get("variant", {}))


@lru_cache(maxsize=64)
def _tables(path: Path) -> Mapping[str, Any]:
    try:
        found: dict[str, Any] = msgspec.toml.decode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from None
    except msgspec.DecodeError as error:
        raise InvalidConfig(f"{path}: {error}") from None
    laid = found.get("variant", {})
    if not isinstance(laid, dict) or not all(isinstance(each, dict) for each in laid.values()):
        raise InvalidConfig(f"{path}: variant: tables [variant.NAME] are wanted")
    return found


def _laid_over(tables: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(tables)
    for name, value in over.items():
        below = found.get(name)
        merged = isinstance(value, dict) and isinstance(below, dict) and not value.keys() & set(KINDS)
        found[name] = _laid_over(below, value) if merged else value  # type: ignore[arg-type]
    return found


def parameters(path: Path) -> list[Parameter]:
    """Return all numbers and words of a file, without its prose, in its order.

    The source of a variant's number is that of `variant.NAME.…`, else the workload's own.
    """
    tables = dict(_tables(path))
    sources = dict(_leaves(tables.pop("sources", {}), ""))
    for name in ("summary", "question", "class", "story", "assumptions"):
        tables.pop(name, None)
    found = []
    for where, value in _leaves(tables, ""):
        source = _source(sources, where)
        if source is None and where.startswith("variant."):
            source = _source(sources, where.split(".", 2)[2])
        found.append(Parameter(path=where, value=value, source=source))
    return found


def _source(sources: Mapping[str, Any], where: str) -> str | None:
    """Return the text at this path, or at the nearest table above it."""
    while where:
        if where in sources:
            return str(sources[where])
        where = where.rpartition(".")[0]
    return None


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted path and value of each leaf. Tables in lists go by their name, or their number from 0."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{where}.{name}" if where else name)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for i, each in enumerate(value):
            yield from _leaves(each, f"{where}.{each.get('name', i)}")
    else:
        yield where, value
