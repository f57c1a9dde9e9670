"""The answer of `kfbench migrate`: the cost of moving to another record format, phase by phase."""
