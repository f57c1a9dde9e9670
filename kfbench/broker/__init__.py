"""Operations of a broker: append, fetch, convert, upgrade, compact, mirror, seek, expire. One file each."""

from kfbench.broker.work import Work

__all__ = ["Work"]
