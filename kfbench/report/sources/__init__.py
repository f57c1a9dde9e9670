"""Rows that are computed by an algorithm: verdicts, winners, claims, migrations, noise. Declarations name them."""

from collections.abc import Callable, Mapping
from typing import Final

import pandas as pd

from kfbench.present.rows import Runs
from kfbench.report.sources.broker import convert_losses
from kfbench.report.sources.claims import broker_claims, claims
from kfbench.report.sources.clients import java_codecs, peer_differences, peers, second_opinion
from kfbench.report.sources.grid import break_even, field_groups, winners
from kfbench.report.sources.instructions import instructions
from kfbench.report.sources.migration import migration, migration_assumed, migration_break_even, migration_curve
from kfbench.report.sources.noise import aa, checks, control
from kfbench.report.sources.pareto import pareto
from kfbench.report.sources.verdict import verdict

SOURCES: Final[Mapping[str, Callable[[Runs], pd.DataFrame]]] = {
    each.__name__: each
    for each in (
        aa, break_even, broker_claims, checks, claims, control, convert_losses, field_groups, instructions,
        java_codecs, migration, migration_assumed, migration_break_even, migration_curve, pareto,
        peer_differences, peers, second_opinion, verdict, winners,
    )
}  # fmt: skip
