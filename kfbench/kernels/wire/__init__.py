"""Kernels that several record formats share: varints, lengths, checksums, bounds of batches, error codes."""
