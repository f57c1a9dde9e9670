"""Sessions, executors and tasks of Spark. Recipes and results travel by pickle and Arrow.

Importing this package without the extra `sweep` raises MissingExtra.
"""

from kfbench.extras import require_extra

require_extra("sweep")
