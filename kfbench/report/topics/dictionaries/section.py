"""Build the sections about topic dictionaries, from the run's own rows or from those of a joined run."""

from typing import Final

from kfbench.report.data.dictionaries import GROUPS, KINDS, NAMED, Dictionaries, batches_words, group_of
from kfbench.report.data.views import Views
from kfbench.report.data.words import percent
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Texts
from kfbench.report.topics.dictionaries import cpu_tables, sentences, tables
from kfbench.report.topics.dictionaries.sentences import BASE
from kfbench.report.topics.dictionaries.tables import MEANS

CHAPTER: Final = "dictionaries"
NOT_IN_KAFKA: Final = "Kafka cannot do this today: no broker and no client reads it."
MISSING: Final = "no stored run of the profile dictionary; measure it with: kfbench sweep dictionary"


def bytes_answer(run: Views) -> Answer | str:
    found = run.dictionaries
    if found is None or not found.groups:
        return MISSING
    lead = sentences.lead(found)
    of_groups = [tables.topics_table(found, group) for group in found.groups]
    real = [table for group, table in zip(found.groups, of_groups, strict=True) if group is not NAMED]
    flattering = [table for group, table in zip(found.groups, of_groups, strict=True) if group is NAMED]
    return Answer(
        means=f"{NOT_IN_KAFKA} {sentences.headline_sentence(found)}",
        prose=(
            found.origin,
            " ".join(sentences.HOW),
            sentences.base_format_sentence(found),
            *((sentences.FLATTERING,) if flattering else ()),
        ),
        texts=_texts(found, "dictionary"),
        figures=(
            Figure(
                name="dictionaries",
                svg=plots.shares(tables.means_frame(found, lead), BASE),
                alt=f"Bytes relative to {BASE} by batch size. {sentences.headline_sentence(found)}",
                caption=f"Bytes on {lead.words}, relative to {BASE}. Hollow: without a dictionary. Geometric means.",
                numbers=MEANS,
            ),
        ),
        tables=(tables.means_table(found), *real),
        more=tuple(flattering),
    )


def losses_answer(run: Views) -> Answer | str:
    found = run.dictionaries
    if found is None or not found.gains:
        return MISSING
    return Answer(
        means=sentences.losses_sentence(found),
        prose=tuple(filter(None, (sentences.pays_sentence(found),))),
        tables=(tables.losses_table(found), tables.pays_table(found)),
    )


def sizes_answer(run: Views) -> Answer | str:
    found = run.dictionaries
    if found is None or not found.groups:
        return MISSING
    return Answer(
        means=sentences.size_sentence(found),
        prose=tuple(filter(None, (sentences.level_sentence(found), sentences.training_sentence(found)))),
        tables=(
            tables.sizes_table(found),
            tables.levels_table(found),
            tables.training_table(found),
        ),
    )


def cpu_answer(run: Views) -> Answer | str:
    found = run.dictionaries
    if found is None or not found.times:
        return MISSING
    return Answer(
        means=sentences.cpu_sentence(found),
        texts=_texts(found, "dictionary-cpu", "dictionary-broker"),
        tables=(cpu_tables.cpu_table(found),),
        more=(cpu_tables.cpu_topics_table(found), cpu_tables.cpu_levels_table(found)),
    )


def live_answer(run: Views) -> Answer | str:
    found = run.dictionaries
    if found is None or not found.live_times:
        return MISSING
    return Answer(
        means=sentences.live_sentence(found), prose=(sentences.NO_PAYLOADS,), tables=(cpu_tables.live_table(found),)
    )


def age_answer(run: Views) -> Answer | str:
    found = run.dictionaries
    if found is None or not found.ages:
        return MISSING
    present = {group_of(key.workload) for key in found.ages}
    first = next(group for group in GROUPS if group in present)
    return Answer(
        means=sentences.age_sentence(found), tables=(tables.age_table(found, first), tables.change_table(found))
    )


def card(run: Views) -> tuple[str, str] | None:
    """Return the headline of the front page: the change of bytes, and what it is of; None without rows."""
    found = run.dictionaries
    if found is None or not found.groups:
        return None
    lead, kind = sentences.lead(found), KINDS[-1]
    batch = sentences.headline_batch(found)
    mean = found.mean(kind, lead, batch)
    own = found.mean(KINDS[0], lead, batch)
    words = f"{kind.label} (research) against {BASE}: {lead.words}, {batches_words(batch)}"
    if own:
        words += f". {KINDS[0].label}: {percent(own - 1)}"
    return (percent(mean - 1), words) if mean else None


def _texts(found: Dictionaries, *kinds: str) -> Texts | None:
    """Select the explanations of the sweep's blocks, if the rows are the run's own."""
    return Texts(rows=found.rows[found.rows["kind"].isin(kinds)], of="any", titled=True) if found.is_own else None
