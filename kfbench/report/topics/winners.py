"""The section with maps: the smallest of v0 to v3 for each batch size and value size, and how much it saves.

Only formats that lose nothing of the records are compared. The others are named next to them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import lost_of
from kfbench.report.data.axes import AXES, level, setting, with_settings
from kfbench.report.data.capability import limits
from kfbench.report.data.named import BEST_KNOWN, NONE, TIE, smaller_than_all, under_words
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import codecs_of
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.tables import Cell, Column, Ranked, Table, listed, number

DOWN, ACROSS = "batch_size", "value_bytes"


@dataclass(frozen=True, kw_only=True)
class Win:
    """One cell of a map: a batch size and a value size.

    Args:
        winners: the smallest format that loses nothing, then the formats that are at most TIE (1 %) larger.
        saving: the bytes that the smallest format saves, as a share of v2's bytes.
        at_a_loss: formats that lose something and are more than TIE (1 %) smaller than every format that loses nothing.
        ratios: format -> bytes relative to v2.
    """

    batch_size: int
    value_bytes: int
    winners: tuple[str, ...]
    saving: float
    at_a_loss: tuple[str, ...]
    ratios: Mapping[str, float]

    @property
    def is_tie(self) -> bool:
        """True if v2 and at least one other format are the smallest."""
        return BASE_FORMAT in self.winners and len(self.winners) > 1

    @property
    def words(self) -> str:
        """The text of the cell, for example: "v3 −23.7 %", "v2" or "tie"."""
        if self.is_tie or self.winners[0] == BASE_FORMAT:
            return "tie" if self.is_tie else BASE_FORMAT
        return f"{self.winners[0]} −{100 * self.saving:.{0 if self.saving >= 0.1 else 1}f} %"


@dataclass(frozen=True, kw_only=True)
class Map:
    """The map of the smallest formats under one codec.

    Args:
        codec: codec and level in words.
        rows: the sizes that the map is made from.
        fixed: the values of the other axes.
        lost: format -> the fields that it could not carry.
        wins: the cells of the map.
    """

    codec: str
    rows: pd.DataFrame
    fixed: Mapping[str, Any]
    formats: tuple[str, ...]
    lost: Mapping[str, tuple[str, ...]]
    wins: tuple[Win, ...]

    @cached_property
    def by_cell(self) -> dict[tuple[int, int], Win]:
        return {(each.batch_size, each.value_bytes): each for each in self.wins}

    @property
    def batch_sizes(self) -> list[int]:
        return sorted({each.batch_size for each in self.wins})

    @property
    def value_sizes(self) -> list[int]:
        return sorted({each.value_bytes for each in self.wins})

    @property
    def question(self) -> str:
        return f"The smallest of {listed(self.formats)} that loses nothing, and its saving of {BASE_FORMAT}'s bytes"

    @property
    def setting(self) -> str:
        return f"{'no codec' if self.codec == NONE else self.codec}, {setting(self.fixed)}"


def maps(results: Results) -> list[Map]:
    """Return the maps of the smallest formats: one without a codec, then one for a level of zstd.

    It is the level that was measured in most cells of the map.
    """
    rows = results.grid_bytes
    rows = rows.assign(with_codec=codecs_of(rows))
    found = []
    known = rows["codec"].isin([NONE, BEST_KNOWN])
    for codec, part in rows[known & rows["format"].isin(MAIN)].groupby("with_codec", sort=True):
        plane = results.plane(part, DOWN, ACROSS)
        if plane is not None:
            found.append(_map(str(codec), *plane))
    plain = [each for each in found if each.codec == NONE]
    packed = sorted((each for each in found if each.codec != NONE), key=lambda each: -len(each.wins))
    return [each for each in (*plain, *packed[:1]) if each.wins]


def _map(codec: str, rows: pd.DataFrame, fixed: Mapping[str, Any]) -> Map:
    formats = in_order(rows["format"])
    lost = {
        name: tuple(dict.fromkeys(what for each in rows[rows["format"] == name]["losses"] for what in lost_of(each)))
        for name in formats
    }
    wins = []
    for (batch_size, value_bytes), part in rows.groupby([DOWN, ACROSS], sort=True):
        sizes = dict(zip(part["format"], part["size_per_record"].astype(float), strict=True))
        whole = {name: sizes[name] for name in in_order(sizes) if not lost[name]}
        if BASE_FORMAT not in whole or len(whole) < 2:
            continue
        least = min(whole, key=lambda name: whole[name])
        winners = [least, *(name for name in whole if name != least and whole[name] <= whole[least] * (1 + TIE))]
        others = {name: sizes[name] for name in in_order(sizes) if lost[name]}
        wins.append(
            Win(
                batch_size=int(batch_size),
                value_bytes=int(value_bytes),
                winners=tuple(winners),
                saving=1 - sizes[least] / sizes[BASE_FORMAT],
                at_a_loss=tuple(smaller_than_all(whole, others)),
                ratios={name: sizes[name] / sizes[BASE_FORMAT] for name in in_order(sizes)},
            )
        )
    return Map(codec=codec, rows=rows, fixed=fixed, formats=tuple(formats), lost=lost, wins=tuple(wins))


def map_cells(found: Map) -> pd.DataFrame:
    """Return the map of the smallest formats as a frame for `plots.winners`, with a row per cell."""
    return pd.DataFrame(
        [
            (_value_size(each.value_bytes), number(each.batch_size), each.words, _winner(each), each.saving)
            for each in found.wins
        ],
        columns=["x", "y", "words", "format", "saving"],
    )


def _winner(win: Win) -> str:
    return "" if win.is_tie else win.winners[0]


def map_table(found: Map) -> Table:
    """Return the map of the smallest formats as a table of texts: a row per batch size, a column per value size."""
    values = found.value_sizes
    return Table(
        name=_table_name("map", found),
        caption=with_settings(found.question, found.setting),
        columns=(AXES[DOWN], *(Column(name=f"value {_value_size(size)}", unit="bytes") for size in values)),
        rows=tuple((at, *(_cell(found, at, size) for size in values)) for at in found.batch_sizes),
        notes=(
            f"tie: {BASE_FORMAT} takes at most {100 * TIE:.0f} % more than the smallest.",
            *filter(None, (limits(name, BASE_FORMAT) for name in _winners(found))),
            *_at_a_loss(found),
        ),
    )


def ratio_table(found: Map) -> Table:
    """Return a table of each format's bytes relative to v2, with a row per batch size and value size."""
    others = [name for name in found.formats if name != BASE_FORMAT]
    return Table(
        name=_table_name("map-ratios", found),
        caption=with_settings(f"All bytes relative to {BASE_FORMAT}", found.setting),
        columns=(
            AXES[DOWN],
            AXES[ACROSS],
            *(Column(name=name, digits=3) for name in others),
            Column(name="smallest that loses nothing, and what ties with it"),
        ),
        rows=tuple(
            (
                each.batch_size,
                level(ACROSS, each.value_bytes),
                *(each.ratios.get(name) for name in others),
                listed(each.winners),
            )
            for each in found.wins
        ),
    )


def _winners(found: Map) -> list[str]:
    return in_order(win.winners[0] for win in found.wins if not win.is_tie)


def _at_a_loss(found: Map) -> Iterator[str]:
    """Yield a sentence about each format that is not compared because it loses something.

    It has the losses, and the number of cells in which the format would be the smallest.
    """
    for name, lost in found.lost.items():
        if lost:
            cells = sum(name in each.at_a_loss for each in found.wins)
            yield (
                f"{name} leaves out {listed(lost)} and is not compared. It takes less than all these in {cells} of "
                f"{len(found.wins)} cells."
            )


def _table_name(what: str, found: Map) -> str:
    return f"{what}-{found.codec}".replace(" ", "-")


def _value_size(value_bytes: int) -> str:
    return number(level(ACROSS, value_bytes))


def _cell(found: Map, batch_size: int, value_bytes: int) -> Cell:
    win = found.by_cell.get((batch_size, value_bytes))
    return None if win is None else Ranked(win.words, 0.0 if win.is_tie else -win.saving)


def maps_sentence(found: list[Map]) -> str:
    """Give the number of cells that each format wins with its greatest saving, and the number of ties."""
    sentences = []
    for each in found:
        for name in _winners(each):
            savings = [win.saving for win in each.wins if not win.is_tie and win.winners[0] == name]
            saved = f", saving up to {100 * max(savings):.0f} %" if name != BASE_FORMAT else ""
            cells = f"{len(savings)} of {len(each.wins)} cells"
            sentences.append(f"{under_words(each.codec).capitalize()}, {name} is the smallest in {cells}{saved}.")
        sentences.append(f"Ties with {BASE_FORMAT} {under_words(each.codec)}: {sum(win.is_tie for win in each.wins)}.")
    return " ".join(sentences)


def maps_answer(run: Views) -> Answer | str:
    found = maps(run.results)
    if not found:
        return f"no bytes of {BASE_FORMAT} and of another format over batch size and value size at once"
    packed = [each for each in found if each.codec != NONE]
    no_packed = Missing(what=f"Break-even map under {BEST_KNOWN}", why=f"no such bytes under {BEST_KNOWN}")
    return Answer(
        means=maps_sentence(found),
        texts=Texts(rows=packed[0].rows) if packed else None,
        figures=(*map(map_figure, found), *([] if packed else [no_packed])),
        tables=tuple(map(map_table, found)),
        more=tuple(map(ratio_table, found)),
    )


def map_figure(found: Map) -> Figure:
    name = map_table(found).name
    return Figure(
        name=name,
        svg=plots.winners(map_cells(found), AXES[ACROSS].label, AXES[DOWN].label),
        alt=f"A map of batch size and value size with the smallest format in each cell. {maps_sentence([found])}",
        caption=with_settings(found.question, found.setting)
        + f" A stronger colour saves more. Grey: {BASE_FORMAT} takes at most 1 % more.",
        numbers=name,
    )
