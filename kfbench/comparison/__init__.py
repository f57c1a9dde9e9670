"""Compare two stored runs: exact columns byte for byte, CPU times by their intervals and a threshold."""

from typing import Final

THRESHOLD: Final = 0.03  # the growth of a CPU ratio that is no regression, if nothing else is given
