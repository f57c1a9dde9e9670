"""Kernels for the work of a broker: appending produce requests, compaction, and mirroring to another cluster."""
