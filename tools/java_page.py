"""Write the answer of docs/java.md from the stored runs of JMH: `make jmh` does, and `python -m tools.java_page`."""

from pathlib import Path
from textwrap import fill
from typing import Final

from kfbench.report.topics.second_opinion import SecondOpinion, load, v3_sentence, verdict_sentence
from tools.block import Block

ANSWER: Final = Block(
    page=Path(__file__).resolve().parents[1] / "docs" / "java.md",
    name="answer",
    by="`make jmh` from datasets/second-opinion/jmh.json",
)
WIDTH: Final = 140
NOT_RUN: Final = "No run of the cells behind claims is stored."


def answer(found: SecondOpinion | None) -> str:
    """Return the answer for the cells behind claims. None: no run is stored."""
    if not found or not found.claimed:
        return NOT_RUN
    run = found.claimed
    paragraphs = [
        f"{v3_sentence(run)} {verdict_sentence(run)} Measured on {run.measured}.",
        *(v3_sentence(each) for each in found.older),
        "These cells are write and iterate without a codec, of 1 and 50 records. The report's chapter on CPU has all.",
    ]
    return "\n\n".join(fill(each, WIDTH, break_on_hyphens=False) for each in paragraphs)


def write_page() -> None:
    ANSWER.write(answer(load()))


if __name__ == "__main__":
    write_page()
