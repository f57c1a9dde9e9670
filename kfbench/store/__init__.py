"""Benchmark runs on disk. A run is a folder with `measurements/*.parquet` and `manifest.json`.

While a run is written, its manifest has the state `running`. At the end the manifest is replaced atomically, and has
the state `complete`. No report reads an interrupted run; `resume_run` continues it. Each Parquet file (a part) is
written atomically and never changed. Checksums of its pages detect damage to values; the schema detects damage to the
footer.

    part-00007.parquet       rows
    passing-00008.parquet    rows of errors that may be gone at the next try: `resume_run` deletes them
    part-00009.damaged       a part that `resume_run` could not read
"""

from kfbench.store.manifest import check_resumable
from kfbench.store.run import Run, open_run, sound_rows
from kfbench.store.writer import RunWriter, check_place, create_run, resume_run

__all__ = ["Run", "RunWriter", "check_place", "check_resumable", "create_run", "open_run", "resume_run", "sound_rows"]
