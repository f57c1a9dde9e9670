"""Build a whole report: its front page, and the sections of its chapters in the order of CHAPTERS."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from kfbench.measure.kinds import REMOVED_KINDS
from kfbench.report.data import noise
from kfbench.report.data.joined import Joined
from kfbench.report.data.named import NONE
from kfbench.report.data.results import Results
from kfbench.report.data.rivals import Rivals
from kfbench.report.data.views import NONE_JOINED, Views
from kfbench.report.section import Answer, Block, Figure, Missing, Section, drawn, not_drawn
from kfbench.report.topics import (
    axis,
    blocks,
    break_even,
    breakdown,
    broker_paths,
    claims,
    cold,
    compressed,
    control,
    conversions,
    cpu,
    failures,
    fleet,
    front,
    instructions,
    java,
    migration,
    pareto,
    prefix,
    proposals,
    reference,
    second_opinion,
    verdict,
    winners,
    workloads,
)  # fmt: skip
from kfbench.report.topics.columnar import section as columnar
from kfbench.report.topics.columnar.measured import NAME
from kfbench.report.topics.dictionaries import section as dictionaries
from kfbench.report.topics.front import Front
from kfbench.report.topics.rivals import section as rivals


class Entry(NamedTuple):
    """The definition of one section of the report.

    short: its name in the table of contents. title: its question. answer: a function that returns the content, or the
    reason why the run has none.
    """

    name: str
    short: str
    title: str
    answer: Callable[[Views], Answer | str]


class Chapter(NamedTuple):
    """A page of the report.

    Args:
        name: the name of its file, without `.html`.
        short: its name in the list of pages.
        title: its question.
        entries: the definitions of its sections, in their order.
    """

    name: str
    short: str
    title: str
    entries: tuple[Entry, ...]


def over_axis(name: str, short: str, title: str, axis_name: str) -> Entry:
    """Define a section about bytes along one axis, such as the key size."""
    return Entry(name, short, title, partial(axis.axis_answer, axis=axis_name, name=name))


def cpu_over_axis(name: str, short: str, title: str, axis_name: str) -> Entry:
    """Define a section about CPU time along one axis, such as the key size."""
    return Entry(name, short, title, partial(cpu.cpu_answer, axis=axis_name, name=name))


BYTES, COMPRESSION, CPU, TRUST = "bytes", "compression", "cpu", "trust"

# The chapters and their sections, in their order.
CHAPTERS: Final = (
    Chapter(
        BYTES,
        "Bytes",
        "What does a record cost in bytes?",
        (
            Entry("verdict", "Verdict", "Which format for which workload?", verdict.verdict_answer),
            Entry("classes", "Classes", "What stands behind the verdict?", verdict.classes_answer),
            Entry("workloads", "Workloads", "Which format wins for whom?", workloads.workloads_answer),
            Entry("batch-size", "Batch size", "What does a record cost, by batch size?", reference.batch_size_answer),
            Entry(
                "break-even",
                "Break-even",
                "From which batch size does a newer format pay?",
                break_even.break_even_answer,
            ),
            Entry(
                "break-even-map",
                "Break-even maps",
                "Which of v0 to v3 wins where batches and values change together?",
                winners.maps_answer,
            ),
            over_axis(
                "timestamp-spread", "Timestamps", "What does the spread of timestamps cost?", "timestamp_spread_ms"
            ),
            over_axis("key-size", "Keys", "What does the size of the key cost?", "key_bytes"),
            over_axis("value-size", "Values", "What does the size of the value cost?", "value_bytes"),
            over_axis("headers", "Headers", "What do record headers cost?", "headers"),
            over_axis("nulls", "Nulls", "What do null values cost?", "null_share"),
            over_axis("offset-holes", "Offset holes", "What do holes in the offsets cost?", "offset_stride"),
            over_axis(
                "base-timestamp", "Base timestamp", "What does the age of the base timestamp cost?", "base_timestamp_ms"
            ),
            Entry("fields", "Fields", "Where do the bytes go?", breakdown.fields_answer),
            Entry("fleet", "Fleet", "What does it say of a fleet?", fleet.fleet_answer),
        ),
    ),
    Chapter(
        COMPRESSION,
        "Compression",
        "What is left under compression?",
        (
            Entry("compressed", "Compression", "What is left of it under compression?", compressed.compressed_answer),
            Entry("pareto", "CPU against bytes", "What do bytes cost in CPU?", pareto.pareto_answer),
        ),
    ),
    Chapter(
        dictionaries.CHAPTER,
        "Dictionaries",
        "Half the bytes: what does a topic dictionary save?",
        (
            Entry("half", "Half the bytes", "What does a dictionary of a topic save?", dictionaries.bytes_answer),
            Entry(
                "half-losses", "Where it does not pay", "Where does a dictionary not pay?", dictionaries.losses_answer
            ),
            Entry(
                "half-size",
                "Size, level, training",
                "Which size and level, and what does training cost?",
                dictionaries.sizes_answer,
            ),
            Entry("half-cpu", "CPU", "What CPU does a dictionary take or save?", dictionaries.cpu_answer),
            Entry(
                "half-live", "Many dictionaries", "What if a process has many dictionaries?", dictionaries.live_answer
            ),
            Entry("half-age", "Ageing", "How fast does a dictionary age?", dictionaries.age_answer),
        ),
    ),
    Chapter(
        rivals.CHAPTER,
        "Rivals",
        "Why not Parquet, Arrow or Avro?",
        (
            Entry("rivals", "Bytes", "How many bytes do existing containers take?", rivals.bytes_answer),
            Entry("rivals-cpu", "CPU", "What do existing containers cost in CPU?", rivals.cpu_answer),
        ),
    ),
    Chapter(
        CPU,
        "CPU",
        "What does it cost in CPU?",
        (
            cpu_over_axis("cpu-batch-size", "CPU by batch", "What does it cost in CPU, by batch size?", "batch_size"),
            cpu_over_axis("cpu-value-size", "CPU by value", "What does it cost in CPU, by value size?", "value_bytes"),
            cpu_over_axis("cpu-key-size", "CPU by key", "What does it cost in CPU, by key size?", "key_bytes"),
            cpu_over_axis(
                "cpu-timestamp-spread",
                "CPU by timestamps",
                "What does it cost in CPU, by timestamp spread?",
                "timestamp_spread_ms",
            ),
            Entry(
                "instructions",
                "Instructions",
                "Which format takes fewer instructions, and is it faster?",
                instructions.instructions_answer,
            ),
            Entry("cpu-cold", "Cold CPU", "What does it cost in CPU where no cache has the data?", cold.cold_answer),
            Entry(
                "cpu-peers",
                "Peers",
                "What do other implementations take, and do they agree on which format is dearer?",
                java.peers_answer,
            ),
            Entry(
                "second-opinion",
                "Second opinion",
                "Does Java find the same CPU ratios for v3 and columnar?",
                second_opinion.second_opinion_answer,
            ),
            Entry(
                "prefix",
                "Prefix",
                "What does reading offsets and times from the prefix save, and what does it give up?",
                prefix.prefix_answer,
            ),
        ),
    ),
    Chapter(
        "broker",
        "Broker",
        "What does a broker pay?",
        (
            Entry("broker", "Append", "What does a format cost the broker?", broker_paths.append_answer),
            Entry("broker-convert", "Conversions", "What does a conversion cost?", conversions.conversions_answer),
            Entry(
                "broker-migrate",
                "Migration",
                "What does a migration cost, and when does it pay?",
                migration.migration_answer,
            ),
            Entry(
                "broker-keep",
                "Compaction, mirrors, seeks",
                "What does it cost to compact, mirror, seek and expire?",
                broker_paths.keep_answer,
            ),
        ),
    ),
    Chapter(
        "claims",
        "Proposals",
        "Do the proposals' figures hold?",
        (
            Entry("claims", "Published figures", "Do the published figures hold?", claims.claims_answer),
            Entry(
                "broker-claims",
                "Proposals",
                "Are the proposals right about the broker?",
                proposals.proposals_answer,
            ),
        ),
    ),
    Chapter(
        "floor",
        "Floor",
        "How low can a format go?",
        (Entry(NAME, NAME, f"{NAME}: how near to the floor can a format come?", columnar.columnar_answer),),
    ),
    Chapter(
        TRUST,
        "Trust",
        "Can these numbers be trusted?",
        (Entry("noise", "Noise", "How far can the CPU numbers be trusted?", control.noise_answer),),
    ),
)
# The text of a block is printed in one section only. These sections choose first: their blocks fit no other section.
FIRST_TEXTS: Final = (NAME, "compressed")


@dataclass(frozen=True, kw_only=True)
class Page:
    """The content of a report.

    Args:
        front: the sentences and cards of the front page.
        figures: the figures of the front page.
        sections: the sections of all chapters, in their order. `Section.chapter` names the chapter.
        rivals: the rows about rivals; None without such a run.
    """

    front: Front
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    rivals: Rivals | None

    @property
    def chapters(self) -> list[Chapter]:
        """The chapters that have a section."""
        return [chapter for chapter in CHAPTERS if self.of(chapter)]

    def of(self, chapter: Chapter) -> list[Section]:
        return [section for section in self.sections if section.chapter == chapter.name]

    def opening(self, chapter: Chapter) -> "Opening":
        """Return the head of a chapter: the answer of its first section, and its first figure."""
        sections = self.of(chapter)
        first = next((figure for section in sections for figure in section.figures), None)
        rest = [
            replace(section, figures=tuple(figure for figure in section.figures if figure is not first))
            for section in sections
        ]
        return Opening(sections[0].means, first, (replace(rest[0], means=""), *rest[1:]))


class Opening(NamedTuple):
    """The head of a chapter, and its sections without the head's answer and figure."""

    answer: str
    figure: Figure | None
    sections: tuple[Section, ...]


def page(
    results: Results,
    sweep: Sequence[Block],
    noise_facts: noise.Facts | None = None,
    profile: str = "default",
    joined: Mapping[str, Joined] = NONE_JOINED,
) -> Page:
    """Build the report. A section without any row in the run is left out, and the last section lists it.

    Args:
        results: the rows of the run.
        sweep: the blocks of the sweep. The text of a block is printed in the section that shows most of its rows. A
            block that no section shows gets its own section.
        noise_facts: the noise checks from the run's manifest.
        profile: the name of the run's sweep.
        joined: the runs of other profiles, by profile. One may be this run.
    """
    run = Views(results, noise_facts, joined)
    head = [reference.overhead_figure(results, run.verdicts.named_formats)]
    missing = [*not_drawn(head)]
    sections: list[Section] = []
    for chapter in CHAPTERS:
        for entry in chapter.entries:
            answer = entry.answer(run)
            if isinstance(answer, str):
                missing.append(Missing(what=entry.title, why=answer))
            else:
                sections.append(Section.of(chapter.name, *entry[:3], answer).with_command(profile))
    missing += [each for section in sections for each in section.missing]
    research = next((section.title for section in sections if section.name == NAME), None)
    failed = failures.failures_answer(results, missing, research)
    return Page(
        front=front.front(run),
        figures=drawn(head),
        sections=(
            *_with_texts(sections, results, sweep, profile),
            Section.of(TRUST, "failures", "What is missing", "What is missing?", failed),
        ),
        rivals=run.rivals,
    )


def _with_texts(sections: Sequence[Section], results: Results, sweep: Sequence[Block], profile: str) -> list[Section]:
    """Add the explanations of the sweep's blocks to the sections.

    A block (a set of measurements in the sweep's TOML) that fits no section gets a new section, unless kfbench no
    longer measures its kinds.
    """
    unused = {block.name: block for block in sweep}
    order = list(unused)
    texts: dict[str, list[Block]] = {}
    for section in sorted(sections, key=_text_rank):
        if section.texts is not None:
            names = section.texts.names(results.all, order)
            texts[section.name] = [unused.pop(name) for name in names if name in unused]
    of_blocks = [
        blocks.block_section(_chapter_of(results, block), results, block)
        for block in unused.values()
        if not _is_removed(results, block)
    ]
    return [
        *(section.with_blocks(texts.get(section.name, ())) for section in sections),
        *(section.with_command(profile) for section in of_blocks),
    ]


def _is_removed(results: Results, block: Block) -> bool:
    """Return True if all rows of a block are of kinds that kfbench no longer measures."""
    kinds = set(results.every.loc[results.every["grid"] == block.name, "kind"])
    return bool(kinds) and kinds <= REMOVED_KINDS.keys()


def _chapter_of(results: Results, block: Block) -> str:
    """Return the name of the chapter for a block that no section shows."""
    rows = results.all[results.all["grid"] == block.name]
    if (rows["kind"] == "cpu").any():
        return CPU
    return COMPRESSION if (rows["codec"] != NONE).any() else BYTES


def _text_rank(section: Section) -> int:
    return FIRST_TEXTS.index(section.name) if section.name in FIRST_TEXTS else len(FIRST_TEXTS)
