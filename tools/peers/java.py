"""The peer Apache Kafka: its own writer and reader in a JVM.

tools/java/KafkaArms.java is the program in the JVM.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kfbench.present.stored_times import KAFKA_FORMATS
from tools import jvm
from tools.builds import ToolError
from tools.peers.base.arm import Absent
from tools.peers.base.program import Program, running

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = (ROOT / "tools" / "java" / "KafkaArms.java",)
POM: Final = ROOT / "tests" / "oracle" / "pom.xml"
WARM_UP_S: Final = (2.0, 8.0)  # the JVM compiles during the warm-up


@contextmanager
def start() -> Iterator[Program]:
    """Run the JVM while the `with` body runs.

    Raises Absent if there is no JDK or Maven, if Maven cannot reach its registry, or if the JVM does not start.
    """
    with ExitStack() as stack:
        try:
            jars = jvm.fetched(POM)
            command = jvm.java("timing.KafkaArms", class_path=[jvm.compiled(SOURCES, jars), f"{jars}/*"])
            process = stack.enter_context(running(command, jvm.environment()))
            started = Program("Kafka's Java", KAFKA_FORMATS, WARM_UP_S, process, times_on_first_thread=False)
        except (ToolError, OSError) as error:
            raise Absent(str(error)) from None
        yield started
