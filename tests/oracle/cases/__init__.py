"""The specs of all golden vectors, as data: a name, batches that Kafka writes, and steps that then change the bytes.

`vector` has the helpers of the other modules. Each other module covers one subject, with a function per category.
"""

from tests.oracle.cases.batches import control, empty, level, producer, segment
from tests.oracle.cases.compaction import compaction
from tests.oracle.cases.contents import basic, headers, nulls, offsets, size, timestamps, varint
from tests.oracle.cases.damage import corrupt
from tests.oracle.cases.downconversion import downconvert
from tests.oracle.cases.validation import LEADER, validate
from tests.oracle.cases.vector import Vector, batch, expand, record
from tests.oracle.cases.wrappers import wrapper

__all__ = ["LEADER", "Vector", "batch", "expand", "record", "vectors"]

CATEGORIES = (
    *(basic, size, nulls, timestamps, offsets, headers, producer, control, compaction, downconvert, validate),
    *(segment, level, empty, varint, wrapper, corrupt),
)


def vectors() -> list[Vector]:
    """Return all vectors, one category after another. Their names are unique."""
    found = [vector for category in CATEGORIES for vector in category()]
    names = [vector.name for vector in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return found
