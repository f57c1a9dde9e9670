"""Kernels that generate benchmark records, their arrival times and their division into batches."""
