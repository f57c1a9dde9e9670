"""Kernels that generate records and their batches."""
