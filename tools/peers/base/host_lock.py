"""Wait for the host lock, show who holds it, and give up after 30 minutes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from kfbench.measure.host_lock import WAIT_S, HostLockHeld, host_lock, waiting_line


@contextmanager
def holding_host(say: Callable[[str], None], patience_s: float = WAIT_S) -> Iterator[None]:
    """Hold the host lock. While waiting, show who holds it. Raises HostLockUnusable; HostLockHeld after patience_s."""
    with ExitStack() as stack:
        try:
            stack.enter_context(host_lock(0))
        except HostLockHeld as why:
            say(waiting_line(why, patience_s))
            stack.enter_context(host_lock(patience_s))
        yield
