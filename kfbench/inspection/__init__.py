"""Show the content of log segments for `kfbench inspect`: a summary, the batches, the records."""
