"""Read a named workload's TOML file (in datasets/workloads/). Its tables and keys are:

summary, question, story, assumptions = […]      texts for readers
class            the row in a report's verdict table that includes this workload; without it, the workload has its own
                 row
[sources]        the source of each number. The key is the path of the number or of its table. A text that begins with
                 "assumed: " means that there is no source
[arrival]        the times when records reach the producer (`arrivals`): process = "poisson", rate_per_s = …
[batching]       the records that share a batch (`batching`): model = "linger", linger_ms = …
[time]           timestamps that differ from the time of arrival
[producer]       idempotent = false turns idempotence off (Kafka's default is true since 3.0)
[key]            template (`payload.template`), length (`distributions`; default: the template's own), cardinality,
                 skew, in_turn (`keys`). Without this table, keys are null
[value]          template, length, null_share
[[header]]       name, template, length. Every record has all headers, in this order
[[other]]        records of another kind: their `share` of all records, and a key and value if they differ. With
                 tombstone = true, a record with the same key and a null value follows, as after a delete
[bands]          the expected size of the records after compression by each codec, as a share of their size before:
                 [least, most] for batches of 1, 10 and 100 records. Record headers are included, batch headers are not
[variant.NAME]   tables that replace single keys of the tables above. A table with one of the keys process, model or
                 dist replaces the whole table. `without = ["key"]` removes the table [key]
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.workloads.base.workload import Parameter
from kfbench.workloads.named.tables import Model

KINDS: Final = ("process", "model", "dist")  # keys that choose the class of a table
WORDS: Final = (*KINDS, "name", "without")  # keys whose values are words, which need no source


@lru_cache(maxsize=256)
def load(path: Path, variant: str | None = None) -> Model:
    """Read and check the tables of a file, or of one of its variants. Raises InvalidConfig with the file and key."""
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
    variant: dict[str, Any] = {}


@lru_cache(maxsize=64)
def prose(path: Path) -> Prose:
    """Return the texts of a file and its variants by name, without checking its numbers.

    Raises InvalidConfig for missing texts.
    """
    try:
        return msgspec.convert(_tables(path), Prose)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {error}") from None


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
    """Return all numbers and words of a file except its texts, in the order of the file, with their sources.

    The source of a variant's number is stored under `variant.NAME.PATH`. If it is missing, the source of the number
    that the variant replaces is used.
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
    """Return the source of a number by its dotted path, or else of the nearest table that contains it, or None."""
    while where:
        if where in sources:
            return str(sources[where])
        where = where.rpartition(".")[0]
    return None


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and the value of each number, word or list in nested tables.

    A table in a list appears in the path by its key `name`, or by its index if it has no name.
    """
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{where}.{name}" if where else name)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for i, each in enumerate(value):
            yield from _leaves(each, f"{where}.{each.get('name', i)}")
    else:
        yield where, value
