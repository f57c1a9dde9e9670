"""One run: a fresh broker under load, recorded for some seconds."""

import math
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.codecs import CODEC_NAMES
from kfbench.formats import Entries
from kfbench.layouts import CODEC_MASK, V2_HEADER
from tools import broker as kafka
from tools import builds, jvm
from tools.broker_profile import load
from tools.broker_profile.parts import EXCLUDED, JIT, part_of_thread
from tools.broker_profile.stacks import cpu_time, read_stacks, unresolved
from tools.broker_profile.threads import Snapshot, busy_share, snapshot, used
from tools.loopback import wait_for

HERE: Final = Path(__file__).parent
POM, EVENTS = HERE / "pom.xml", HERE / "profile.jfc"
SOURCES: Final = (HERE / "Client.java", HERE / "Stacks.java")
LEAST_JAVA: Final = 25
TOPIC, PARTITIONS, CONSUMERS = "load", 4, 2
ROUNDS_PER_S: Final = 100
"""Batches per second and partition."""
WARM_UP_S, MOST_SETTLE_S, MEASURE_S = 25.0, 8.0, 10.0
WARM_JIT: Final = 0.05
"""The broker is warm when its JIT compiler uses at most this share of a processor."""
CATCH_UP_S, LAG_ROUNDS = 60.0, 20
KEYTOOL_S: Final = 60
RATE_TOLERANCE: Final = 0.02
"""The share by which the records sent and read may differ from the plan."""
JVM_OPTIONS: Final = (
    *("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
"""The options of Kafka's own start script."""
PROFILING: Final = (
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints", "-XX:CompileCommand=quiet"),
    "-XX:CompileCommand=dontinline,java.util.zip.CRC32C::update",
)
"""A sample in an intrinsic of the JVM is taken when the compiled method around it returns, and shows its caller. So the
method with the CRC's intrinsic must not be inlined, else the CRC counts as log or record format."""
SECURITY: Final = ("plaintext", "TLS")
CODECS: Final = ("none", "lz4", "zstd")
BATCH_SIZES: Final = (1, 10, 100)
_STORE, _PASSWORD = "keys.p12", "kfbench-loopback"


class Setting(NamedTuple):
    security: str
    codec: str
    batch_size: int  # records per batch

    @property
    def name(self) -> str:
        return f"{self.security}-{self.codec}-{self.batch_size}"


def setting_of(row: Mapping[str, Any]) -> Setting:
    """Return the setting of a stored run."""
    return Setting(*(row[name] for name in Setting._fields))


SETTINGS: Final = tuple(Setting(*each) for each in product(SECURITY, CODECS, BATCH_SIZES))


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The programs of a run. jars: Kafka's. classes: those of SOURCES. java: the home of a JDK with CPU samples."""

    jars: Path
    classes: Path
    java: Path


class Absent(Exception):
    """A tool is missing. The message is the reason."""


class Unsteady(Exception):
    """The load was not the planned one, so the run does not count."""


def tools() -> Tools:
    """Raises Absent without Maven or a JDK, jvm.UnreachableError if Maven cannot reach its registry."""
    java = profiling_jdk()
    jars = jvm.fetched(POM)
    return Tools(jars=jars, classes=jvm.compiled(SOURCES, jars), java=java)


def profiling_jdk() -> Path:
    """Return the home of a JDK that samples CPU time. Raises Absent if there is none on this Linux host."""
    places = (os.environ.get("JAVA_HOME", ""), *map(str, sorted(Path("/usr/lib/jvm").glob("*"))))
    for home in (Path(place) for place in places if place):
        if (home / "bin" / "jfr").is_file() and main_version(java_version(home)) >= LEAST_JAVA:
            return home
    raise Absent(f"needs a JDK {LEAST_JAVA} or newer in JAVA_HOME or /usr/lib/jvm: older ones do not sample CPU time")


def java_version(home: Path) -> str:
    """Return the version of a JDK from its `release` file, such as 25.0.3; 0 if there is none."""
    release = home / "release"
    lines = release.read_text().splitlines() if release.is_file() else []
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("JAVA_VERSION=")), "0")


def main_version(version: str) -> int:
    return int(re.split(r"\D", version)[0])


@dataclass(frozen=True, kw_only=True)
class Run:
    """The CPU time of one run.

    Args:
        parts_ns, validation_ns: see CpuTime.
        append_ns: the CPU time of all appends to a log, which includes validation.
        samples: the number of samples. The `unresolved` ones have no stack; the `biased` ones were taken at the next
            safepoint, as in intrinsics. The `lost` ones are not among them.
        sent, read: records per second, of the producer and of each consumer.
        machine_busy: the busy share of all processors.
        bytes_per_batch: the mean size of a batch in the log.
    """

    setting: Setting
    seconds: float
    parts_ns: dict[str, int]
    validation_ns: dict[str, int]
    append_ns: int
    samples: int
    lost: int
    biased: int
    unresolved: int
    sent: float
    read: list[float]
    machine_busy: float
    bytes_per_batch: float

    def row(self) -> dict[str, Any]:
        """Return the run for JSON."""
        return {**self.setting._asdict(), **{name: each for name, each in asdict(self).items() if name != "setting"}}

    @property
    def counted_ns(self) -> int:
        return sum(cpu_ns for part, cpu_ns in self.parts_ns.items() if part not in EXCLUDED)


class Plan(NamedTuple):
    """The load of a run. rounds_per_s: batches per second and partition."""

    rounds_per_s: int = ROUNDS_PER_S
    warm_up_s: float = WARM_UP_S
    measure_s: float = MEASURE_S


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded broker, which has ended.

    Args:
        begin, end: when the measurement began and ended.
        counts: records in between, of the producer and of each consumer.
        file: the recording of JFR, which is longer.
        segment: the log of one partition.
    """

    begin: Snapshot
    end: Snapshot
    counts: list[int]
    file: Path
    segment: Path


def profile(setting: Setting, programs: Tools, plan: Plan) -> Run:
    """Run a broker, load it and record it. Raises Unsteady if the load was not the planned one."""
    with tempfile.TemporaryDirectory(prefix="kfbench-profile-") as name:
        recorded = record(setting, programs, Path(name), plan)
        begin, end = recorded.begin, recorded.end
        found = read_stacks(recorded.file, begin.time_ns, end.time_ns, programs.classes, programs.java)
        bytes_per_batch = check_batches(recorded.segment, setting)
    seconds = (end.time_ns - begin.time_ns) / 1e9
    rates = [count / seconds for count in recorded.counts]
    planned = PARTITIONS * setting.batch_size * plan.rounds_per_s
    if furthest := [rate for rate in rates if abs(rate / planned - 1) > RATE_TOLERANCE]:
        raise Unsteady(f"{setting.name}: {furthest[0]:,.0f} instead of {planned:,} records per second")
    cpu = cpu_time(found.stacks, used(begin, end))
    return Run(
        setting=setting,
        seconds=round(seconds, 3),
        parts_ns=dict(cpu.parts_ns),
        validation_ns=dict(cpu.validation_ns),
        append_ns=cpu.append_ns,
        samples=sum(each.samples for each in found.stacks),
        lost=found.lost,
        biased=found.biased,
        unresolved=unresolved(found.stacks),
        sent=round(rates[0], 1),
        read=[round(rate, 1) for rate in rates[1:]],
        machine_busy=round(busy_share(begin, end), 4),
        bytes_per_batch=round(bytes_per_batch, 1),
    )


def record(setting: Setting, programs: Tools, folder: Path, plan: Plan) -> Recorded:
    """Run a broker and its clients with all their files in `folder`, and record the broker."""
    file, records, properties = folder / "broker.jfr", folder / "records", folder / "client.properties"
    options = (*JVM_OPTIONS, *PROFILING, f"-XX:StartFlightRecording=settings={EVENTS},filename={file},dumponexit=true")
    settings = [*_broker_settings(setting, folder, programs.java), "auto.create.topics.enable=false"]
    java = str(programs.java / "bin" / "java")
    load.write_records(records)
    with kafka.running(programs.jars, folder, options, settings=settings, program=java) as broker, ExitStack() as stack:
        load.write_properties(properties, _client_properties(setting, broker, folder))
        common = (properties, TOPIC, str(PARTITIONS))
        producing = ("produce", *common, records, str(setting.batch_size), str(plan.rounds_per_s))
        clients = [
            stack.enter_context(load.client(name, programs.classes, programs.jars, *arguments))
            for name, arguments in [("producer", producing), *[("consumer", ("consume", *common))] * CONSUMERS]
        ]
        for each in clients:
            each.wait_until_ready()
        time.sleep(plan.warm_up_s)  # the producer sends as fast as it can, so that hot code is found
        clients[0].count("pace")
        most_lag = LAG_ROUNDS * PARTITIONS * setting.batch_size
        wait_for("the consumers", lambda: _lag(clients) <= most_lag, CATCH_UP_S)
        _settle(broker.process)
        before, begin = [each.count() for each in clients], snapshot(broker.process)
        time.sleep(plan.measure_s)
        after, end = [each.count() for each in clients], snapshot(broker.process)
    counts = [last - first for first, last in zip(before, after, strict=True)]
    return Recorded(begin=begin, end=end, counts=counts, file=file, segment=broker.segment(TOPIC))


def _settle(process: int) -> None:
    """Wait until the broker compiles little, but not longer than MOST_SETTLE_S."""
    started, jit_ns = time.monotonic(), math.inf
    while jit_ns > WARM_JIT * 1e9 and time.monotonic() - started < MOST_SETTLE_S:
        begin = snapshot(process)
        time.sleep(1)
        threads = used(begin, snapshot(process)).values()
        jit_ns = sum(thread.cpu_ns for thread in threads if part_of_thread(thread.name) == JIT)


def _lag(clients: Sequence[load.Client]) -> int:
    """Return the number of records that the slowest consumer has not read. The first client is the producer."""
    read = min(each.count() for each in clients[1:])
    return clients[0].count() - read


def check_batches(segment: Path, setting: Setting) -> float:
    """Return the mean size of a batch. Raises Unsteady if a batch has another number of records or another codec."""
    data = np.fromfile(segment, np.uint8)
    positions = Entries.of(data).positions  # of the complete batches
    headers = data[positions[:-1, np.newaxis] + np.arange(V2_HEADER.itemsize)].view(V2_HEADER)[:, 0]
    codecs = headers["attributes"] & CODEC_MASK
    wrong = (headers["count"] != setting.batch_size) | (codecs != CODEC_NAMES.index(setting.codec))
    if wrong.any():
        first = int(wrong.argmax())
        codec = CODEC_NAMES[int(codecs[first])]
        raise Unsteady(f"{setting.name}: a batch has {headers['count'][first]} records and codec {codec}")
    return float(np.diff(positions).mean())


def _broker_settings(setting: Setting, folder: Path, java: Path) -> list[str]:
    if setting.security == "plaintext":
        return []
    return [
        "listener.security.protocol.map=BROKER:SSL,CONTROLLER:PLAINTEXT",
        *(f"{name}={value}" for name, value in _ssl(_key_store(folder, java)).items()),
    ]


def _client_properties(setting: Setting, broker: kafka.Broker, folder: Path) -> dict[str, object]:
    """Return Kafka's defaults, except that a batch ends only at a flush."""
    secure = {"security.protocol": "SSL", **_ssl(folder / _STORE)} if setting.security == "TLS" else {}
    return {
        "bootstrap.servers": broker.address,
        "compression.type": setting.codec,
        "batch.size": 1 << 20,
        "linger.ms": 60_000,
        "buffer.memory": 64 << 20,
        "allow.auto.create.topics": "false",
        **secure,
    }


def _ssl(store: Path) -> dict[str, object]:
    return {
        f"ssl.{kind}.{name}": value
        for kind in ("keystore", "truststore")
        for name, value in (("location", store), ("password", _PASSWORD), ("type", "PKCS12"))
    }


def _key_store(folder: Path, java: Path) -> Path:
    """Make a key and its self-signed certificate for 127.0.0.1. The same file is key store and trust store."""
    store = folder / _STORE
    options = ("-alias", "broker", "-keyalg", "RSA", "-keysize", "2048", "-validity", "2", "-dname", "CN=localhost")
    where = ("-storetype", "PKCS12", "-keystore", str(store), "-storepass", _PASSWORD, "-ext", "SAN=ip:127.0.0.1")
    command = [str(java / "bin" / "keytool"), "-genkeypair", *options, *where]
    status, output = builds.run(command, jvm.environment(), most_s=KEYTOOL_S)
    if status:
        raise jvm.ToolError(f"keytool ends with status {status}: {output}")
    return store
