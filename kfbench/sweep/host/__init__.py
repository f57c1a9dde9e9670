"""Prepare a host for a sweep: find Java, pack an archive for Spark executors, compile kernels."""
