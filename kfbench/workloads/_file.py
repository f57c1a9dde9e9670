"""A named workload's TOML file (datasets/workloads/): what it may say, and what it says.

summary, question, story, assumptions = […]      prose
class            the row of a report's verdict that the workload counts in; without it, a row of its own
[sources]        where each number is from: the path of a number, or of the table it stands in, to a text; a number
                 without a source has a text that begins with "assumed: "
[arrival]        when records reach the producer (`_arrivals`): process = "poisson", rate_per_s = …
[batching]       which of them share a batch (`_batching`): model = "linger", linger_ms = …
[time]           what their timestamps say, if not the time of arrival
[producer]       idempotent = false where it is (Kafka's default is true since 3.0)
[key]            template (`_templates`), length (`_distributions`; absent: the template's own), cardinality, skew,
                 in_turn (`_keys`); no table: null keys
[value]          template, length, null_share
[[header]]       name, template, length: every record has them all, in this order
[[other]]        records of another kind, `share` of all: key and value where they differ; tombstone = true: a null
                 of the same key follows, as after a delete
[bands]          what each codec should leave of records, framing included and a batch's header not, in batches of
                 1, 10 and 100 of them: [least, most]
[variant.NAME]   the same tables, laid over the others; a table that names its kind (process, model, dist) takes the
                 place of the whole, and `without = ["key"]` leaves one out
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.workloads._model import Model
from kfbench.workloads._workload import Parameter

KINDS: Final = ("process", "model", "dist")  # a table that has one of them is of a kind
WORDS: Final = (*KINDS, "name", "without")  # what is said under these names has no source: it is no number


@lru_cache(maxsize=256)
def load(path: Path, variant: str | None = None) -> Model:
    """The workload of a file, or a variant of it. Raises InvalidConfig, which names file and key."""
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
    """What a file says, its numbers left alone. Raises InvalidConfig."""
    try:
        return msgspec.convert(_tables(path), Prose)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {error}") from None


@lru_cache(maxsize=64)
def variants(path: Path) -> tuple[str, ...]:
    """The names of a file's variants, in its order. Raises InvalidConfig."""
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
    """Everything in a file but its prose, in its order; that of a variant is looked up among the variant's own sources
    (`variant.NAME.…`) and then as if it were the workload's."""
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
    """The text at this path, or at the nearest table above it."""
    while where:
        if where in sources:
            return str(sources[where])
        where = where.rpartition(".")[0]
    return None


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """(dotted path, number or word or list of them) of each, tables in lists by their name or number from 0."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{where}.{name}" if where else name)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for i, each in enumerate(value):
            yield from _leaves(each, f"{where}.{each.get('name', i)}")
    else:
        yield where, value
