"""A turn among those that measure on this host: one is said to wait, and for whom, and does not wait for ever."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from kfbench.measure.host_lock import SomeoneMeasures, alone
from kfbench.sweep.run.wait_for_host import WAIT_S, waiting


@contextmanager
def turn(say: Callable[[str], None], patience_s: float = WAIT_S) -> Iterator[None]:
    """Raises NotAlone where nobody can ask for one, SomeoneMeasures after patience_s without."""
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(0))
        except SomeoneMeasures as why:
            say(waiting(why, patience_s))
            stack.enter_context(alone(patience_s))
        yield
