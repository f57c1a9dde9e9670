"""Sizes added up block by block equal the bytes written. A wrong size is found."""

from typing import Any

import numpy as np
import pytest

from kfbench.batches import BatchFields
from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.kinds.model import Modelled, resident_bytes, verify_model
from kfbench.measure.verify import Unverified
from kfbench.workloads import Sample
from kfbench.workloads.catalogue import WORKLOADS


def blocks(name: str, *starts: int, records: int) -> list[Sample]:
    return [WORKLOADS[name].generate(records=records, seed=3, start=start) for start in starts]


class Short(BatchedFormat):
    """A format whose size of the third batch is one byte too small."""

    def size(self, *args: Any, **options: Any) -> Any:
        sizes = super().size(*args, **options)
        sizes[2] -= 1
        return sizes


def test_sizes_that_are_not_those_of_the_bytes_are_refused() -> None:
    (block,) = blocks("user-activity", 0, records=300)
    given = block.records, block.bounds, block.batch_fields
    verify_model(FORMATS["v2"], *given)
    with pytest.raises(Unverified, match="for batch 2 at byte"):
        verify_model(Short(name="v2", magic=2, summary="short"), *given)


def test_batches_that_the_caller_has_described_are_sized_as_such() -> None:
    (block,) = blocks("user-activity", 0, records=300)
    fields = BatchFields(append_time_ms=np.full(len(block.bounds) - 1, 2**50))
    plain, late = Modelled(fmt=FORMATS["v3"]), Modelled(fmt=FORMATS["v3"])
    plain.add(block.shapes, block.bounds)
    late.add(block.shapes, block.bounds, fields)
    assert late.size_bytes > plain.size_bytes and late.batches == plain.batches == len(block.bounds) - 1


def test_a_process_holds_what_it_has_held() -> None:
    held = np.ones(80 << 20, np.uint8)
    most = resident_bytes()
    assert most > len(held)
    del held
    assert resident_bytes() >= most
