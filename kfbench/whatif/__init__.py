"""The answer of `kfbench what-if`: what a log would take in other formats, codecs and batches."""
