"""`python -m kfbench` is `kfbench`."""

import sys

from kfbench.cli import main

sys.exit(main())
