"""Remove names of hosts and home folders from command lines and Spark URLs, because a run's manifest is published."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kfbench.measure.environment import host

_FILE: Final = "file:"


def command(words: Iterable[str]) -> str:
    """Join the words of a command line. Remove names of hosts and folders outside the working folder from each word."""
    return shlex.join(map(published, words))


def published(argument: str) -> str:
    """Return an argument of a command line without private parts.

    A path that leaves the working folder (absolute, `~` or `..`) is replaced by its last part. In a URL, the names of
    hosts are replaced by hashes.
    """
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    path = Path(value.removeprefix(_FILE))
    leaves = path.is_absolute() or ".." in path.parts or (path.parts[:1] and path.parts[0].startswith("~"))
    return option + equals + (_last(path) if leaves else without_hosts(value))


def _last(path: Path) -> str:
    return path.name if path.name not in ("", "..") else "."


def without_hosts(url: str) -> str:
    """Replace each host in a URL, such as spark://HOST:PORT,HOST:PORT, by its hash (`environment.host`).

    Text without `://` is returned unchanged.
    """
    before, mark, rest = url.rpartition("://")
    hosts, slash, path = rest.partition("/")
    if not mark:
        return url
    hidden = ",".join(_without_host(each) for each in hosts.split(","))
    return f"{before}{mark}{hidden}{slash}{path}"


def _without_host(address: str) -> str:
    name, colon, port = address.rpartition(":")
    return f"{host(name)}:{port}" if colon and port.isdecimal() else host(address)
