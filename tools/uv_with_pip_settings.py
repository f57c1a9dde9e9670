"""Run the lock's uv with the settings of pip: `python tools/uv_with_pip_settings.py pip install ...`.

pip reads its indexes, folders of wheels, certificates and proxy from configuration files and PIP_* variables. uv does
not read them. Variables of uv (UV_*) that are set already win. Where uv needs more, tools/setup.sh lets pip install.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

INDEXES: Final = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS"}
NETWORK: Final = {"cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY"}
FIXED: Final = {
    # pip takes the best of all indexes, uv the first that knows the name. Hashes hold either way.
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    # Hard links into a cache would share owner and mode with it, and with every other environment.
    "UV_LINK_MODE": "copy",
}


def pip_settings() -> dict[str, str]:
    """Return what holds for `pip install`, by the name of the option."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in sections and (text := ast.literal_eval(value)):
            sections[section][option] = text
    return sections["global"] | sections["install"] | sections[":env:"]


def uv_variables(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv installs what pip would install."""
    words = {option: " ".join(text.split()) for option, text in settings.items()}
    indexes = {variable: words[option] for option, variable in INDEXES.items() if option in words}
    if links := indexes.get("UV_FIND_LINKS"):
        indexes["UV_FIND_LINKS"] = links.replace(" ", ",")
    network = {variable: words[option] for option, variable in NETWORK.items() if option in words}
    return FIXED | indexes | dict(environment) | network


def main() -> int:
    settings = pip_settings()
    command = [str(Path(sys.executable).with_name("uv")), *sys.argv[1:]]
    if settings.get("no-index", "") in ("1", "true", "yes", "on") and "UV_DEFAULT_INDEX" not in os.environ:
        command.append("--no-index")
    return subprocess.run(command, env=uv_variables(settings, os.environ), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
