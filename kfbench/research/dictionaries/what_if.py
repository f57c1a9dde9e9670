"""The line and tables of topic dictionaries in a what-if. They import their parts late, for a quick --help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from kfbench.whatif.more import RecordSample, WhatIfTable

if TYPE_CHECKING:
    from kfbench.present.table import Table
    from kfbench.research.dictionaries.saving import DictionaryAnswer, TopicDictionary
    from kfbench.whatif.answer import WhatIf


class DictionaryTable(WhatIfTable):
    name = "dictionary"
    help = "Also show savings of topic dictionaries by size, level and batches."
    title = "With topic dictionaries"
    table_names = ("dictionary", "dictionary-details")

    @property
    def answer_type(self) -> type:
        from kfbench.research.dictionaries.saving import DictionaryAnswer

        return DictionaryAnswer

    def answer(self, sample: RecordSample, with_details: bool) -> DictionaryAnswer | None:
        from kfbench.formats import BASE_FORMAT
        from kfbench.research.dictionaries.saving import dictionary_answer

        if (BASE_FORMAT, "zstd") not in sample.arms:
            return None
        return dictionary_answer(sample.stretches, sample.topics, sample.formats, with_details)

    def line(self, found: WhatIf) -> str:
        from kfbench.research.dictionaries.saving_tables import dictionary_line

        return dictionary_line(found, found.more[self.name])

    def tables(self, found: WhatIf, recorded: str) -> Iterator[Table]:
        from kfbench.research.dictionaries.saving_tables import dictionary_tables

        return dictionary_tables(found.more[self.name], recorded)

    def to_dict(self, found: WhatIf) -> dict[str, Any]:
        from kfbench.research.dictionaries.saving_tables import dictionary_bytes, zstd_bytes
        from kfbench.whatif.answer import saving

        answer: DictionaryAnswer = found.more[self.name]
        savings = [
            asdict(each)
            | {
                "zstd_size_bytes": zstd_bytes(found, each),
                "size_bytes": dictionary_bytes(found, each),
                "saving": saving(dictionary_bytes(found, each), found.base_bytes),
                "saving_against_zstd": saving(dictionary_bytes(found, each), zstd_bytes(found, each)),
                "current_saving": each.current_saving,
            }
            for each in answer.savings
        ]
        details = [
            asdict(each) | {"saving_against_zstd": each.saving_against_zstd, "current_saving": each.current_saving}
            for each in answer.details
        ]
        topics = [asdict(each) | {"current": list(each.current)} for each in answer.topics]
        return asdict(answer) | {"savings": savings, "topics": topics, "details": details}

    def of_formats(self, answer: DictionaryAnswer, formats: Sequence[str]) -> DictionaryAnswer:
        return replace(
            answer,
            savings=tuple(each for each in answer.savings if each.format in formats),
            topics=tuple(each for each in answer.topics if each.format in formats),
        )

    def renamed(self, answer: DictionaryAnswer, topics: Mapping[str, str]) -> DictionaryAnswer:
        """Replace the topics' names, and the numbers of their dictionaries, which somebody chose."""

        def of_topic(each: TopicDictionary) -> TopicDictionary:
            return replace(each, topic=topics[each.topic], current=tuple(range(1, len(each.current) + 1)))

        order = list(topics.values()).index
        return replace(answer, topics=tuple(sorted(map(of_topic, answer.topics), key=lambda each: order(each.topic))))

    def topics(self, answer: DictionaryAnswer) -> set[str]:
        return {each.topic for each in answer.topics}


WHATIF_TABLES: Final = (DictionaryTable(),)
