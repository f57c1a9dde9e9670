"""Slow codecs of every format, written from the specification alone, one record at a time.

Tests compare the kernels with them. They share no code with kfbench, and use other compression libraries if possible.
"""
