"""Numba kernels: bare loops over arrays, many batches a call, the output last, nothing allocated.

Kernels that encode trust their input, which `Records` has checked; kernels that read trust nothing but array bounds
that they check themselves.
"""

from kfbench.kernels._jit import CACHE_FOLDER, FAST_CRC, cached_in_our_folder

with cached_in_our_folder():
    from kfbench.kernels import crc

__all__ = ["CACHE_FOLDER", "FAST_CRC", "crc"]
