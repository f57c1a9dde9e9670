"""The peer kafka-protocol, a Rust library: RecordBatchEncoder writes, RecordBatchDecoder reads."""

from tools.peers.base.toolchains import RUST, starting

start = starting("kafka-protocol", RUST)
