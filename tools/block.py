"""Write the generated part of a documentation page, between two markers. The rest of the page is written by hand."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent


@dataclass(frozen=True, kw_only=True)
class Block:
    """The part of a page between two markers.

    Args:
        page: the file.
        name: a word for the content, which the markers show.
        by: the command that writes it, which the first marker shows.
    """

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
        """Return the text of the page with `text` between the markers. Indent `text` like the first marker.

        Raises SystemExit unless the page has the pair of markers exactly once.
        """
        marked = re.compile(rf"^( *){re.escape(self.begin)}\n.*?{re.escape(self.end)}", re.DOTALL | re.MULTILINE)
        found, count = marked.subn(lambda at: indent(f"{self.begin}\n{text}\n{self.end}", at[1]), page)
        if count != 1:
            raise SystemExit(f"{self.page.name}: the markers of the {self.name} are missing or appear twice")
        return found

    def write(self, text: str) -> None:
        self.page.write_text(self.spliced(self.page.read_text(encoding="utf-8"), text), encoding="utf-8")
