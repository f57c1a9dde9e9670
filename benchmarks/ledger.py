"""The ledger (ledger.csv): bytes and instructions per record, which repeat exactly on a busy machine."""

from kfbench.measure.instructions import why_not_counted
from tools.ledger import LEDGER, NUMBERS, measure, read


class Track:
    """Bytes and instructions per record of the cells of the ledger."""

    params = (sorted(map(" ".join, read(LEDGER).lines)) if LEDGER.exists() else [], NUMBERS)
    param_names = ("cell", "number")
    timeout = 600

    def setup_cache(self):
        if reason := why_not_counted():
            raise NotImplementedError(reason)
        return {" ".join(key): numbers for key, numbers in measure().items()}

    def track_per_record(self, found, cell, number):
        if cell not in found:
            raise NotImplementedError
        return found[cell][NUMBERS.index(number)]
