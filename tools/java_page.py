"""Write the answer of docs/java.md from the stored runs of JMH: `make jmh` does, and `python -m tools.java_page`."""

from pathlib import Path
from textwrap import fill
from typing import Final

from kfbench.report.topics.second_opinion import JavaRun, front_sentence, load, verdict_sentence
from tools.block import Block

ANSWER: Final = Block(
    page=Path(__file__).resolve().parents[1] / "docs" / "java.md",
    name="answer",
    by="`make jmh` from datasets/second-opinion/jmh.json",
)
WIDTH: Final = 140
NOT_RUN: Final = "No run of the cells behind claims is stored."


def answer(run: JavaRun | None) -> str:
    """Return the answer for the cells behind claims. None: they are not stored."""
    if run is None:
        return NOT_RUN
    sentences = f"{front_sentence(run)} {verdict_sentence(run)}"
    return fill(f"{sentences} Measured on {run.measured}. The report's chapter on CPU has the ratios.", WIDTH)


def write_page() -> None:
    found = load()
    ANSWER.write(answer(found.claimed if found else None))


if __name__ == "__main__":
    write_page()
