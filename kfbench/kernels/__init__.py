"""Numba kernels: bare loops over arrays, many batches a call, the output last, nothing allocated.

Kernels that encode trust their input, which `Records` has checked. Kernels that read trust nothing but the bounds of
their arrays, and check every length before they use it.
"""

from kfbench.kernels._jit import CACHE_FOLDER, COMPILED, FAST_CRC, WIDE_CRC, cached_in_our_folder

with cached_in_our_folder():
    from kfbench.kernels import (
        append,
        batch,
        columnar,
        control,
        crc,
        draws,
        enriched,
        frames,
        header_fields,
        headers_first,
        keys,
        kinds,
        kip98,
        legacy,
        limit,
        linger,
        mirroring,
        partition,
        periods,
        rows,
        scan,
        shared_headers,
        strata,
        templates,
        waits,
    )

__all__ = [
    "CACHE_FOLDER",
    "COMPILED",
    "FAST_CRC",
    "WIDE_CRC",
    "append",
    "batch",
    "columnar",
    "control",
    "crc",
    "draws",
    "enriched",
    "frames",
    "header_fields",
    "headers_first",
    "keys",
    "kinds",
    "kip98",
    "legacy",
    "limit",
    "linger",
    "mirroring",
    "partition",
    "periods",
    "rows",
    "scan",
    "shared_headers",
    "strata",
    "templates",
    "waits",
]
