"""Read and write log segments. A segment may mix formats and codecs."""

from kfbench.log.dictionaries import dictionary_batch
from kfbench.log.segment import read_log
from kfbench.log.writing import write_log

__all__ = ["dictionary_batch", "read_log", "write_log"]
