"""The verdict: the smallest format for each class of workloads, and the CPU time of v3 and of the winners.

A class is a group of workloads of the catalogue, such as "Small batches".
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.arms import CPU_DIGITS, Band, ties
from kfbench.report.data.capability import is_our_own, lacking
from kfbench.report.data.class_times import TIMED
from kfbench.report.data.classes import Untimed, Verdict, Verdicts
from kfbench.report.data.named import NO_WORKLOADS, NONE, TIE, TIE_WITH_BASE, codec_words, under_words
from kfbench.report.data.shown_formats import NEW, OLD, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import cpu_range_sentence, lower_first, span
from kfbench.report.section import Answer
from kfbench.report.topics.workloads import without
from kfbench.tables import Cell, Column, Ranked, Table, listed, number

READING: Final = (
    "A class is a question that several workloads ask; their answers may differ. Bytes and CPU time are geometric "
    "means over these workloads, each with the same weight. The range of the workloads stands next to the mean. A "
    "format that cannot carry one of the workloads has no number. A CPU interval joins those of the workloads: it "
    "shows how far the rounds differ, and nothing about other workloads. The section Workloads has each workload."
)
LIMITED: Final = "†"  # marks a winner that cannot carry everything that v2 can
CLASS: Final = Column(name="workload class")
CPU_COLUMNS: Final = tuple(Column(name=each, unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS) for each in TIMED)


def verdict_table(verdicts: Verdicts) -> Table | None:
    """Return a table with a row per class of workloads: its winners and the bytes of each format.

    Return None if the run has no named workloads.
    """
    if not verdicts.classes:
        return None
    first = verdicts.codecs[0]
    others = [name for name in verdicts.shown if name != BASE_FORMAT]
    timed = TIMED if NEW in verdicts.shown and first == NONE else ()
    body: list[tuple[Cell, ...]] = []
    for each in verdicts.classes:
        sizes = each.under.get(first)
        body.append(
            (
                each.name,
                *(_winners(verdicts, each, codec) for codec in verdicts.codecs),
                sizes.of.get(BASE_FORMAT) if sizes else None,
                *(each.ratio(first, name) for name in others),
                *(_cpu(each, operation, NEW) for operation in timed),
            )
        )
    return Table(
        name="verdict",
        caption=f"Which format for which workload ({codec_words(first)}): bytes"
        + (f", and CPU time of {NEW}," if timed else "")
        + f" against {BASE_FORMAT}",
        columns=(
            CLASS,
            *(Column(name="winner", unit=codec_words(codec)) for codec in verdicts.codecs),
            Column(name=BASE_FORMAT, unit="bytes", digits=1),
            *(Column(name=name, unit=f"× {BASE_FORMAT}", digits=3) for name in others),
            *(Column(name=f"{NEW} {each}", unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS) for each in timed),
        ),
        rows=tuple(body),
        notes=tuple(_notes(verdicts)),
    )


def costs_table(verdicts: Verdicts) -> Table | None:
    """Return a table of the CPU time of the winners (the smallest formats) of each class of workloads, without a codec.

    Return None if no format but v2 wins.
    """
    rows = [(each, name) for each in verdicts.classes for name in each.smaller(NONE)]
    if not rows:
        return None
    return Table(
        name="verdict-cpu",
        caption=f"What the winners cost: CPU time without a codec, relative to {BASE_FORMAT}",
        columns=(CLASS, Column(name="winner", unit=codec_words(NONE)), *CPU_COLUMNS),
        rows=tuple(
            (each.name, _marked(verdicts, name), *(_cpu(each, operation, name) for operation in TIMED))
            for each, name in rows
        ),
        notes=tuple(_cpu_notes(verdicts)),
    )


def _winners(verdicts: Verdicts, each: Verdict, codec: str) -> str | None:
    if codec in each.under and each.under[codec].is_tie:
        return TIE_WITH_BASE
    return listed([_marked(verdicts, name) for name in each.winners(codec)]) or None


def _marked(verdicts: Verdicts, name: str) -> str:
    return f"{name} {LIMITED}" if name in verdicts.limits else name


def _notes(verdicts: Verdicts) -> Iterator[str]:
    first, *packed = verdicts.codecs
    elsewhere = f" In a section of its own: {listed(verdicts.research_formats)}." if verdicts.research_formats else ""
    yield (
        f"Compared: {listed(verdicts.formats)}.{elsewhere} No other was measured on these workloads. Winner: the "
        f"fewest bytes of those that lose nothing. Formats within {100 * TIE:.0f} % share the place. With "
        f"{BASE_FORMAT} among them it is a tie."
    )
    for note in verdicts.limits.values():
        yield f"{LIMITED} {note}"
    for name in filter(is_our_own, verdicts.named_formats):
        yield f"{name} is this project's own, in no proposal's text: {FORMATS[name].summary}."
    yield from filter(None, (_packed(verdicts, codec, first) for codec in packed))
    if verdicts.lost:
        losing = listed([f"{name} ({listed(what)})" for name, what in verdicts.lost.items()])
        yield f"Not compared in classes where it loses something of the records: {losing}."
    for why, names, classes in verdicts.absent:
        nothing = f" Without {BASE_FORMAT} nothing is compared." if BASE_FORMAT in names else ""
        yield f"No bytes of {listed(names)} for {_which(verdicts, classes)}. Reason: {why}.{nothing}"
    for codec, classes in verdicts.alone.items():
        why = f"no format but {BASE_FORMAT} that loses nothing"
        yield f"No winner ({codec_words(codec)}) for {_which(verdicts, classes)}: {why}."
    if NEW in verdicts.shown and first == NONE:
        yield _tie_note(verdicts)
        in_costs_table = _untimed_winners(verdicts)
        untimed = [each for each in verdicts.untimed(lambda _: [NEW]) if each not in in_costs_table]
        yield from _untimed_notes(verdicts, untimed, f" of {NEW}")


def _cpu_notes(verdicts: Verdicts) -> Iterator[str]:
    yield f"Classes that {BASE_FORMAT} wins or ties are left out. {_tie_note(verdicts)}"
    for codec in verdicts.codecs:
        more = {
            each.name: [name for name in each.smaller(codec) if name not in each.smaller(NONE)]
            for each in verdicts.classes
        }
        if names := in_order(name for found in more.values() for name in found):
            where = _which(verdicts, [each for each, found in more.items() if found])
            why = (
                f"They were not timed under {codec}"
                if codec not in verdicts.timed_under
                else "Their times are in other tables of this report"
            )
            yield f"Winners under {codec} only are left out: {listed(names)} for {where}. {why}."
    yield from _untimed_notes(verdicts, _untimed_winners(verdicts))


def _untimed_winners(verdicts: Verdicts) -> list[Untimed]:
    return verdicts.untimed(lambda each: each.smaller(NONE))


def _untimed_notes(verdicts: Verdicts, untimed: Sequence[Untimed], of: str = "") -> Iterator[str]:
    for each in untimed:
        yield f"No {listed(each.operations)}{of} for {_which(verdicts, each.classes)}. Reason: {each.why}."


def _packed(verdicts: Verdicts, codec: str, plain: str) -> str:
    """Return a note about a codec: shown formats that cannot use it, and classes in which it makes the bytes larger.

    In these classes, the smallest format takes more bytes with the codec than without.
    """
    name = codec.partition(" ")[0]
    without = [each for each in verdicts.shown if name in lacking(each, BASE_FORMAT)]
    sentences = [f"{listed(without)} {'has' if len(without) == 1 else 'have'} no {name}."] if without else []
    sentences += [
        f"For {lower_first(each.name)}, {codec} takes the smallest from {_least(each, plain)} to {_least(each, codec)}."
        for each in verdicts.classes
        if _is_larger(each, codec, plain)
    ]
    return " ".join(sentences)


def _least(each: Verdict, codec: str) -> str:
    """Return the bytes per record of the smallest format that loses nothing, for example: 101.9 bytes (v1)."""
    whole = each.under[codec].whole
    name = min(whole, key=lambda name: whole[name])
    return f"{number(whole[name], 1)} bytes ({name})"


def _is_larger(each: Verdict, codec: str, than: str) -> bool:
    """Return True if the smallest format takes over TIE (1 %) more bytes under `codec` than under `than`."""
    one, other = (each.under[name].whole.values() if name in each.under else () for name in (codec, than))
    return bool(one and other) and min(one) > min(other) * (1 + TIE)


def _tie_note(verdicts: Verdicts) -> str:
    if not verdicts.noise:
        return "A CPU interval that holds 1 is a tie."
    return (
        "A CPU interval that holds 1 or reaches into the noise is a tie. "
        f"The noise is the middle 95 % of {BASE_FORMAT} against itself by class. It is {_zones(verdicts)}."
    )


def _zones(verdicts: Verdicts) -> str:
    """Return the noise per operation as text, for example: 0.98–1.02 (encode) and 0.85–1.22 (append)."""
    return listed(
        [
            f"{number(low, CPU_DIGITS)}–{number(high, CPU_DIGITS)} ({operation})"
            for operation, (low, high) in verdicts.noise.items()
        ]
    )


def _which(verdicts: Verdicts, classes: Sequence[str]) -> str:
    return "any class" if len(classes) == len(verdicts.classes) else listed([lower_first(name) for name in classes])


def detail_table(verdicts: Verdicts) -> Table:
    """Return a table with a row per class of workloads and format: bytes under each codec and CPU time.

    Next to each mean is the range over the workloads of the class.
    """
    columns = [CLASS, Column(name="format", swatch=True)]
    for codec in map(codec_words, verdicts.codecs):
        columns += [Column(name=codec, unit="bytes", digits=1), Column(name=codec, unit=f"× {BASE_FORMAT}", digits=3)]
        columns.append(Column(name=f"{codec}, least–most"))
    for operation in TIMED:
        columns.append(Column(name=operation, unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS))
        columns.append(Column(name=f"{operation}, least–most"))
    columns.append(Column(name="bytes", unit=codec_words(verdicts.codecs[0])))
    body: list[tuple[Cell, ...]] = []
    for each in verdicts.classes:
        for name in verdicts.formats:
            if not any(name in sizes.of for sizes in each.under.values()):
                continue
            cells: list[Cell] = []
            for codec in verdicts.codecs:
                sizes = each.under.get(codec)
                cells += [sizes.of.get(name) if sizes else None, each.ratio(codec, name)]
                cells.append(None if name == BASE_FORMAT else _span(each, each.span(codec, name), 3))
            for operation in TIMED:
                time = each.cpu.get((operation, name))
                cells += [_cpu(each, operation, name), _span(each, time.ends if time else None, CPU_DIGITS)]
            body.append((each.name, name, *cells, _word(each, name, verdicts.codecs[0])))
    return Table(
        name="verdict-formats",
        caption=f"Every format of every class: bytes per record and CPU time, relative to {BASE_FORMAT}",
        columns=tuple(columns),
        rows=tuple(body),
        notes=("Least–most: the range of the workloads' medians. A class of one workload has none.",),
    )


def _span(each: Verdict, ends: Band | None, digits: int) -> Cell:
    if ends is None or len(each.workloads) == 1:
        return None
    return Ranked(f"{number(ends.low, digits)}–{number(ends.high, digits)}", ends.low)


def _cpu(each: Verdict, operation: str, name: str) -> Cell:
    is_timed = any(timed == operation for timed, _ in each.cpu)
    found = each.cpu.get((operation, name))
    return 1.0 if name == BASE_FORMAT and is_timed else found.mean if found else None


def _word(each: Verdict, name: str, codec: str) -> str:
    sizes = each.under.get(codec)
    if sizes is None or name not in sizes.of:
        return ""
    if sizes.lost[name]:
        return f"without {listed(sizes.lost[name])}"
    if sizes.is_tie:
        return "tie" if name in sizes.smallest_whole else ""
    return "smallest" if name in sizes.winners else ""


def classes_table(verdicts: Verdicts) -> Table:
    """Return a table of the workloads of each class, and of v2's CPU time relative to itself (A/A)."""
    return Table(
        name="verdict-classes",
        caption=f"The workloads of each class; over them CPU time of {BASE_FORMAT} against itself",
        columns=(CLASS, Column(name="records per batch"), Column(name="workloads"), *CPU_COLUMNS),
        rows=tuple(
            (each.name, each.records_per_batch, listed(each.workloads), *(each.again.get(name) for name in TIMED))
            for each in verdicts.classes
        ),
    )


def verdict_sentence(verdicts: Verdicts) -> str:
    """Give the bytes of v3 relative to v2 over all workloads, and the number of workloads that v0 or v1 wins."""
    sentences = []
    for codec in verdicts.codecs:
        ratios = [ratio for each in verdicts.workloads(codec) if (ratio := each.ratio(NEW)) is not None]
        if ratios:
            where = under_words(codec).capitalize()
            sentences.append(f"{where}, {NEW}'s bytes are {span(ratios, 3)} × {BASE_FORMAT}'s by workload.")
        if larger := sum(ratio > 1 + TIE for ratio in ratios):
            sentences.append(f"They are more by over {100 * TIE:.0f} % in {larger} of {len(ratios)} workloads.")
    found = verdicts.workloads(verdicts.codecs[0])
    where = under_words(verdicts.codecs[0]).capitalize()
    for name in reversed(OLD) if sentences else ():
        if wins := sum(name in each.winners for each in found):
            sentences.append(f"{where}, {name} is the smallest in {wins} of {len(found)}.")
        if losing := [each for each in found if name in each.at_a_loss]:
            lost = without(losing, name).partition(", without ")[2]
            sentences.append(f"{where}, {name} is smaller still in {len(losing)} of {len(found)}, but loses {lost}.")
    return " ".join(sentences)


def cost_sentence(verdicts: Verdicts) -> str:
    """Give the range of CPU time relative to v2 for the winners (the smallest formats) without a codec."""
    sentences = []
    for operation in TIMED:
        times = [
            time.mean.median
            for each in verdicts.classes
            for name in each.smaller(NONE)
            if (time := each.cpu.get((operation, name)))
        ]
        if times:
            sentences.append(cpu_range_sentence("the winners", operation, times, under_words(NONE)))
    return " ".join(sentences)


def cpu_sentence(verdicts: Verdicts) -> str:
    """Count the classes in which v3 takes more CPU time than v2, those in which it takes less, and the ties.

    A ratio counts as a difference if its interval does not contain 1, and does not overlap the noise. The noise is the
    middle 95 % of v2's ratios to itself (A/A).
    """
    sentences = []
    for operation in TIMED:
        ratios = [time.mean for each in verdicts.classes if (time := each.cpu.get((operation, NEW)))]
        different = [ratio.median for ratio in ratios if not ties(ratio, verdicts.noise.get(operation))]
        for word, medians in (
            ("more", [median for median in different if median > 1]),
            ("less", [median for median in different if median < 1]),
        ):
            if medians:
                times = f"{span(medians, CPU_DIGITS)} ×"
                sentences.append(
                    f"To {operation}, {NEW} takes {word} CPU in {len(medians)} of {len(ratios)} classes ({times})."
                )
        if tied := len(ratios) - len(different):
            sentences.append(f"To {operation}, it ties with {BASE_FORMAT} in {tied}.")
    return " ".join(sentences)


def verdict_answer(run: Views) -> Answer | str:
    verdicts = run.verdicts
    if not verdicts.classes:
        return NO_WORKLOADS
    return Answer(means=verdict_sentence(verdicts), tables=(verdict_table(verdicts), costs_table(verdicts)))


def classes_answer(run: Views) -> Answer | str:
    verdicts = run.verdicts
    if not verdicts.classes:
        return NO_WORKLOADS
    return Answer(
        means=" ".join(filter(None, (cpu_sentence(verdicts), cost_sentence(verdicts)))),
        prose=(READING,),
        tables=(classes_table(verdicts), detail_table(verdicts)),
    )
