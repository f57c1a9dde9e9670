"""Vector instructions that Numba has no name for, as LLVM IR. Most have a portable twin in `interpreted`."""
