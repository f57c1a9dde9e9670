"""The vector instructions that kernels are compiled to, and those that this host has.

NUMBA_CPU_NAME and NUMBA_CPU_FEATURES let Numba compile for another processor than the host's. LLVM's name of a
processor implies features that are in no list. So the answer is read from the machine code of a small function.
"""

import re
from functools import lru_cache
from typing import Final

from llvmlite import binding

from kfbench.kernels.jit import COMPILED, CPU_FEATURES, CPU_NAME

INTERPRETED: Final = "none"  # the kernels run as plain Python
UNKNOWN: Final = "unknown"
_EIGHT_SUMS: Final = """
define void @sums(ptr %values) {
  %before = load <8 x i64>, ptr %values, align 8
  %after = add <8 x i64> %before, %before
  store <8 x i64> %after, ptr %values, align 8
  ret void
}
"""
_SIGNS: Final = (  # the first that is in the machine code
    ("AVX-512", r"%zmm"),
    ("AVX2", r"%ymm"),
    ("AVX", r"\bv\w+\s[^\n]*%xmm"),
    ("SSE2", r"%xmm"),
    ("SVE", r"\bz\d+\.d\b"),
    ("NEON", r"\.2d\b"),
)
VECTORS: Final = (*(name for name, _ in _SIGNS), UNKNOWN)


def kernel_vectors() -> str:
    """Return the widest vector instructions that kernels are compiled to, such as "AVX2"."""
    return vectors_for(CPU_NAME, CPU_FEATURES) if COMPILED else INTERPRETED


def host_vectors() -> str:
    """Return the widest vector instructions that this host has, whatever Numba is told to use."""
    return vectors_for(binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())


@lru_cache(maxsize=8)
def vectors_for(cpu_name: str, cpu_features: str) -> str:
    """Return the widest vector instructions that LLVM uses for a processor (LLVM's name, LLVM's list of features)."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(cpu=cpu_name, features=cpu_features, opt=3)
    code = machine.emit_assembly(binding.parse_assembly(_EIGHT_SUMS))
    return next((name for name, sign in _SIGNS if re.search(sign, code)), UNKNOWN)
