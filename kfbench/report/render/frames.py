"""The type of a table of stored rows."""

from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

if TYPE_CHECKING:
    Frame: TypeAlias = Any  # pandas-stubs type a cell as a union of thirty: checking against that checks nothing
else:
    Frame = pd.DataFrame
