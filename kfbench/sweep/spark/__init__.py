"""Everything that knows Spark. Recipes and results travel by pickle and Arrow.

Importing it without the extra `sweep` raises MissingExtra, in place of an error about a module.
"""

from kfbench.extras import require_extra

require_extra("sweep")
