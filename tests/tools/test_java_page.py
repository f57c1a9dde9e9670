"""The answer of docs/java.md is that of the stored runs of JMH."""

from kfbench.report.topics.second_opinion import SecondOpinion, load
from tools.java_page import ANSWER, NOT_RUN, answer


def test_the_page_is_up_to_date() -> None:
    found = load()
    page = ANSWER.page.read_text(encoding="utf-8")
    assert ANSWER.spliced(page, answer(found)) == page, "the answer is old: run `python -m tools.java_page`"


def test_without_the_cells_behind_claims_it_says_so() -> None:
    assert answer(None) == NOT_RUN == answer(SecondOpinion(claimed=None, every=None, older=()))
