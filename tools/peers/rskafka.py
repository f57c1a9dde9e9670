"""The peer rskafka, a Rust client: protocol::record::RecordBatch writes and reads."""

from tools.peers.base.toolchains import RUST, starting

start = starting("rskafka", RUST)
