"""Dictionary files: the control batch that stores a dictionary in a log. A header says what it was trained on.

A dictionary file is a log segment with one batch, so every reader of logs reads it, and a segment may begin with it.
The record's header `trained-on` is JSON: format, batch_size, records, size_bytes. Readers need no header, and the
wire form in docs/dictionaries.md does not have it.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Final

import numpy as np

from kfbench.batches import DecodedLog, EncodedLog
from kfbench.codecs import Dictionary, TrainedOn
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.dictionaries import KEY, VALUE, control_batch

HEADER: Final = "trained-on"


def dictionary_file(dictionary: Dictionary, fmt: Format) -> EncodedLog:
    """Return the content of a dictionary file: a control batch in this format."""
    on = dictionary.trained_on
    headers = [] if on is None else [(HEADER, json.dumps(asdict(on)).encode())]
    return control_batch(dictionary, fmt, 0, NO_TIMESTAMP, headers)


def stored_dictionaries(log: DecodedLog) -> Iterator[Dictionary]:
    """Yield the dictionaries that stand in a decoded log, in its order, with the samples that their headers name."""
    control = np.flatnonzero(log.batch_rows["is_control"])
    for first, end in zip(log.bounds[control].tolist(), log.bounds[control + 1].tolist(), strict=True):
        for i in range(first, end):
            value = log.records.value(i) or b""
            if (log.records.key(i) or b"")[: len(KEY)] != KEY or len(value) < VALUE.size:
                continue
            found = log.dictionaries.get(VALUE.unpack_from(value)[1])
            if found is not None:
                yield replace(found, trained_on=_trained_on(dict(log.records.headers(i)).get(HEADER)))


def _trained_on(header: bytes | None) -> TrainedOn | None:
    """Read a header. It is hostile input and only shown, so anything unexpected counts as no header."""
    try:
        values = json.loads(header or b"null")
        numbers = [values[name] for name in ("records", "size_bytes")]
        batch_size, name = values["batch_size"], values["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not all(type(each) is int and each >= 0 for each in numbers) or not isinstance(name, str) or len(name) > 40:
        return None
    if not name.isprintable() or not (batch_size is None or (type(batch_size) is int and batch_size > 0)):
        return None
    return TrainedOn(format=name, batch_size=batch_size, records=numbers[0], size_bytes=numbers[1])
