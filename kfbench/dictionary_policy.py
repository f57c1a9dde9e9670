"""Choose dictionaries along a topic, as a partition leader could: from the batches so far, never from later ones.

A decision is made at 32 and 64 KiB of records, at 100 KB and at each doubling, and when the saving falls. It
trains on older batches and compares the candidates on newer ones (held out):

- none: the batches without a codec.
- plain: zstd alone. A topic starts with it.
- old: the dictionary in use, and those that were in use before.
- raw: the end of the training batches, as a raw dictionary.
- trained: a dictionary trained on them, from 100 KB on.

A new dictionary must make the held-out batches smaller by `margin`, with its stored bytes charged over as many records
as there are so far.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.codecs import Dictionary
from kfbench.dictionary_sizes import LEAST_TRAINING_BYTES, RAW_BYTES, SIZE_BYTES
from kfbench.dictionary_training import raw_tail, samples
from kfbench.errors import InvalidDictionary
from kfbench.formats import Format
from kfbench.log import dictionary_batch
from kfbench.records import Records

NONE: Final = "none"
PLAIN: Final = "plain"
Choice = Dictionary | str  # a dictionary, NONE or PLAIN


@dataclass(frozen=True, kw_only=True)
class DictionaryPolicy:
    """The numbers of the policy. All sizes are of uncompressed batches, except those of dictionaries.

    Args:
        size_bytes: the largest size of a trained dictionary. raw_bytes: the same of a raw one.
        first_bytes: the size of the topic at the first decision. train_bytes: the size from which dictionaries are
            trained.
        most_bytes: a decision uses at most the newest batches of this size.
        held_out: the share of them that candidates are compared on.
        least_batches: the least number of batches to compare a new dictionary on.
        margin: the least share that a new dictionary must save.
        most_loss: a dictionary is stored only if the topic so far, with all that is stored, is then at most this share
            larger than under plain zstd. The first raw one is exempt.
        watch_bytes, watched: the saving is the mean of the last `watched` windows of `watch_bytes`.
        fall: a decision is made at once if the saving is this share below that of the last decision.
    """

    size_bytes: int = SIZE_BYTES
    raw_bytes: int = RAW_BYTES
    training_batch: int = 10
    first_bytes: int = 32 << 10
    train_bytes: int = LEAST_TRAINING_BYTES
    most_bytes: int = 4 << 20
    held_out: float = 0.25
    least_batches: int = 4
    margin: float = 0.03
    most_loss: float = 0.01
    watch_bytes: int = 16 << 10
    watched: int = 4
    fall: float = 0.2


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Neighbouring batches that were written with the same choice. first, end: batch numbers."""

    first: int
    end: int
    choice: Choice
    log: EncodedLog


@dataclass(kw_only=True)
class PolicyOutcome:
    """A topic as the policy writes it. dictionaries: those that it stored, in order."""

    stretches: list[Stretch] = field(default_factory=list)
    dictionaries: list[Dictionary] = field(default_factory=list)
    stored_bytes: int = 0  # of the control batches of the dictionaries

    @property
    def size_bytes(self) -> int:
        """The size of all batches, without the control batches."""
        return sum(len(each.log.data) for each in self.stretches)

    @property
    def switches(self) -> int:
        choices = [PLAIN, *(each.choice for each in self.stretches)]
        return sum(one != other for one, other in pairwise(choices))


def follow_policy(
    fmt: Format,
    records: Records,
    bounds: Int64,
    level: int | None = None,
    batch_fields: BatchFields = NO_FIELDS,
    policy: DictionaryPolicy | None = None,
) -> PolicyOutcome:
    """Write the batches of a topic in order with zstd, and change the dictionary as the policy says.

    bounds: int64[batches + 1], the batch boundaries. Raises IllegalCombination for a format without dictionaries.
    """
    return _Topic(fmt, records, bounds, level, batch_fields, policy or DictionaryPolicy()).write()


class _Topic:
    def __init__(
        self,
        fmt: Format,
        records: Records,
        bounds: Int64,
        level: int | None,
        batch_fields: BatchFields,
        policy: DictionaryPolicy,
    ) -> None:
        self.fmt, self.records, self.bounds, self.level, self.policy = fmt, records, bounds, level, policy
        self.batch_fields = batch_fields
        batches = len(bounds) - 1
        self.plain_sizes = np.diff(self.encode(0, batches, PLAIN).positions)
        self.bare_sizes = np.diff(self.encode(0, batches, NONE).positions)
        self.seen = np.append(0, np.cumsum(self.bare_sizes))
        self.outcome = PolicyOutcome()
        self.choice: Choice = PLAIN
        self.expected = 0.0  # the saving of the choice at the last decision
        self.savings: deque[float] = deque(maxlen=policy.watched)

    def encode(self, first: int, end: int, choice: Choice) -> EncodedLog:
        records = self.records.part(int(self.bounds[first]), int(self.bounds[end]))
        return self.fmt.encode(
            records,
            self.bounds[first : end + 1] - self.bounds[first],
            "none" if choice == NONE else "zstd",
            None if choice == NONE else self.level,
            self.batch_fields.part(first, end),
            lossy=True,
            dictionary=choice if isinstance(choice, Dictionary) else None,
        )

    def write(self) -> PolicyOutcome:
        decide_at, batches, first = self.policy.first_bytes, len(self.bounds) - 1, 0
        while first < batches:
            end = int(np.searchsorted(self.seen, min(self.seen[first] + self.policy.watch_bytes, decide_at)))
            end = min(max(end, first + 1), batches)
            log = self.encode(first, end, self.choice)
            self.outcome.stretches.append(Stretch(first=first, end=end, choice=self.choice, log=log))
            self.savings.append(1 - len(log.data) / int(self.plain_sizes[first:end].sum()))
            has_fallen = self.has_fallen()
            if has_fallen or self.seen[end] >= decide_at:
                self.decide(end, has_fallen)
            while decide_at <= self.seen[end]:
                decide_at = self.next_decision(decide_at)
            first = end
        return self.outcome

    def next_decision(self, decided_at: int) -> int:
        train = self.policy.train_bytes
        return train if decided_at < train < 2 * decided_at else 2 * decided_at

    def has_fallen(self) -> bool:
        if not isinstance(self.choice, Dictionary) or len(self.savings) < self.policy.watched:
            return False
        return sum(self.savings) / len(self.savings) < (1 - self.policy.fall) * self.expected

    def decide(self, now: int, has_fallen: bool) -> None:
        """Choose how the batches from `now` on are written.

        After a fall of the saving, candidates are compared on the newer half of the watched windows only. Older records
        may be of another kind.
        """
        oldest = int(np.searchsorted(self.seen, self.seen[now] - self.policy.most_bytes))
        window_bytes = self.seen[now] - self.seen[oldest]
        held_bytes = self.policy.held_out * window_bytes
        if has_fallen:
            held_bytes = min(held_bytes, self.policy.watch_bytes * self.policy.watched / 2)
        held = int(np.searchsorted(self.seen, self.seen[now] - held_bytes))
        held = min(held, now - 1)
        sizes: dict[Choice, float] = {
            NONE: int(self.bare_sizes[held:now].sum()),
            PLAIN: int(self.plain_sizes[held:now].sum()),
        }
        for old in self.outcome.dictionaries[-2:]:
            sizes[old] = len(self.encode(held, now, old).data)
        plain_bytes = sizes[PLAIN]
        best = min(sizes, key=lambda choice: (sizes[choice], choice != self.choice))
        charged_share = (self.seen[now] - self.seen[held]) / self.seen[now]
        least_bytes, adopted = (1 - self.policy.margin) * sizes[best], None
        for new in self.candidates(oldest, held, now):
            new_bytes = len(dictionary_batch(new, self.fmt).data)
            if not self.can_afford(new, now):
                continue
            size_bytes = len(self.encode(held, now, new).data)
            charged_bytes = size_bytes + charged_share * new_bytes
            if charged_bytes < least_bytes:
                least_bytes, adopted, sizes[new] = charged_bytes, new, size_bytes
        if adopted is not None:
            best = adopted
            self.outcome.dictionaries.append(adopted)
            self.outcome.stored_bytes += len(dictionary_batch(adopted, self.fmt).data)
        self.choice, self.expected = best, 1 - sizes[best] / plain_bytes
        self.savings.clear()

    def can_afford(self, new: Dictionary, now: int) -> bool:
        """Return True if the topic so far stays within `most_loss` after storing this dictionary."""
        if new.is_raw and not self.outcome.dictionaries:
            return True
        new_bytes = len(dictionary_batch(new, self.fmt).data)
        spent_bytes = self.outcome.size_bytes + self.outcome.stored_bytes + new_bytes
        return spent_bytes <= (1 + self.policy.most_loss) * int(self.plain_sizes[:now].sum())

    def candidates(self, oldest: int, held: int, now: int) -> list[Dictionary]:
        """Return new dictionaries that are made from the batches from `oldest` to `held` - 1.

        now: the number of batches so far.
        """
        if held <= oldest or now - held < self.policy.least_batches:
            return []
        past = self.records.part(int(self.bounds[oldest]), int(self.bounds[held]))
        taken, number = samples(past, self.fmt, self.policy.training_batch), len(self.outcome.dictionaries) + 1
        found: list[Dictionary] = []
        try:
            found.append(raw_tail(taken, self.policy.raw_bytes, number))
            if self.seen[now] >= self.policy.train_bytes:
                found.append(Dictionary.train(taken, self.policy.size_bytes, number))
        except InvalidDictionary:
            pass
        return found
