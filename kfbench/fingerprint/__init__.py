"""A fingerprint of a log: the answer of `kfbench what-if` without names and payload, in a small file."""
