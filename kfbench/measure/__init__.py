"""Measurement: from formats and records to rows of the result table. It is independent of workloads."""
