"""columnar: a record format of our own. Bit-packed columns of all records of a batch, then their payload."""
