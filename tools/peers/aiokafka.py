"""The peer aiokafka, a Python client. Its record classes are written in Cython."""

from tools.peers.base.python_client import starting

start = starting(
    "aiokafka",
    batches="aiokafka.record._crecords.DefaultRecordBatchBuilder",
    messages="aiokafka.record._crecords.LegacyRecordBatchBuilder",
    reader="aiokafka.record._crecords.MemoryRecords",
)
