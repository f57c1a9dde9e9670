"""Run the lock's uv with the settings of pip: `python tools/uv_with_pip_settings.py pip install ...`.

pip reads its index, folders of wheels, certificates and proxy from configuration files and PIP_* variables. uv does not
read them. This program asks pip and tells uv, so a machine where pip works needs no second configuration.

Variables of uv (UV_*) that are set already win.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

NO: Final = {"0", "f", "false", "n", "no", "off"}


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


def _location(folder: str) -> str | None:
    """Return a place of `find-links` as uv takes it. pip passes over a folder that does not exist; uv would fail."""
    if "://" not in folder:
        path = Path(folder.removeprefix("file:")).expanduser().absolute()
        folder = path.as_uri() if path.exists() else ""
    return folder.replace(",", "%2C")  # uv separates them by commas


def uv_variables(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv installs what pip would install."""
    get = {"index-url": settings.get("pypi-url", ""), "timeout": settings.get("default-timeout", "")} | dict(settings)
    timeout = get["timeout"]
    ours = {
        "UV_DEFAULT_INDEX": "" if environment.get("UV_INDEX_URL") else get["index-url"],
        "UV_INDEX": "" if environment.get("UV_EXTRA_INDEX_URL") else " ".join(get.get("extra-index-url", "").split()),
        "UV_FIND_LINKS": ",".join(filter(None, map(_location, get.get("find-links", "").split()))),
        "UV_INSECURE_HOST": " ".join(get.get("trusted-host", "").split()),
        "UV_HTTP_TIMEOUT": str(max(1, round(float(timeout)))) if timeout else "",
        "UV_HTTP_RETRIES": get.get("retries", ""),
        # pip takes the best of all indexes, uv the first that knows the name. Hashes hold either way.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        # Hard links into a cache would share owner and mode with it, and with every other environment.
        "UV_LINK_MODE": "copy",
    }
    bundle = get.get("cert") or environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE") or ""
    proxy = get.get("proxy", "")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    theirs = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), proxy)
    theirs["SSL_CERT_DIR" if Path(bundle).is_dir() else "SSL_CERT_FILE"] = bundle
    theirs["SSL_CLIENT_CERT"] = get.get("client-cert", "")
    return _filled(ours) | dict(environment) | _filled(theirs)


def _filled(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value}


def main() -> int:
    settings = pip_settings()
    command = [str(Path(sys.executable).with_name("uv")), *sys.argv[1:]]
    if settings.get("no-index", "no").lower() not in NO and not os.environ.keys() & {
        "UV_DEFAULT_INDEX",
        "UV_INDEX_URL",
    }:
        command.append("--no-index")
    return subprocess.run(command, env=uv_variables(settings, os.environ), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
