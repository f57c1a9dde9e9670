"""The answer of `kfbench what-if`: the size of a log in other formats, codecs and batches."""
