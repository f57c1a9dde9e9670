"""Run functions on Spark: sessions, executors and tasks. Tasks and results are sent by pickle and Arrow.

Importing this package without the extra `sweep` raises MissingExtra.
"""

from kfbench.errors import require_extra

require_extra("sweep")
