"""Run the command `kfbench` as `python -m kfbench`."""

import sys

from kfbench.cli import main

sys.exit(main())
