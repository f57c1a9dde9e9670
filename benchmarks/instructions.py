"""Instructions per record, which repeat on a busy machine. Without valgrind each is n/a."""

from contextlib import suppress
from itertools import product

from benchmarks.samples import BATCH_SIZES, FORMAT_NAMES, lacking, sample


class Instructions:
    """Count the instructions of kernels and NumPy that a record takes."""

    version = "2"
    params = (FORMAT_NAMES, BATCH_SIZES, ("encode", "decode"))
    param_names = ("format", "batch_size", "operation")
    unit = "instructions"

    def setup_cache(self):
        """Count all sets in one process, because valgrind takes some 20 s to start."""
        found = {}
        for name, batch_size, operation in product(*self.params):
            with suppress(NotImplementedError), lacking():
                from kfbench import instructions_per_record

                records = sample(batch_size).records
                found[name, batch_size, operation] = instructions_per_record(
                    name, operation, records, batch_size=batch_size
                )
        return found

    setup_cache.timeout = 3600

    def setup(self, found, *parameters):
        if parameters not in found:
            raise NotImplementedError

    def track_instructions(self, found, *parameters):
        return found[parameters]
