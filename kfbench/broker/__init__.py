"""What a broker does with batches, one path a file: what it reads, writes, keeps in place, rewrites and loses."""

from kfbench.broker.work import Work

__all__ = ["Work"]
