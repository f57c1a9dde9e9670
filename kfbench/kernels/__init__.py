"""Numba kernels: compiled functions with plain loops over arrays.

One call handles many batches. Output arrays are the last arguments. Kernels allocate no memory.

- wire: what several formats share, such as varints, checksums and frames.
- simd: vector instructions as LLVM IR, most with an equivalent in plain Python (`interpreted`).
- formats: one module per record layout.
- broker: checks and changes that a broker makes to batches in place.
- workload: generation of records.

Encoding kernels trust their input, because `Records` has checked it. Reading kernels trust only the sizes of their
arrays. They check every length in the data before they use it.
"""

from kfbench.kernels.jit import CACHE_FOLDER, COMPILED, FAST_CRC, WIDE_CRC

__all__ = ["CACHE_FOLDER", "COMPILED", "FAST_CRC", "WIDE_CRC"]
