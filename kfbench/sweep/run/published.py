"""What a manifest says of where a sweep ran and what was typed: it is published, and names no host and no home."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kfbench.measure.environment import host

_FILE: Final = "file:"


def command(words: Iterable[str]) -> str:
    """A command line as `published` says each word of it."""
    return shlex.join(map(published, words))


def published(argument: str) -> str:
    """One argument: a path that is absolute, of a home or of a folder above as its last part; a URL without its
    hosts. What else is relative stays: it names nothing but what is below the folder of work."""
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    path = Path(value.removeprefix(_FILE))
    leaves = path.is_absolute() or ".." in path.parts or (path.parts[:1] and path.parts[0].startswith("~"))
    return option + equals + (_last(path) if leaves else without_hosts(value))


def _last(path: Path) -> str:
    return path.name if path.name not in ("", "..") else "."


def without_hosts(url: str) -> str:
    """The URL of a master or of several, spark://HOST:PORT,HOST:PORT, each host as `host` calls it. What else the text
    holds stays; one that is no URL is itself."""
    before, mark, rest = url.rpartition("://")
    hosts, slash, path = rest.partition("/")
    if not mark:
        return url
    hidden = ",".join(_without_host(each) for each in hosts.split(","))
    return f"{before}{mark}{hidden}{slash}{path}"


def _without_host(address: str) -> str:
    name, colon, port = address.rpartition(":")
    return f"{host(name)}:{port}" if colon and port.isdecimal() else host(address)
