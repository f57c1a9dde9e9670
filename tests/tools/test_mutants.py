"""The mutants of tests/mutants.toml fit the tree: each can be applied, and its tests exist."""

import pytest

from tools.mutants import ROOT, Mutant, is_stale, read_mutants

ALL = read_mutants()


def test_there_are_forty_different_ones() -> None:
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in ALL}) == len(ALL) >= 40


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: str(mutant.number))
def test_a_mutant_fits_the_tree(mutant: Mutant) -> None:
    assert not is_stale(mutant) and mutant.old != mutant.new
    assert mutant.function in (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.tests and all((ROOT / test).exists() for test in mutant.tests)
    assert len(mutant.promise.split()) <= 15
