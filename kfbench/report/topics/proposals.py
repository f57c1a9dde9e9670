"""The section about claims of Kafka's proposals on broker work. A run's rows confirm or refute them.

All verdicts are computed. A claim holds if every case confirms it. A case is one workload and codec of the run in the
formats of the claim.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.paths import Paths
from kfbench.report.data.views import Views
from kfbench.report.section import Answer
from kfbench.report.topics import claim_checks
from kfbench.report.topics.claim_checks import Found
from kfbench.tables import Table, plain_columns

BY_CONSTRUCTION: Final = "by construction"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a proposal about the work of a broker.

    Args:
        source: the proposal.
        words: the claim.
        find: the function that checks the claim. Its result has no cases if the run lacks the rows.
        because: the explanation that is printed if the claim does not hold in every case.
        by_construction: True if the verification before the measurement already guarantees the claim.
    """

    source: str
    words: str
    find: Callable[[Paths], Found]
    because: str = ""
    by_construction: bool = False

    def verdict(self, found: Found) -> str:
        return f"yes, {BY_CONSTRUCTION}" if self.by_construction and found.verdict == "yes" else found.verdict


CLAIMS: Final = (
    Claim(
        source="KIP-31",
        words="Since the broker only needs to update the message-set header, there is no need to re-compress",
        find=claim_checks.kip31_bytes,
        because="inner offsets that are not 0, 1, 2, … are reassigned, which rewrites the set",
    ),
    Claim(
        source="KIP-31",
        words="Decompressing, assigning offsets and recompressing cause additional CPU cost, which this avoids",
        find=claim_checks.kip31_cpu,
        because="both decompress the set and check a CRC-32 per message",
    ),
    Claim(
        source="KIP-31",
        words="To a consumer that supports the format on disk the broker sends with zero-copy transfer",
        find=claim_checks.kip31_zero_copy,
        by_construction=True,
    ),
    Claim(
        source="Enriched metadata (KAFKA-527)",
        words="The broker only needs to set the wrapped message's offset: no decompression, no recompression",
        find=claim_checks.enriched_append,
        because="the broker must decompress the set to check its messages. It does not recompress the set",
    ),
    Claim(
        source="Enriched metadata (KAFKA-1001)",
        words="Where no message has a key, the mirror does not need to decompress",
        find=claim_checks.enriched_mirror,
    ),
    Claim(
        source="Enriched metadata (KAFKA-881, KAFKA-979)",
        words="Merging message sets just needs to remember the starting offset and to change the relative offsets",
        find=claim_checks.enriched_merge,
        because="relative offsets are inside the compressed set. To change one, the broker must recompress the set",
    ),
    Claim(
        source="Enriched metadata (KAFKA-881, KAFKA-979)",
        words="By an index of times the head of a segment can go that is not old enough as a whole",
        find=claim_checks.enriched_expire,
        because="no index entry is between the last old record and the first young one: the sets are few and large",
    ),
    Claim(
        source="KIP-98",
        words="A message set header of fixed size allows in-place offset and timestamp assignment on the broker",
        find=claim_checks.kip98_in_place,
        because="the other batches were rewritten",
    ),
    Claim(
        source="KIP-98",
        words="It is the fixed size that allows it",
        find=claim_checks.kip98_fixed,
        because="the variable field has the same number of bytes before and after, and nothing moves",
    ),
    Claim(
        source="KIP-931, additional proposal",
        words="To validate a compressed batch the broker has to decompress all of it",
        find=claim_checks.kip931_whole,
    ),
    Claim(
        source="KIP-931, additional proposal",
        words="With the headers of all messages first it decompresses the prefix only",
        find=claim_checks.kip931_prefix,
        because="a codec is decompressed in whole blocks, and the prefix ends in the last block",
    ),
    Claim(
        source="KIP-931, additional proposal",
        words="That is an optimization",
        find=claim_checks.kip931_cpu,
        because="where the prefix ends in the last block, nothing is saved. The CRC covers the whole batch either way",
    ),
    Claim(
        source="KIP-724",
        words="Up-conversion and (especially) down-conversion have measurable impact",
        find=claim_checks.kip724_down,
        because="down-conversion does not cost more than up-conversion there",
    ),
    Claim(
        source="KIP-724",
        words="To see whether a reader is too old takes an additional scan of the batches",
        find=claim_checks.kip724_scan,
    ),
    Claim(source="KIP-724", words="It does away with that scan", find=claim_checks.kip724_blind, by_construction=True),
    Claim(
        source="KIP-724",
        words="v2 is slightly less efficient than v0 and v1 when single record batches are used",
        find=claim_checks.kip724_single,
    ),
    Claim(
        source="KIP-931, why it was discarded",
        words="The benefits of the space savings outweigh the cost incurred for message conversion",
        find=claim_checks.kip931_discarded,
        because="it depends on the share of old consumers. The cost of conversions grows with it, the saving does not",
    ),
)


def proposals_table(paths: Paths) -> Table | None:
    """Return a table with a row per claim: the measured numbers over all workloads and codecs, and the verdict."""
    body = []
    for claim in CLAIMS:
        found = claim.find(paths)
        if found.truths:
            because = "" if found.verdict == "yes" else claim.because
            body.append((claim.source, claim.words, found.measured, claim.verdict(found), because))
    if not body:
        return None
    return Table(
        name="broker-claims",
        caption="The proposals' claims about a broker, and what this run measures: all its workloads and codecs",
        columns=plain_columns("proposal", "claim", "measured", "holds", "because"),
        rows=tuple(body),
        notes=(
            f"CPU time is less if the interval is below 1 and outside {BASE_FORMAT}'s ratios to itself.",
            "Conversions up and down were timed in different rounds. Their ratio must be outside these ratios.",
            f"{BY_CONSTRUCTION.capitalize()}: the path does so by design, and is verified before it is measured.",
        ),
    )


def proposals_sentence(found: Table) -> str:
    verdicts = [str(row[3]) for row in found.rows]
    right, wrong = sum(each.startswith("yes") for each in verdicts), verdicts.count("NO")
    built = sum(each.endswith(BY_CONSTRUCTION) for each in verdicts)
    return (
        f"Of {len(verdicts)} claims, {right} hold in every workload and codec of this run. "
        + (f"Of these, {built} hold {BY_CONSTRUCTION}. " if built else "")
        + f"Some cases confirm {len(verdicts) - right - wrong} claims, no case confirms {wrong}."
    )


def proposals_answer(run: Views) -> Answer | str:
    table = proposals_table(run.paths)
    if table is None:
        return "no broker path of a proposal"
    return Answer(means=proposals_sentence(table), tables=(table,), wrap=True)
