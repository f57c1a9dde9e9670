"""Every refusal is one line on stderr with the place and the reason, has its exit status, and leaves no file behind."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from tests.cli.command import Run

# Names in capitals are files (`places`). Each command has a status, and what its line says, in parts between " … ".
REFUSALS: list[tuple[str, int, str]] = [
    ("no-such-command", 2, "no-such-command"),
    ("run", 2, "PROFILE"),
    ("formats --no-such-option", 2, "--no-such-option"),
    ("inspect", 2, "PATH"),
    ("verify smoke default", 2, "default"),
    ("verify --golden", 2, "--golden"),
    ("inspect -- --debug", 1, "kfbench: --debug: "),
    *(
        (f"{name} NOWHERE", 1, "NOWHERE … no such file")
        for name in ("inspect", "what-if", "migrate", "report", "run", "sweep", "verify")
    ),
    ("what-if LOG --format nope", 2, f"--format: 'nope' is not one of {', '.join(FORMATS)}"),
    ("what-if LOG --codec nope", 2, f"--codec: 'nope' is not one of {', '.join(CODECS)}"),
    ("what-if LOG --linger-ms -1", 2, "linger_ms: -1 is not 0 to 86400000"),
    ("what-if LOG --batch-size -1", 2, "batch_size_bytes: -1 is not 0 to"),
    ("what-if LOG --replication 0", 2, "replication: 0 is not 1 or more"),
    ("what-if LOG --price-network-gb nan", 2, "network_gb: nan is not 0 or more"),
    ("what-if LOG --rate-mb-s 0", 2, "rate_mb_s: 0 is not above 0"),
    ("what-if LOG --rate-mb-s nan", 2, "rate_mb_s: nan is not above 0"),
    ("what-if LOG --connector a:b:1", 2, "--connector: no source is a topic"),
    ("what-if LOG --table nope", 2, "--table: 'nope' is not one of all-topics, sources"),
    ("what-if LOG --timestamp-unit min", 2, "--timestamp-unit"),
    ("what-if LOG --key k", 1, "column `k`: no source is a table"),
    ("what-if LOG --value-json", 1, "--value-json: no source is a table"),
    ("what-if kafka://a:1/t --key k", 2, "a topic has no columns"),
    ("what-if kafka://a:1/t . --linger-ms 5", 2, "SOURCE: a topic is asked about alone"),
    ("what-if kafka://a/t --linger-ms 5", 2, "kafka://a/t: kafka://HOST:PORT[,HOST:PORT…]/TOPIC["),
    (
        "what-if kafka://a:1/t?from=7 --linger-ms 5",
        2,
        "from: earliest, latest or PARTITION:OFFSET,… is wanted",
    ),
    *(
        (f"what-if PRINT {option}", 2, f"{option.split()[0]}: a fingerprint has no {what}")
        for option, what in {
            "--linger-ms 5": "other batches",
            "--batch-size 16384": "other batches",
            "--codec zstd": "choice of codecs",
            "--all": "records",
            "--dictionary": "records",
            "--master local[1]": "records",
            "--seed 5": "records",
            "--timestamp-unit s": "records",
        }.items()
    ),
    ("what-if PRINT --value-json", 2, "a fingerprint has no columns"),
    ("what-if PRINT LOG", 2, "a fingerprint is asked about alone"),
    ("fingerprint LOG --out FOLDER/print.txt", 2, "must end in .json"),
    ("fingerprint LOG --out FOLDER/absent/print.json", 1, "FOLDER/absent: no such folder"),
    ("fingerprint LOG --out FOLDER/print.json --least-members 1", 2, "--least-members"),
    ("fingerprint kafka://a:1/t --out FOLDER/print.json", 2, "does not see batches"),
    ("fingerprint PRINT --out FOLDER/print.json", 1, "is a fingerprint"),
    ("migrate LOG --plan kip32", 2, "--plan: 'kip32' is not one of kip31, kip724, v3"),
    ("migrate LOG --codec brotli", 2, f"--codec: 'brotli' is not one of {', '.join(CODECS)}"),
    ("migrate LOG --plan kip31 --codec zstd", 2, "v0 has no zstd (codecs: none, gzip, snappy, lz4)"),
    ("migrate LOG --old-producers 1.5", 2, "old_producers: 1.5 is not 0 to 1"),
    ("migrate LOG --old-consumers -0.1", 2, "old_consumers: -0.1 is not 0 to 1"),
    ("migrate LOG --old-data nan", 2, "old_data: nan is not 0 to 1"),
    ("migrate LOG --canary-leaders many", 2, "--canary-leaders"),
    ("migrate LOG --fan-out -1", 2, "fan_out: -1.0 is not 0 or more"),
    ("migrate LOG --replication 0", 2, "replication: 0 is not 1 or more"),
    ("migrate LOG --replication 2.5", 2, "--replication"),
    ("migrate LOG --retention-days inf", 2, "retention_days: inf is not 0 or more"),
    ("migrate LOG --price-network-gb -1", 2, "network_gb: -1.0 is not 0 or more"),
    ("migrate kip31", 2, "kip31 is a plan: kfbench migrate --plan kip31"),
    ("run no-such-profile", 1, "no-such-profile"),
    ("sweep SWEEP --filter size=3", 2, "--filter: 'size=3': no column 'size' (columns: grid, kind, workload, codec, "),
    ("sweep SWEEP --filter kind=bytes --filter batch_size=7", 2, "kind=bytes and batch_size=7: none of the 2 cells"),
    ("sweep SWEEP --filter batch_size", 2, "--filter: 'batch_size': COLUMN=VALUE"),
    ("sweep SWEEP --cell-budget-s 0", 2, "--cell-budget-s: 0.0 is not above 0"),
    ("sweep SWEEP --cell-budget-s nan", 2, "--cell-budget-s: nan is not above 0"),
    ("sweep SWEEP --json", 2, "--json: only with --dry-run"),
    ("sweep SWEEP --resume FOLDER", 1, "FOLDER: not a run"),
    *((f"compare RUN RUN --threshold={share}", 2, "--threshold") for share in ("0", "1", "-0.1", "nan", "x")),
    ("compare RUN NOWHERE", 1, "NOWHERE: no such file or folder"),
    ("compare FOLDER RUN", 1, "FOLDER: not a run"),
    ("verify SWEEP --golden NOWHERE", 1, "NOWHERE"),
    ("table no-such-table", 2, "kip98"),
    ("workloads nothing", 2, "'nothing' is not one of "),
]


@pytest.fixture
def places(segment: Path, two_cells: Path, sizes: Callable[[int], Path]) -> dict[str, Path]:
    """Return the files that commands name: a log, a sweep, a fingerprint, a run, their folder, and an absent file."""
    folder = segment.parent
    fingerprint = folder / "fingerprint.json"
    fingerprint.write_text('{"kind": "kfbench fingerprint"}')
    named = {"LOG": segment, "SWEEP": two_cells, "PRINT": fingerprint, "FOLDER": folder, "NOWHERE": folder / "no.toml"}
    return named | {"RUN": sizes(1)}


@pytest.mark.parametrize(("command", "status", "words"), REFUSALS, ids=[command for command, *_ in REFUSALS])
def test_a_refusal_is_one_line(kfbench: Run, places: dict[str, Path], command: str, status: int, words: str) -> None:
    def named(text: str) -> str:
        return re.sub(r"\b[A-Z]+\b", lambda name: str(places.get(name[0], name[0])), text)

    before = {*places["FOLDER"].rglob("*")}
    line = kfbench(*map(named, command.split())).refused(status).lower()
    assert not [part for part in named(words).lower().split(" … ") if part not in line], line
    assert {*places["FOLDER"].rglob("*")} == before
