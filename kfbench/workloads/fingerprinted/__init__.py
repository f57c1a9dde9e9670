"""Workloads that are generated from a fingerprint (docs/fingerprint.md): its distributions, and records from them."""
