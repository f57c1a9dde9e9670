"""Kernels that several formats share: varints, lengths, checksums, frames, error codes."""
