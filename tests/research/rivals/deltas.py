"""Records with the deltas that a rival stores."""

from kfbench.records import Records


def relative(records: Records) -> Records:
    """Return the records with offsets and timestamps (ms) relative to the first record. They may be negative."""
    offsets = records.offsets - records.offsets[0]
    return records.at_offsets(offsets).at_times(records.timestamps_ms - records.timestamps_ms[0])
