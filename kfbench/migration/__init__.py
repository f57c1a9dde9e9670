"""The answer of `kfbench migrate`: what moving to another record format costs, phase by phase."""
