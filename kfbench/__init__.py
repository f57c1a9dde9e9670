"""kfbench: a benchmark of Kafka record formats. It measures their bytes and their CPU time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kfbench.batches import BatchFields, DecodedLog, EncodedLog
    from kfbench.codecs import CODECS, Dictionary
    from kfbench.dictionary_training import train_dictionary
    from kfbench.errors import KfbenchError
    from kfbench.formats import FORMATS
    from kfbench.limits import Limits
    from kfbench.log import read_log, write_log
    from kfbench.measure.bytes import compare
    from kfbench.measure.instructions import instructions_per_record
    from kfbench.records import Records, Shapes
    from kfbench.whatif.ask import what_if
    from kfbench.workloads import WORKLOADS

__version__ = "0.1.0"
__all__ = [
    "CODECS", "FORMATS", "WORKLOADS", "BatchFields", "DecodedLog", "Dictionary", "EncodedLog", "KfbenchError",
    "Limits", "Records", "Shapes", "compare", "instructions_per_record", "read_log", "train_dictionary", "what_if",
    "write_log",
]  # fmt: skip

# These names are imported on first use, so that `kfbench --help` compiles nothing.
_NAMES: Final = {
    "batches": ("BatchFields", "DecodedLog", "EncodedLog"),
    "codecs": ("CODECS", "Dictionary"),
    "dictionary_training": ("train_dictionary",),
    "errors": ("KfbenchError",),
    "formats": ("FORMATS",),
    "limits": ("Limits",),
    "log": ("read_log", "write_log"),
    "measure.bytes": ("compare",),
    "measure.instructions": ("instructions_per_record",),
    "records": ("Records", "Shapes"),
    "whatif.ask": ("what_if",),
    "workloads": ("WORKLOADS",),
}
_MODULE_OF: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kfbench' has no attribute {name!r}")
    value = getattr(import_module(f"kfbench.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
