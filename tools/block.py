"""The block of a page, between two markers, that a tool writes. The rest of the page is written by hand."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block. name: its content; by: the command that writes it."""

    page: Path
    name: str
    by: str

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: written by {self.by}, do not edit -->"

    @property
    def end(self) -> str:
        return f"<!-- end of {self.name} -->"

    def spliced(self, page: str, text: str) -> str:
        """Return the page with this text between the markers, indented as they are. Raises SystemExit without them."""
        marked = re.compile(rf"^( *){re.escape(self.begin)}\n.*?{re.escape(self.end)}", re.DOTALL | re.MULTILINE)
        found, count = marked.subn(lambda at: indent(f"{self.begin}\n{text}\n{self.end}", at[1]), page)
        if count != 1:
            raise SystemExit(f"{self.page.name}: the markers of the {self.name} are missing or appear twice")
        return found

    def write(self, text: str) -> None:
        self.page.write_text(self.spliced(self.page.read_text(encoding="utf-8"), text), encoding="utf-8")
