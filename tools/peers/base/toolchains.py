"""Build peers that are programs in Go and Rust, and start them.

Each program is a folder of tools/peers: go-NAME or rust-NAME. It imports go-arms or rust-arms, which answer requests.
Its lock file pins what it imports. A new compiler makes a new build. The processor is the baseline of the
architecture, as in the compilers' defaults: settings of the user that change the code are not used.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kfbench.formats import BASE_FORMAT
from tools import builds
from tools.builds import ToolError, UnreachableError
from tools.peers.base.arm import Absent
from tools.peers.base.program import Program, running

PEERS: Final = Path(__file__).resolve().parents[1]
WARM_UP_S: Final = (0.0, 0.2)
UNUSED: Final = ("CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "GOEXPERIMENT")
"""Variables of the user that change what is built or where."""
OUT_OF_REACH: Final = ("dial tcp", "no such host", "i/o timeout", "Could not resolve host", "failed to download")


class Toolchain(NamedTuple):
    """How programs of one language are built.

    Args:
        language: the first part of the folders' names.
        compiler: the command that prints the compiler's version.
        build: the command that builds in the program's folder.
        output: the option of `build` with the target, to be followed by a path.
        program: the program's path below that target; NAME stands for the name of the program's folder.
        environment: variables for `build`. VERSION stands for the output of `compiler`.
    """

    language: str
    compiler: tuple[str, ...]
    build: tuple[str, ...]
    output: str
    program: str
    environment: dict[str, str]


GO: Final = Toolchain(
    language="go",
    compiler=("go", "version"),
    build=("go", "build", "-mod=readonly", "-trimpath"),
    output="-o",
    program="NAME",
    environment={"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0", "GOFLAGS": "", "GOAMD64": "v1"},
)
RUST: Final = Toolchain(
    language="rust",
    compiler=("rustc", "--version"),
    build=("cargo", "build", "--release", "--locked", "--quiet"),
    output="--target-dir",
    program="release/NAME",
    environment={"KFBENCH_RUSTC": "VERSION", "RUSTFLAGS": ""},
)


def built(folder: Path, toolchain: Toolchain, cache: Path = builds.CACHE) -> Path:
    """Return the program of a folder. Build it unless it is in the cache. Raises ToolError or UnreachableError."""
    shared = PEERS / f"{toolchain.language}-arms"
    files = (path for each in (shared, folder) for path in each.rglob("*") if path.is_file())
    sources = [path for path in files if "target" not in path.relative_to(PEERS).parts]  # not of a build by hand
    status, version = builds.run(toolchain.compiler, os.environ)
    if status:
        raise ToolError(f"{toolchain.compiler[0]} ends with status {status}: {version}")

    def fill(fresh: Path) -> None:
        target = fresh / "target"
        variables = {name: value.replace("VERSION", version) for name, value in toolchain.environment.items()}
        target.mkdir()
        command = [*toolchain.build, toolchain.output, str(target)]
        kept = {name: value for name, value in os.environ.items() if name not in UNUSED}
        status, output = builds.run(command, kept | variables, folder)
        if status:
            kind = UnreachableError if any(words in output for words in OUT_OF_REACH) else ToolError
            raise kind(f"{toolchain.build[0]} ends with status {status} in {folder.name}: {output}")
        (target / toolchain.program.replace("NAME", folder.name)).rename(fresh / folder.name)
        shutil.rmtree(target)

    salt = f"{folder.name} {version} {toolchain.environment}"
    return builds.cached(cache, "programs", sources, salt, fill) / folder.name


def starting(name: str, toolchain: Toolchain) -> Callable[[], AbstractContextManager[Program]]:
    """Return the function `start` of a peer module (see `tools.peers`).

    name: the name of the library, and of its folder after the language.
    """

    @contextmanager
    def start() -> Iterator[Program]:
        with ExitStack() as stack:
            try:
                program = built(PEERS / f"{toolchain.language}-{name}", toolchain)
                process = stack.enter_context(running([str(program)], os.environ))
                started = Program(name, [BASE_FORMAT], WARM_UP_S, process)
            except (ToolError, OSError) as error:
                raise Absent(str(error)) from None
            yield started

    return start
