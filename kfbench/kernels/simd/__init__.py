"""Vector instructions that Numba has no name for, as LLVM IR, each with a portable twin."""
