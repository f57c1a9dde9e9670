"""The table of the reference point (fixed values of all axes) agrees with the rows."""

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import Band, ties
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import in_order
from kfbench.report.topics import compressed, control, reference
from kfbench.tables import Interval
from tests.report.columns import column, some


def test_the_verdict_has_every_format_and_its_cpu(results: Results) -> None:
    table = some(reference.reference_table(results))
    formats = in_order(results.uncompressed["format"])
    assert column(table, "format") == formats
    assert column(table, "batch of 1")[:2] == [26.0, 34.0]
    for name in ("encode CPU", "decode CPU"):
        ratios = dict(zip(formats, column(table, name), strict=True))
        assert ratios.pop(BASE_FORMAT) == 1.0
        assert all(isinstance(ratio, Interval) for ratio in ratios.values())


def test_a_ratio_inside_the_noise_is_called_a_tie() -> None:
    far = Interval(median=1.2, low=1.15, high=1.25)
    assert not ties(far, Band(0.99, 1.01))
    assert ties(far, Band(0.9, 1.16))
    assert ties(Interval(median=1.01, low=0.99, high=1.03), None)


def test_a_run_without_cpu_or_codecs_still_has_tables(results: Results) -> None:
    bare = Results(results.all[(results.all["kind"] == "bytes") & (results.all["codec"] == "none")])
    assert control.control_table(bare) is None
    assert compressed.compressed_rows(bare).empty
    verdict = some(reference.reference_table(bare))
    assert set(column(verdict, "encode CPU")) == {None}
