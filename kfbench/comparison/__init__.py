"""Compare two stored runs: exact columns byte for byte, CPU by interval against a threshold."""
