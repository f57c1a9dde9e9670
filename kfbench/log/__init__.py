"""Log segments, read and written: mixed formats, any codec."""

from kfbench.log.segment import read_log
from kfbench.log.writing import write_log

__all__ = ["read_log", "write_log"]
