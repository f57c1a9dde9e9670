"""The peer franz-go, a Go client: the structs of kmsg write, kgo.ProcessFetchPartition reads."""

from tools.peers.base.toolchains import GO, starting

start = starting("franz-go", GO)
