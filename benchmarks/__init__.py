"""asv benchmarks of kfbench's public interface. docs/history.md says how to run them."""
