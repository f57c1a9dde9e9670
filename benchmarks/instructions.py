"""Instructions per record, which repeat exactly on a busy machine. Without valgrind each is n/a."""

from benchmarks.samples import BATCH_SIZES, FORMAT_NAMES, Prepared, sample


class Instructions(Prepared):
    """Count the instructions of kernels and NumPy that a record takes."""

    params = (FORMAT_NAMES, BATCH_SIZES, ("encode", "decode"))
    param_names = ("format", "batch_size", "operation")
    unit = "instructions"

    def prepare(self, name, batch_size, operation):
        from kfbench import instructions_per_record

        records = sample(batch_size).records
        self.found = instructions_per_record(name, operation, records, batch_size=batch_size)

    def track_instructions(self, *_):
        return self.found
