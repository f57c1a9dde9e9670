"""Write the fingerprints of the recorded logs and the named workloads into datasets/fingerprints.

    .venv/bin/python -m tools.fingerprints [NAME...]

A name is that of a recorded log or of a workload, such as `telemetry.log` or `kv-ycsb`. A workload has 4,000 records,
in v2 with lz4. CPU times differ from run to run. All else is the same for the same version of kfbench.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from kfbench.fingerprint.file import Fingerprint, to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.formats import FORMATS
from kfbench.shipped import DATASETS
from kfbench.workloads import WORKLOADS

FOLDER: Final = DATASETS / "fingerprints"
RECORDED: Final = {path.name: path for path in sorted((DATASETS / "recorded").glob("*.log"))}
NAMED: Final = tuple(name for name in WORKLOADS if name != "grid")
NAMES: Final = (*RECORDED, *NAMED)
RECORDS: Final = {"large-payload": 12}
MOST_RECORDS: Final = 4_000
SEED: Final = 3


def log_of(name: str, folder: Path) -> Path:
    """Return the recorded log, or write the log of a workload into `folder`."""
    if name in RECORDED:
        return RECORDED[name]
    sample = WORKLOADS[name].generate(records=RECORDS.get(name, MOST_RECORDS), seed=SEED)
    log = folder / f"{name}-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(bytes(FORMATS["v2"].encode(sample.records, sample.bounds, "lz4", batch_fields=sample.batch_fields)))
    return log


def fingerprint_of(name: str) -> Fingerprint:
    with tempfile.TemporaryDirectory() as folder:
        return fingerprint(log_of(name, Path(folder)), seed=0).fingerprint


def path_of(name: str) -> Path:
    kind = "recorded" if name in RECORDED else "workloads"
    return FOLDER / kind / f"{name.removesuffix('.log')}.json"


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        path_of(name).parent.mkdir(parents=True, exist_ok=True)
        path_of(name).write_bytes(to_json(fingerprint_of(name)))
        print(path_of(name), flush=True)


if __name__ == "__main__":
    main()
