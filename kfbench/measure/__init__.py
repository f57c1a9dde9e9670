"""Measurement: formats and records in, rows of the result table out. Nothing here knows a workload."""
