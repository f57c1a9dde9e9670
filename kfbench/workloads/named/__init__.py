"""Named workloads: the tables of a file, and the records that they describe."""
