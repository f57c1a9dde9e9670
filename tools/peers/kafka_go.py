"""The peer kafka-go, segmentio's Go client: protocol.RecordSet writes and reads."""

from tools.peers.base.toolchains import GO, starting

start = starting("kafka-go", GO)
