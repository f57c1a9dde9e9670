"""Slow, plain codecs of every format, from the specification alone: a record at a time, struct and bytes.

They judge the kernels. So they share no code with kfbench, and use other compressors where there is a choice.
"""
