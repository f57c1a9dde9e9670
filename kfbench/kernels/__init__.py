"""Numba kernels: bare loops over arrays, many batches a call, the output last, nothing allocated.

- wire: varints, checksums, frames: what several formats are made of.
- simd: vector instructions, as LLVM IR, with portable twins.
- formats: one module per record layout.
- broker: what a broker does to batches in place.
- workload: how records are generated.

Kernels that encode trust their input, which `Records` has checked. Kernels that read trust only the bounds of their
arrays. They check every length before they use it.
"""

from kfbench.kernels import broker, formats, wire, workload
from kfbench.kernels.jit import CACHE_FOLDER, COMPILED, FAST_CRC, WIDE_CRC

__all__ = ["CACHE_FOLDER", "COMPILED", "FAST_CRC", "WIDE_CRC", "broker", "formats", "wire", "workload"]
