"""Benchmarks of kfbench's public interface for asv, which compares commits. docs/history.md says how to run them."""
