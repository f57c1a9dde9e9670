"""What a tool writes into a page: a block between two markers, in a page that is else written by hand."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent


@dataclass(frozen=True, kw_only=True)
class Block:
    """name: of what it holds; by: what writes it, for whoever is about to edit it."""

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
        """The page's text with this one between the markers, as far in as they are. SystemExit: they are not there."""
        marked = re.compile(rf"^( *){re.escape(self.begin)}\n.*?{re.escape(self.end)}", re.DOTALL | re.MULTILINE)
        found, count = marked.subn(lambda at: indent(f"{self.begin}\n{text}\n{self.end}", at[1]), page)
        if count != 1:
            raise SystemExit(f"{self.page.name}: the markers of the {self.name} are gone, or there twice")
        return found

    def write(self, text: str) -> None:
        self.page.write_text(self.spliced(self.page.read_text(encoding="utf-8"), text), encoding="utf-8")
