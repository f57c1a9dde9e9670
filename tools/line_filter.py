"""Remove what names a machine, its user or a remote host from log lines, and check that nothing of it is left."""

import getpass
import platform
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

LONGEST_BYTES: Final = 8_192
LOCAL: Final = r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\])"
AUTHORITY: Final = re.compile(rf"(?<=://)(?!{LOCAL}\b|host\.invalid)[A-Za-z0-9_\[][\w.:@%\[\]-]*")
# A Java package also ends in io, net or com, but it begins with one of these words.
PACKAGES: Final = r"(?:com|io|java|javax|jdk|net|org|scala|sun)\."
DOMAIN: Final = re.compile(
    rf"(?<![\w.@/$-])(?!{PACKAGES})(?:[a-z0-9-]+\.)+(?:com|dev|internal|io|lan|net|org)\b(?![\w.(-])", re.IGNORECASE
)
ADDRESS: Final = re.compile(r"(?<![\d.])(?!127\.|0\.0\.0\.0|192\.0\.2\.1\b)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
HARDWARE: Final = re.compile(r"(?<![\w:])(?!(?:00:)+00\b)(?:[0-9a-f]{2}:){5,7}[0-9a-f]{2}(?![\w:])", re.IGNORECASE)
# A word in capitals is no secret: Kafka logs apiKey=UPDATE_FEATURES.
SECRET: Final = re.compile(
    r"""((?i:password|secret|token|credential|api[-_]?key|authorization)["']?\s*[:=]\s*["']?)(?!removed\b|[A-Z_]+\b)[\w+/=.-]{12,}"""
)
PATTERNS: Final = (
    (AUTHORITY, "host.invalid"),
    (DOMAIN, "host.invalid"),
    (ADDRESS, "192.0.2.1"),
    (HARDWARE, "00:00:00:00:00:00"),
    (SECRET, r"\1removed"),
)


class LineFilter:
    """Replace remote hosts, addresses, secrets, and this machine's name, user, kernel release and folders in a line.

    folders: the name to write in place of each folder.
    """

    def __init__(self, folders: Mapping[Path, str]) -> None:
        homes = {Path.home(): "/home/user"}
        paths = {str(path): name for path, name in {**homes, **folders}.items()}
        names = {name: "host" for name in (socket.gethostname(), socket.getfqdn()) if name != "localhost"}
        names[platform.release()] = ".".join(platform.release().split(".")[:2])
        user = getpass.getuser()
        if user != "root":  # `root` is also an ordinary word of logs; tools/record_lines.py gives Java another name
            names[user] = "user"
        replaced = sorted((paths | names).items(), key=lambda item: -len(item[0]))
        words = [(re.compile(rf"(?<![\w-]){re.escape(old)}(?![\w-])"), new) for old, new in replaced if old != "/"]
        self._patterns = [*words, *PATTERNS]

    def filtered(self, line: str) -> str:
        """Return the line without those names, in at most LONGEST_BYTES bytes of UTF-8.

        Raises ValueError if a name is left.
        """
        text = line.rstrip("\r\n").replace("\0", "")
        for pattern, new in self._patterns:
            text = pattern.sub(new, text)
        for pattern, _ in self._patterns:
            if pattern.search(text):
                raise ValueError(f"the filter leaves a name in a line: {pattern.pattern}")
        data = text.encode("utf-8", "replace")
        return data[:LONGEST_BYTES].decode("utf-8", "ignore") if len(data) > LONGEST_BYTES else text
