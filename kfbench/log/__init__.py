"""Real logs: segments of any format, mixed magics and any codec."""

from kfbench.log.segment import read_log
from kfbench.log.writing import write_log

__all__ = ["read_log", "write_log"]
