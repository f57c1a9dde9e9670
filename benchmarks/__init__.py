"""asv benchmarks: thin views over kfbench. Parameters are literal and only ever appended to, so histories go on."""

import sys
from pathlib import Path

# asv imports every module here, those that print figures too, where kfbench is installed and `tools` is not.
sys.path.append(str(Path(__file__).parents[1]))
