"""asv benchmarks: thin views over kfbench. Parameters are literal and only ever appended to, so histories go on."""
