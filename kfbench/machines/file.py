"""The file of a machine: the CPU ratios of a stored run, its processor and libraries, and hashes of its exact sizes.

Nothing in it names a host, a user or a folder. Each text must match a pattern, when it is written and when it is read.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from kfbench.codecs import CODECS
from kfbench.errors import KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.json_files import JsonLayout
from kfbench.shipped import DATASETS

SCHEMA: Final = 1
KIND: Final = "kfbench machine"
FOLDER: Final = DATASETS / "machines"
MOST_BYTES: Final = 4 << 20
OWN_PROFILE: Final = "own"  # a sweep that is not shipped with kfbench: its name stays private
UNKNOWN: Final = "unknown"
CONTAINS: Final = (
    "CPU time relative to v2 (median and 95 % interval) per operation, format, codec, workload and records per batch",
    "the processor: its name, family and model, architecture, cores, caches, virtual machine or not",
    "the instructions that kernels were compiled to",
    "versions of kfbench, Python, libraries and codecs, kfbench's git commit, and a hash of its code",
    "the profile, and the day of the measurement",
    "the results of the noise checks",
    "per codec: the number of exact sizes, and their SHA-256",
)
NEVER: Final = (
    "names of hosts, users, files or folders, or hashes of them",
    "network addresses",
    "the release of the operating system's kernel",
    "the command line, the name of your own sweep, or the time of day",
    "measured times; only ratios",
    "workloads of fingerprints",
)

VERSION: Final = r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)*(\.zlib-ng)?"
CPU: Final = (
    r"(?=.*\b(Intel|AMD|ARM|Apple|Ampere|AWS|Neoverse|Cortex|Hygon|IBM|POWER|QEMU|VIA|Zhaoxin|Processor|CPU))"
    r"[A-Za-z0-9][A-Za-z0-9 ()@.,+-]{1,79}"
)
CODEC_VERSION: Final = rf"-|[a-z0-9-]{{1,20}} {VERSION}( \([a-z0-9-]{{1,20}} {VERSION}\))?"
CPU_MODEL: Final = r"(family \d+, )?model \d+|family \d+"
ARCHITECTURES: Final = ("x86_64", "AMD64", "aarch64", "arm64", "ppc64le", "riscv64", "s390x")
CACHE_NAME: Final = r"L[1-4] (data|instruction|unified)"
CACHE_SIZE: Final = r"\d{1,9}[KMG]"
REVISION: Final = r"[0-9a-f]{40}(-dirty)?"
CODE: Final = r"[0-9a-f]{16}"
_NAME: Final = r"[a-z0-9][a-z0-9-]{0,39}"
_HASH: Final = r"^[0-9a-f]{64}$"

Operation = Literal["encode", "decode", "read-times", "append"]
Vectors = Literal["AVX-512", "AVX2", "AVX", "SSE2", "SVE", "NEON", "unknown"]
Crc = Literal["AVX-512", "SSE4.2", "tables"]
Count = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0, lt=1e6)]
Name = Annotated[str, Meta(pattern=f"^{_NAME}$")]
Version = Annotated[str, Meta(pattern=f"^({VERSION})$")]


class InvalidMachineFile(KfbenchError, ValueError):
    """A file is no machine file, is damaged, or has a schema that this version of kfbench does not read."""


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of the parts of the file: unknown names are refused."""


class Instructions(_Part, frozen=True, kw_only=True):
    """The instructions of the kernels.

    vectors: the widest vectors that kernels were compiled to. host_vectors: the widest that the processor has; None in
    older runs. crc: how checksums are computed. pdep: PDEP decodes columnar's quotients; None in older runs.
    """

    vectors: Vectors
    host_vectors: Vectors | None
    crc: Crc
    pdep: bool | None

    @property
    def words(self) -> str:
        """Return, for example, "AVX2 only (the host has AVX-512)"."""
        is_limited = self.host_vectors is not None and self.host_vectors != self.vectors
        words = f"{self.vectors} only (the host has {self.host_vectors})" if is_limited else self.vectors
        return f"{words}, CRC by tables" if self.crc == "tables" else words


class Machine(_Part, frozen=True, kw_only=True):
    """The processor and the libraries. None: the run does not know it. cores: those that kfbench could use."""

    cpu: Annotated[str, Meta(pattern=f"^({UNKNOWN}|{CPU})$")]
    cpu_model: Annotated[str, Meta(pattern=f"^({CPU_MODEL})$")] | None
    architecture: str
    cores: Count | None
    physical_cores: Count | None
    logical_cores: Count | None
    caches: dict[str, str]
    is_virtual: bool | None
    instructions: Instructions
    python: Version | None
    packages: dict[Name, Version]
    codecs: dict[Name, Annotated[str, Meta(pattern=f"^({CODEC_VERSION})$")]]


class NoiseVerdict(_Part, frozen=True, kw_only=True):
    """The noise checks, made anew from the run's samples.

    failed: the names of the checks that were not passed. aa_share: the share of A/A intervals that contain 1; None if
    there are too few. aa_half_width: half the width of the median A/A interval.
    """

    checks: Count
    failed: list[Annotated[str, Meta(pattern=r"^(A/A )?[A-Za-z0-9 .'-]{1,60}$")]]
    aa_share: Share | None
    aa_half_width: float | None

    @property
    def words(self) -> str:
        return f"{self.checks - len(self.failed)} of {self.checks} noise checks passed"


class RatioKey(NamedTuple):
    """The measurement that a ratio belongs to. Machines are compared by ratios with equal keys."""

    operation: str
    format: str
    codec: str
    level: int | None
    workload: str
    batch_size: int | None
    cell: str


class Ratio(_Part, frozen=True, kw_only=True):
    """The CPU time of a format relative to v2, in caches, with its 95 % interval.

    workload: "grid" is the slice of the grid along the batch size, with the defaults of all other axes. batch_size:
    records per batch; None: the workload's own batches. cell: the run's cell_id. records: records per call.
    """

    operation: Operation
    format: Name
    codec: Name
    level: int | None
    workload: Annotated[str, Meta(pattern=f"^{_NAME}(/{_NAME})?$")]
    batch_size: Count | None
    cell: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    records: Count
    median: Positive
    low: Positive
    high: Positive

    @property
    def key(self) -> RatioKey:
        return RatioKey(self.operation, self.format, self.codec, self.level, self.workload, self.batch_size, self.cell)


class Sizes(_Part, frozen=True, kw_only=True):
    """The exact sizes of a run under one codec.

    rows: how many there are. cells: SHA-256 of what was measured. sizes: SHA-256 of the same with the sizes. Machines
    with the same `cells` must have the same `sizes`, unless their codecs are of other versions.
    """

    codec: Name
    rows: Count
    cells: Annotated[str, Meta(pattern=_HASH)]
    sizes: Annotated[str, Meta(pattern=_HASH)]


class MachineFile(_Part, frozen=True, kw_only=True, tag_field="kind", tag=KIND):
    """The results of one machine.

    schema: the version of this layout. revision: the git commit of kfbench. code: a hash of kfbench's code; only
    machines with the same code are compared.
    """

    schema: int
    kfbench: Version
    revision: Annotated[str, Meta(pattern=f"^{REVISION}$")] | None
    code: Annotated[str, Meta(pattern=f"^{CODE}$")] | None
    profile: Name
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    contains: tuple[str, ...]
    never_contains: tuple[str, ...]
    machine: Machine
    noise: NoiseVerdict
    sizes: list[Sizes]
    ratios: Annotated[list[Ratio], Meta(min_length=1, max_length=100_000)]


def to_json(found: MachineFile) -> bytes:
    """Return the text of the file, with one number per line. Raises InvalidMachineFile if no reader would accept it."""
    data = msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
    from_json(data)
    return data


class MachineFiles(NamedTuple):
    """The files of a folder. sound: machine -> its file. damaged: file name -> what is wrong.

    The name of a machine is that of its file, without .json.
    """

    sound: dict[str, MachineFile]
    damaged: dict[str, str]


def read_folder(folder: Path = FOLDER) -> MachineFiles:
    """Read all files of machines in a folder, sorted by name."""
    found = MachineFiles({}, {})
    for path in sorted(folder.glob("*.json")):
        try:
            found.sound[path.stem] = LAYOUT.read(path, MOST_BYTES)
        except InvalidMachineFile as error:
            found.damaged[path.name] = str(error).removeprefix(f"{path}: ")
    return found


def read_file(path: Path) -> MachineFile:
    """Read and check the file of a machine. Raises InvalidMachineFile, with the place of what is wrong."""
    return LAYOUT.read(path, MOST_BYTES)


def from_json(data: bytes) -> MachineFile:
    """Parse and check the text of a file. Raises InvalidMachineFile."""
    return LAYOUT.parsed(data)


def _broken(found: MachineFile) -> Iterator[str]:
    """Yield what the types allow and `contribute` never writes."""
    machine = found.machine
    if machine.architecture not in (*ARCHITECTURES, UNKNOWN):
        yield f"machine.architecture: {machine.architecture!r} is not one of {', '.join(ARCHITECTURES)}"
    for name, size in machine.caches.items():
        if not re.fullmatch(CACHE_NAME, name) or not re.fullmatch(CACHE_SIZE, size):
            yield f"machine.caches: {name!r}: {size!r} is no cache and size"
    if len(found.noise.failed) > found.noise.checks:
        yield "noise: more checks failed than were made"
    codecs = [each.codec for each in found.sizes]
    if len(set(codecs)) < len(codecs):
        yield "sizes: a codec appears twice"
    yield from (f"sizes: no codec {name!r} in this kfbench" for name in codecs if name not in CODECS)
    keys = set[RatioKey]()
    for i, ratio in enumerate(found.ratios):
        if ratio.format not in FORMATS or ratio.format == BASE_FORMAT:
            yield f"ratios[{i}]: {ratio.format!r} is no format of this kfbench besides {BASE_FORMAT}"
        if ratio.codec not in CODECS:
            yield f"ratios[{i}]: no codec {ratio.codec!r} in this kfbench"
        if not ratio.low <= ratio.median <= ratio.high:
            yield f"ratios[{i}]: {ratio.median} is not within its interval, {ratio.low} to {ratio.high}"
        if ratio.key in keys:
            yield f"ratios[{i}]: appears twice"
        keys.add(ratio.key)


LAYOUT: Final = JsonLayout(
    struct=MachineFile,
    kind=KIND,
    schema=SCHEMA,
    noun="machine file",
    error=InvalidMachineFile,
    broken=_broken,
)
