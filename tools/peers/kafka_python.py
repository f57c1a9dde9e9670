"""The peer kafka-python, a Python client. Its record classes are written in Python."""

from tools.peers.base.python_client import starting

start = starting(
    "kafka-python",
    batches="kafka.record.default_records.DefaultRecordBatchBuilder",
    messages="kafka.record.legacy_records.LegacyRecordBatchBuilder",
    reader="kafka.record.memory_records.MemoryRecords",
)
