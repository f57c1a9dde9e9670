"""A fingerprint of a log: sums that answer `kfbench what-if` without the log's records."""
