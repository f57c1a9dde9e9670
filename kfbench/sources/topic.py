"""Read a topic from a broker: the options of Spark's Kafka source, and the records that it returns.

A consumer gets records without batches, so the caller assumes batches. Positions are offsets. Compaction, transaction
markers and aborted transactions leave gaps between offsets. Source: Spark's "Structured Streaming + Kafka Integration
Guide", batch queries.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qsl, unquote

import pyarrow as pa

from kfbench.errors import InvalidConfig
from kfbench.records import Records
from kfbench.sources.part import Chunk

SCHEME: Final = "kafka://"
USAGE: Final = "kafka://HOST:PORT[,HOST:PORT…]/TOPIC[?from=earliest&to=latest]"
NO_LEADER: Final = -2  # stands for the size of a partition without a leader
EARLIEST, LATEST = "earliest", "latest"
NUMBERS: Final = {EARLIEST: -2, LATEST: -1}  # the numbers that stand for these words in the JSON of Spark's options
NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
ADDRESS: Final = re.compile(r"(?:[^:\s\[\]]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}")
COLUMNS: Final = {"key": "key", "value": "value", "offset": "offset", "timestamp": "timestamp_ms", "headers": "headers"}


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic on a broker, and the offsets to read.

    starting: the first offset to read. ending: the offset after the last one. Each is "earliest", "latest", or a
    mapping from partition to offset. A mapping also selects the partitions to read. options: the consumer's options, by
    Kafka's names.
    """

    bootstrap: str
    name: str
    starting: str | Mapping[int, int] = EARLIEST
    ending: str | Mapping[int, int] = LATEST
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse kafka://HOST:PORT,…/TOPIC?from=…&to=…&config=…&kafka.NAME=…. Raises InvalidConfig.

        from, to: "earliest", "latest" or PARTITION:OFFSET,…. config: the path of a properties file of a consumer, as
        Kafka's tools take it. kafka.NAME: the consumer option NAME.
        """
        # urlsplit of newer Python releases refuses an IPv6 address after another address.
        address, _, query = url.partition("#")[0].partition("?")
        scheme, separator, place = address.partition("://")
        bootstrap, slash, path = place.partition("/")
        # Messages show neither the query nor the text before an @: both may be secrets.
        url = f"{scheme}{separator}{bootstrap.rpartition('@')[2]}{slash}{path}"
        name = unquote(path).strip("/")
        are_addresses = all(map(ADDRESS.fullmatch, bootstrap.split(",")))
        if f"{scheme}{separator}" != SCHEME or not are_addresses or not NAME.fullmatch(name):
            raise InvalidConfig(f"{url}: {USAGE} is wanted")
        query_options = dict(parse_qsl(query, keep_blank_values=True))
        starting, ending = (
            _offsets(url, key, query_options.pop(key, default)) for key, default in (("from", EARLIEST), ("to", LATEST))
        )
        if isinstance(starting, Mapping) and isinstance(ending, Mapping) and starting.keys() != ending.keys():
            raise InvalidConfig(f"{url}: from and to are not of the same partitions")
        options = _properties(query_options.pop("config")) if "config" in query_options else {}
        for key, value in query_options.items():
            if not key.startswith("kafka."):
                raise InvalidConfig(f"{url}: no option {key!r} (options: from, to, config, kafka.NAME)")
            options[key.removeprefix("kafka.")] = value
        return cls(bootstrap=bootstrap, name=name, starting=starting, ending=ending, options=options)

    @property
    def properties(self) -> dict[str, str]:
        """The configuration of a Kafka client for this topic: `bootstrap.servers` and `options`."""
        return {"bootstrap.servers": self.bootstrap, **self.options}

    @property
    def partitions(self) -> list[int] | None:
        """The numbers of the partitions to read; None: all partitions."""
        for offsets in (self.starting, self.ending):
            if isinstance(offsets, Mapping):
                return sorted(offsets)
        return None

    def of(self, partitions: Iterable[int]) -> Self:
        """Return the topic restricted to these partitions. If it already selects partitions, return it unchanged."""
        if not isinstance(self.starting, str):
            return self
        return replace(self, starting=dict.fromkeys(partitions, NUMBERS[self.starting]))

    def source_options(self) -> dict[str, str]:
        """Return the options for Spark's Kafka source in a batch query."""
        if self.partitions is None:
            wanted = {"subscribe": self.name}
        else:
            wanted = {"assign": json.dumps({self.name: self.partitions})}
        return {
            **{f"kafka.{name}": value for name, value in self.properties.items()},
            **wanted,
            "startingOffsets": self._option(self.starting),
            "endingOffsets": self._option(self.ending),
            "includeHeaders": "true",
        }

    def _option(self, offsets: str | Mapping[int, int]) -> str:
        if isinstance(offsets, str) and self.partitions is None:
            return offsets
        given = dict.fromkeys(self.partitions or [], NUMBERS[offsets]) if isinstance(offsets, str) else offsets
        return json.dumps({self.name: {str(partition): offset for partition, offset in sorted(given.items())}})


def _offsets(url: str, key: str, text: str) -> str | Mapping[int, int]:
    if text in (EARLIEST, LATEST):
        return text
    found = re.fullmatch(r"\d{1,9}:\d{1,18}(?:,\d{1,9}:\d{1,18})*", text)
    pairs = text.split(",") if found else []
    offsets = {int(partition): int(offset) for partition, offset in (pair.split(":") for pair in pairs)}
    if not pairs or len(offsets) < len(pairs):
        raise InvalidConfig(f"{url}: {key}: earliest, latest or PARTITION:OFFSET,… is wanted, not {text!r}")
    return offsets


def _properties(path: str) -> dict[str, str]:
    """Read a properties file, whose lines are NAME=VALUE. Raises InvalidConfig, OSError."""
    found = {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        text = line.strip()
        if text and not text.startswith(("#", "!")):
            name, equals, value = text.partition("=")
            if not equals:
                raise InvalidConfig(f"{path}: line {number}: NAME=VALUE is wanted")
            found[name.strip()] = value.strip()
    return found


@dataclass(frozen=True, kw_only=True)
class TopicPartition:
    """One partition of a topic, a `Part`. Its records come from rows of Spark's Kafka source.

    size_bytes: the number of bytes on the broker; 0: unknown. batches: the rows.
    """

    topic: str
    partition: int
    size_bytes: int = 0
    batches: Iterable[pa.RecordBatch] = ()
    unit: str = "offset"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> str:
        return self.name

    def chunks(self) -> Iterator[Chunk]:
        for batch in self.batches:
            if not batch.num_rows:
                continue
            records = Records.from_arrow(batch.select(list(COLUMNS)).rename_columns(list(COLUMNS.values())))
            # The size of their batches on the broker is unknown.
            yield Chunk(records=records, size_bytes=records.shapes.payload_bytes)


def by_partition(topic: str, batches: Iterable[pa.RecordBatch]) -> TopicPartition | None:
    """Return a TopicPartition for rows of Spark's Kafka source that all have the same partition; None: no rows."""
    rest = iter(batches)
    for batch in rest:
        if batch.num_rows:
            partition = batch.column("partition")[0].as_py()
            return TopicPartition(topic=topic, partition=partition, batches=chain([batch], rest))
    return None
