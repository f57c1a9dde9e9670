"""What stands in a report, in which order: each section a question, one computed sentence, figures, tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kfbench.claims import documents
from kfbench.report.data import noise
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.render.tables import Table, listed
from kfbench.report.sections import named, paths, research, sizes, times
from kfbench.report.sections.prose import Block, Prose
from kfbench.report.sections.section import Figure, Missing, Section, apart
from kfbench.report.topics import blocks, failures, reference, verdict
from kfbench.report.topics.workloads import Named

__all__ = ["Block", "Figure", "Missing", "Page", "Section", "page"]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report: the first screen, and the sections beneath it. table: who wins, and what v3 costs; costs: the CPU time
    of the winners."""

    lead: str
    table: Table | None
    figures: tuple[Figure, ...]
    costs: Table | None
    sections: tuple[Section, ...]


def page(results: Results, sweep: Sequence[Block], facts: noise.Facts | None = None) -> Page:
    """Everything that this run has rows for; the last section says what it has none for. facts: what its manifest says
    of its noise.

    First the questions that every run answers, each with the prose of the block that most of its rows come from; then
    the blocks that no question has used up, so that nothing that was measured and explained is left out.
    """
    prose = Prose(results, sweep)
    of_catalogue, of_broker = Named(results), Paths(results)
    verdicts = verdict.Verdicts(results, of_catalogue, of_broker)
    head, missing = apart([sizes.overhead(results, verdicts.told)])
    of_columnar = research.of_columnar(results, prose)  # before all: the texts of its blocks are about nothing else
    under_codecs = sizes.under_codecs(results, prose)  # before the maps: its block's text is about all of its rows
    asked: list[Section | Missing] = [
        *missing,
        named.by_class(verdicts),
        sizes.batch_size(results, prose),
        sizes.first_batch(results),
        sizes.smallest(results, prose),
        *sizes.one_by_one(results, prose),
        sizes.fields(results),
        under_codecs,
        times.against_bytes(results),
        *times.by_axis(results, prose),
        times.uncached(results, prose),
        times.of_peers(results),
        named.for_whom(results, of_catalogue, prose),
        named.of_a_fleet(results, prose),
        paths.prefix_of_a_batch(results, prose),
        paths.appended(of_broker, prose),
        paths.argued(of_broker),
        paths.converted(of_broker, prose),
        paths.migrated(of_broker),
        paths.kept(of_broker, prose),
        of_columnar,
    ]
    trust = times.trust(results, prose, facts)
    built = [each for each in asked if isinstance(each, Section)]
    built += [_block(results, block) for block in prose.left]
    built += [trust] if isinstance(trust, Section) else []
    built = [_with_cells(each) for each in built]
    is_untold = verdicts.apart and not verdicts.classes  # else the verdict's table says it
    beside = f"{listed(verdicts.apart)} has a section of its own." if is_untold else ""
    lacking = [each for each in (*asked, trust) if isinstance(each, Missing)]
    lacking += [each for section in built for each in section.missing]
    return Page(
        lead=" ".join(filter(None, (reference.sentence(results, verdicts.apart), verdict.sentence(verdicts), beside))),
        table=verdict.table(verdicts),
        figures=head,
        costs=verdict.cpu_table(verdicts),
        sections=(*built, _claims(), _failures(results, lacking, of_columnar)),
    )


def _with_cells(section: Section) -> Section:
    """Without tables that have nothing but the names of their rows."""
    return replace(
        section, tables=tuple(filter(_has_cells, section.tables)), more=tuple(filter(_has_cells, section.more))
    )


def _has_cells(table: Table) -> bool:
    """No dashes alone behind the names of the rows: of v2 beside no other format, or of a codec beside no plain bytes.
    A table of words has its words."""
    body = list(zip(*table.rows, strict=True))[1:]
    is_absent = [all(cell is None for cell in column) for column in body]
    has_numbers = any(not isinstance(cell, str | None) for column in body for cell in column)
    return bool(body) and (has_numbers or not any(is_absent))


def _block(results: Results, block: Block) -> Section:
    """A block on its own: its prose and the tables of its rows."""
    found = blocks.tables(results, block.name)
    return Section(
        name=f"block-{block.name}",
        short=block.title,
        title=block.title,
        means=blocks.sentence(found),
        prose=(block.analysis.strip(),),
        tables=tuple(table for table, _ in found),
    )


def _claims() -> Section:
    checked = [documents.table(name) for name in documents.CLAIMS]
    total = sum(len(each.rows) for each in checked)
    differing = sum(len(each.differing) for each in checked)
    return Section(
        name="claims",
        short="Published figures",
        title="Do the published figures hold?",
        means=f"{differing} of {total} figures in Kafka's own proposals differ from the bytes that the formats "
        "write; the reason stands beside each.",
        tables=tuple(each.to_table() for each in checked),
        wrap=True,
    )


def _failures(results: Results, missing: Sequence[Missing], of_columnar: Section | Missing) -> Section:
    apart = of_columnar.title if isinstance(of_columnar, Section) else None
    lacking = failures.missing_table([(each.what, each.why) for each in missing], apart)
    return Section(
        name="failures",
        short="What is missing",
        title="What is missing?",
        means=failures.sentence(results, len(missing)),
        tables=tuple(filter(None, (lacking, failures.table(results)))),
        wrap=True,
    )
