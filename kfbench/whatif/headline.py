"""The first lines of the page of a what-if: sentences and numbers about the log now, and about what would help most."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kfbench.formats import BASE_FORMAT, SHIPPED
from kfbench.text import percent
from kfbench.whatif.answer import Arm, WhatIf
from kfbench.whatif.source import less_or_more, saving
from kfbench.whatif.summary import (
    NO_CHANGE,
    VARIES,
    Choice,
    best_choice,
    codec_words,
    dollars_of,
    new_format_arms,
    recorded_words,
)

MOST_NEW: Final = 2  # formats
UNITS: Final = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


class Card(NamedTuple):
    """A number of the page. link: the anchor of its evidence."""

    number: str
    words: str
    link: str


def lead_sentences(answer: WhatIf) -> Iterator[str]:
    """Yield what the log takes now, and what would help most."""
    now, best = dollars_of(answer), best_choice(answer)
    cost = "" if now is None else f", at {now:,.2f} US$ per month"
    subject = "The log takes" if len(answer.by_topic) == 1 else "All topics together take"
    yield f"{subject} {answer.base_bytes:,} bytes {answer.base_words}{cost}."
    saved = saving(best.size_bytes, answer.base_bytes)
    if saved < NO_CHANGE:
        yield "Of what Kafka can do today, nothing takes fewer bytes."
    else:
        about = "about " if best.error_bytes != 0 else ""
        yield f"Of what Kafka can do today, {_choice_words(answer, best)} saves most: {about}{percent(saved)}."
    for arm in _new_and_whole(answer)[:1]:
        share = answer.saving_against_v2(arm) or 0.0
        if share >= NO_CHANGE:
            yield f"A new format, {arm.format}, takes {percent(share)} less than {_base_words(arm)}."
            yield f"Against now, that is {_now_words(answer, arm)}."


def cards(answer: WhatIf) -> Iterator[Card]:
    """Yield up to six numbers: bytes and US$ now, the best of today, and the first new formats."""
    now, best = dollars_of(answer), best_choice(answer)
    yield Card(size_words(answer.base_bytes), answer.base_words, "#t-sources")
    if now is not None:
        yield Card(f"{now:,.2f}", "US$ per month now", "#t-today")
    saved = saving(best.size_bytes, answer.base_bytes)
    estimated = ", estimated" if best.error_bytes != 0 else ""
    yield Card(_change(saved), f"{_choice_words(answer, best)}: the best today{estimated}", "#t-today")
    then = dollars_of(answer, best)
    if now is not None and then is not None and saved >= NO_CHANGE:
        yield Card(f"{now - then:,.2f}", "US$ saved by it per month", "#t-today")
    for arm in _new_and_whole(answer)[:MOST_NEW]:
        words = f"{arm.format} against {_base_words(arm)}; {_now_words(answer, arm)} than now"
        yield Card(_change(answer.saving_against_v2(arm)), words, "#t-new-formats")


def _now_words(answer: WhatIf, arm: Arm) -> str:
    return less_or_more(saving(arm.size_bytes or 0, answer.base_bytes))


def _new_and_whole(answer: WhatIf) -> list[Arm]:
    """Return the arms of formats that Kafka does not have, and that lose nothing of this log."""
    return [arm for arm in new_format_arms(answer) if arm.format not in SHIPPED and not answer.losses.get(arm.format)]


def _choice_words(answer: WhatIf, choice: Choice) -> str:
    if not choice.is_other:
        return "as now"
    if choice.codec == VARIES:
        return "the best choice for each topic"
    codec = "no codec" if choice.codec == "none" else choice.codec
    return codec if choice.batches == recorded_words(answer) else f"{codec} in batches of {choice.batches}"


def _base_words(arm: Arm) -> str:
    return f"{BASE_FORMAT} without a codec" if arm.codec == "none" else f"{BASE_FORMAT} under {codec_words(arm)}"


def _change(saved: float | None) -> str:
    """Return a saved share as a change: -12.5 % with a true minus sign."""
    if saved is None or abs(saved) < NO_CHANGE:
        return "±0 %"
    return f"{'−' if saved > 0 else '+'}{percent(abs(saved))}"


def size_words(size_bytes: int) -> str:
    """Return a size with three significant digits: 999 B, 1.02 kB, 252 MB."""
    for unit_bytes, unit in UNITS:
        if size_bytes >= unit_bytes:
            size = size_bytes / unit_bytes
            return f"{size:.{2 if size < 10 else 1 if size < 100 else 0}f} {unit}"
    return f"{size_bytes} B"
