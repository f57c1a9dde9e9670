"""Topics that were recorded. They are not in `WORKLOADS`, because they end and have no seed."""
