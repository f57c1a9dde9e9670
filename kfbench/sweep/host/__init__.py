"""Prepare a host for a sweep: Java, packages for executors, compiled kernels."""
