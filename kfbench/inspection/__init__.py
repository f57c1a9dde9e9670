"""The content of log segments for `kfbench inspect`: a summary, their batches, their records."""
