"""Pages of the report that packages bring, found by entry points of the group `kfbench.views` (docs/plugins.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pandas as pd

from kfbench.plugins import Registry
from kfbench.present.rows import Runs

SourceFunction: TypeAlias = Callable[[Runs], pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class ViewPackage:
    """A page of the report: its declarations, and the functions that give rows to its tables.

    Args:
        name: of the page.
        path: the TOML file (`kfbench.present.declaration`). A joined profile is named by its page.
        sources: the name in `source` of a table -> the function that returns its rows.
    """

    name: str
    path: Path
    sources: Mapping[str, SourceFunction]


VIEWS: Final[Registry[ViewPackage]] = Registry("views", "VIEWS", ViewPackage)
