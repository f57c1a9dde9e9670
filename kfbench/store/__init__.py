"""Runs on disk: `measurements/*.parquet` and `manifest.json`, written once and never overwritten.

A run is `running` in its manifest until everything is there. At the end the manifest is replaced in one step and says
`complete`. No report reads an interrupted run; `resume_run` continues it. Each part of the measurements is there in
whole or not at all. Checksums of its pages detect damage to its values; its schema detects damage to its footer.

    part-00007.parquet       rows
    passing-00008.parquet    rows of errors that another try may not have: `resume_run` drops them
    part-00009.damaged       a part that `resume_run` could not read
"""

from kfbench.store.manifest import check_resumable
from kfbench.store.parts import sound_rows
from kfbench.store.run import Run, open_run
from kfbench.store.writer import RunWriter, check_place, create_run, resume_run

__all__ = ["Run", "RunWriter", "check_place", "check_resumable", "create_run", "open_run", "resume_run", "sound_rows"]
