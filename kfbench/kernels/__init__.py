"""Numba kernels: plain loops over arrays. One call handles many batches, outputs come last, nothing is allocated.

- wire: what several formats share, such as varints, checksums and frames.
- simd: vector instructions as LLVM IR, each with a portable twin.
- formats: one module per record layout.
- broker: what a broker does to batches in place.
- workload: generation of records.

Encoding kernels trust their input, because `Records` has checked it. Reading kernels trust only the bounds of their
arrays. They check every length before they use it.
"""

from kfbench.kernels.jit import CACHE_FOLDER, COMPILED, FAST_CRC, WIDE_CRC

__all__ = ["CACHE_FOLDER", "COMPILED", "FAST_CRC", "WIDE_CRC"]
