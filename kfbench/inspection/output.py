"""Write the output of `kfbench inspect` while a segment is read: as text, one JSON document, or JSON lines."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kfbench.codecs import Dictionary
from kfbench.inspection.rows import LINE, TITLES, batch_lines, batch_objects, record_lines, record_objects, utc
from kfbench.inspection.segment import Inspection, MissingBatches, SegmentReader
from kfbench.log.damage import Damage, WithoutDictionary
from kfbench.text import counted, printable, text_table


def text(reader: SegmentReader, with_records: bool) -> Iterator[str]:
    """Yield the lines of text about one segment: its batches, with their records if wanted, then the summary."""
    yield LINE % TITLES
    for part in reader.parts():
        positions = part.positions.tolist()
        records = record_lines(part) if with_records else iter([[]] * len(positions))
        damaged = list(part.damage)
        for position, line, of_batch in zip(positions, batch_lines(part), records, strict=True):
            while damaged and damaged[0].position < position:
                yield _damage_line(damaged.pop(0))
            yield line
            yield from of_batch
        yield from map(_damage_line, damaged)
    found = reader.found
    if rest := _tail_words(found):
        yield f"{found.size_bytes - found.trailing_bytes - found.allocated_bytes:>12}  {rest}"
    yield ""
    yield from summary_lines(found)


def _damage_line(damage: Damage) -> str:
    if isinstance(damage, WithoutDictionary):
        return f"{damage.position:>12}  NOT READ, {damage.size_bytes:,} bytes: dictionary {damage.promise}"
    if not damage.size_bytes:
        return f"{damage.position:>12}  OUT OF ORDER: {damage.field}: {damage.promise}"
    return f"{damage.position:>12}  DAMAGED, {damage.size_bytes:,} bytes left out: {damage.field}: {damage.promise}"


def summary_lines(found: Inspection) -> Iterator[str]:
    """Yield the lines of the summary of a segment that was read to its end."""
    sizes = [counted(found.size_bytes, "byte"), counted(found.batch_count, "batch")]
    yield f"{printable(found.path)}: {', '.join(sizes)}, {counted(found.record_count, 'record')}"
    if found.batch_count:
        kinds = [f"magic {magic} ({count:,})" for magic, count in sorted(found.magics.items())]
        kinds += [f"{codec} ({count:,})" for codec, count in sorted(found.codecs.items())]
        yield "batches by kind: " + ", ".join(kinds)
        yield "records per batch: " + _quantile_words(found.records_per_batch)
        yield "bytes per batch: " + _quantile_words(found.bytes_per_batch)
        gaps = f", {counted(found.gaps, 'gap')} of {counted(found.missing_offsets, 'offset')}" if found.gaps else ""
        yield f"offsets: {found.first_offset} to {found.last_offset}{gaps}"
        special = {"transactional": found.transactional_batches, "control": found.control_batches}
        words = ", ".join(f"{count:,} {kind}" for kind, count in special.items() if count)
        yield f"producers with an id: {len(found.producers):,}{f'; batches: {words}' if words else ''}"
    if found.first_ms is not None and found.last_ms is not None:
        yield f"times: {utc(found.first_ms)} to {utc(found.last_ms)} UTC"
    yield from map(dictionary_line, found.dictionaries.values())
    for missing in found.missing:
        yield f"not read: {missing_words(missing)} ({counted(missing.size_bytes, 'byte')})"
        yield from _missing_hint(found, missing)
    yield f"damage: {_damage_words(found)}"
    if rest := _tail_words(found):
        yield f"at the end: {rest}"


def missing_words(missing: MissingBatches) -> str:
    """Return the number of batches that cannot be read, the dictionary that they name, and the reason."""
    names = "names" if missing.batches == 1 else "name"
    reason = missing.reason.removeprefix(f"number {missing.number} ")
    return f"{counted(missing.batches, 'batch')} {names} dictionary {missing.number}, which {reason}"


def _missing_hint(found: Inspection, missing: MissingBatches) -> Iterator[str]:
    if missing.number not in found.dictionaries:
        whole = f"cat DICTIONARY {printable(shlex.quote(found.path))} > WHOLE.log"
        yield f"  hint: {whole}. DICTIONARY is the dictionary's file, or a segment that begins with it"
    elif missing.reason.endswith("is missing"):
        yield f"  hint: dictionary {missing.number} stands after these batches. kfbench.read_log reads them"


def dictionary_line(dictionary: Dictionary) -> str:
    """Return one line about a stored dictionary."""
    on = dictionary.trained_on
    words = "raw" if dictionary.is_raw else "trained"
    if on is not None:
        words += f" {'from' if dictionary.is_raw else 'on'} {counted(on.records, 'record')} in {on.format}"
        words += "" if on.batch_size is None else f" ({on.batch_size:,} per batch)"
    size = counted(len(dictionary.data), "byte")
    return f"dictionary {dictionary.number}: {size}, {words}, SHA-256 {dictionary.sha256.hex()}"


def _quantile_words(quantiles: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in quantiles.items())


def _damage_words(found: Inspection) -> str:
    if found.damage:
        lost = [each.size_bytes for each in found.damage if each.size_bytes]
        words = [f"{counted(sum(lost), 'byte')} left out in {counted(len(lost), 'place')}"] if lost else []
        if back := len(found.damage) - len(lost):
            words.append(f"offsets repeat or go back in {counted(back, 'place')}")
        return ", ".join(words)
    if not found.trailing_bytes:
        return found.unreadable_reason or "none"
    # A truncated copy looks the same as a segment that a broker is writing.
    end = found.size_bytes - found.trailing_bytes
    return f"none before byte {end:,}" if found.batch_count or found.missing else str(found.unreadable)


def _tail_words(found: Inspection) -> str:
    if found.allocated_bytes:
        return f"{counted(found.allocated_bytes, 'byte')} of zeros, allocated ahead"
    if found.trailing_bytes == found.size_bytes and not found.begins_batch:  # no log: see `unreadable`
        return ""
    if found.trailing_bytes:
        return f"{counted(found.trailing_bytes, 'byte')} of an incomplete batch, being written or cut off"
    return ""


def files_table(inspections: Sequence[Inspection]) -> Iterator[str]:
    """Yield the lines of a table: one row per file, then the sums of all files."""
    rows = [["file", "bytes", "batches", "records", "per batch", "codecs", "damage"]]
    for each in inspections:
        median = each.records_per_batch.get("p50")
        rows.append(
            [
                each.path,
                f"{each.size_bytes:,}",
                f"{each.batch_count:,}",
                f"{each.record_count:,}",
                "-" if median is None else f"{median:,.0f}",
                ", ".join(sorted(each.codecs)) or "-",
                "; ".join([each.unreadable or _damage_words(each), *map(missing_words, each.missing)]),
            ]
        )
    sums = [sum(getattr(each, name) for each in inspections) for name in ("size_bytes", "batch_count", "record_count")]
    rows.append([counted(len(inspections), "file"), *(f"{each:,}" for each in sums), "", "", ""])
    yield from text_table(rows, right=range(1, 5), has_rule=True)


def json_document(readers: Iterable[SegmentReader], with_records: bool) -> Iterator[str]:
    """Yield the text of one JSON array. It has one object per file: its batches, then its sums.

    with_records: True if each batch has its records.
    """
    separator = "["
    for reader in readers:
        yield f'{separator}\n{{"batches": ['
        separator, comma = ",", ""
        for part in reader.parts():
            records = record_objects(part) if with_records else None
            for batch in batch_objects(part):
                yield f"{comma}\n{json.dumps(batch | {'records': next(records)} if records else batch)}"
                comma = ","
        yield f"\n], {json.dumps(reader.found.to_dict())[1:]}"
    yield f"{'[' if separator == '[' else ''}\n]\n"


def json_lines(reader: SegmentReader, with_batches: bool, with_records: bool) -> Iterator[str]:
    """Yield one JSON object per line: {"kind": "batch"}, then the batch's records, and finally {"kind": "file"}.

    Without `with_batches` and `with_records` there is only the last line.
    """
    for part in reader.parts():
        records = record_objects(part) if with_records else None
        for batch in batch_objects(part) if with_batches or with_records else ():
            yield json.dumps({"kind": "batch", **batch}) + "\n"
            for record in next(records) if records else ():
                yield json.dumps({"kind": "record", **record}) + "\n"
    yield json.dumps({"kind": "file", **reader.found.to_dict()}) + "\n"
