"""Default sizes of zstd dictionaries. docs/adr/0015 has the measurements."""

from typing import Final

SIZE_BYTES: Final = 32_768  # the largest size of a trained dictionary
RAW_BYTES: Final = 8_192  # the largest size of a raw dictionary
LEAST_TRAINING_BYTES: Final = 100_000  # of samples; with fewer a raw dictionary is made
