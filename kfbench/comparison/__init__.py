"""Compare two stored runs: exact columns byte for byte, CPU times by their intervals and a threshold."""
