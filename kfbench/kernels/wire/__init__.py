"""Kernels that several formats share: varints, lengths, checksums, frames, error codes."""

from kfbench.kernels.wire import copy_and_crc, crc, frames

__all__ = ["copy_and_crc", "crc", "frames"]
