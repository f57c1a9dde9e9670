"""Refusals of a workload's file: the tables of its TOML, and the words that say what is wrong and where."""

import msgspec
import pytest

from kfbench.errors import InvalidConfig
from kfbench.workloads.named.file import WorkloadModel

BASE = {
    **dict.fromkeys(("summary", "question", "story"), "a text"),
    "arrival": {"process": "constant", "rate_per_s": 1_000},
    "batching": {"model": "fixed", "records": 100},
    "key": {"template": "order-<6d>"},
    "value": {"template": "<text>", "length": {"dist": "uniform", "low": 20, "high": 60}},
}
ANY_BURST = 'pause_us = { dist = "fixed", value = 1 }, gap_us = { dist = "fixed", value = 0 }'
SURVIVORS = 'batching = { model = "survivors", of_records = 100, survival = 0.1 }\n'
TRANSACTIONS = 'batching = { model = "transactions", records = { dist = "fixed", value = 3 } }\n'
WHERE = {
    "arrival": "arrival = {{ {} }}",
    "batching": "batching = {{ {} }}",
    "drawn": 'batching = {{ model = "drawn", records = {{ {} }} }}',
    "length": 'value = {{ template = "<4x>", length = {{ {} }} }}',
    "template": 'value = {{ template = "{}", length = {{ dist = "fixed", value = 5 }} }}',
    "key": 'key = {{ template = "a", {} }}',
    "": "{}",
}
REFUSED = {
    "arrival": {
        'process = "constant", rate_per_s = 0': "rate_per_s: 0.0 is not above 0",
        'process = "poisson", rate_per_s = nan': "rate_per_s: nan is not above 0",
        'process = "poisson", rate_per_s = 1e-9': "a block of 65,536 records would take",
        'process = "generalised-pareto", sigma_us = 0, k = 0.1': "sigma: 0.0 is not above 0",
        'process = "generalised-pareto", sigma_us = 1, k = 1.5': "k: 1.5 is not below 1",
        'process = "generalised-pareto", sigma_us = 1, k = 0, theta_us = -1': "theta_us: -1.0 is negative",
        'process = "sine", rate_per_s = 5, amplitude_per_s = 5, radians_per_s = 1': "not within 0 to below rate_per_s",
        'process = "sine", rate_per_s = 5, amplitude_per_s = 1, radians_per_s = 0': "radians_per_s: 0.0 is not above 0",
        'process = "sine", rate_per_s = 0, amplitude_per_s = 0, radians_per_s = 1': "rate_per_s: 0.0 is not above 0",
        'process = "poisson", rate_per_s = 5, jitter = 1': "unknown field `jitter`",
        'process = "poisson", rate = 5': r"`rate`.*\$\.arrival",
        'process = "weekly"': r"Invalid value 'weekly'.*\$\.arrival\.process",
        f'process = "bursts", length = {{ dist = "uniform", low = 0, high = 3 }}, {ANY_BURST}': "length: a burst",
        f'process = "bursts", length = {{ dist = "fixed", value = 3 }}, {ANY_BURST.replace("1", "-1")}': "pause_us: it",
    },
    "batching": {
        'model = "fixed", records = 0': r"\$\.batching\.records",
        'model = "linger", linger_ms = -1': "linger_ms",
        'model = "linger", linger_ms = 5, batch_size = 7': "batch_size",
        'model = "survivors", of_records = 100, survival = 0.0': "survival",
        'model = "transactions", records = { dist = "fixed", value = 0 }': "records: 0 to 0",
        'model = "some"': "some",
    },
    "drawn": {
        'dist = "uniform", low = 0, high = 3': "records: 0 to 3",
        'dist = "fixed", value = 70_000': "records: 70000 to 70000",
    },
    "length": {
        'dist = "uniform", low = 5, high = 4': "low: 5.0 is above high, 4.0",
        'dist = "uniform", low = "20", high = 40': r"\$\.value\.length\.low",
        'dist = "fixed", value = nan': "value: not a finite number",
        'dist = "fixed", value = -1': "lengths from -1 to -1, but 0 to 2147483647",
        'dist = "fixed", value = 2147483648': r"lengths from .* 0 to 2147483647",
        'dist = "lognormal", mean = 5, sigma = 0': "sigma: 0.0 is not above 0",
        'dist = "lognormal", sigma = 1': "either mean or median",
        'dist = "lognormal", sigma = 1, mean = 1, median = 1': "either mean or median",
        'dist = "lognormal", sigma = 1, mean = -1': "mean: not above 0",
        'dist = "lognormal", sigma = 3, mean = 1e9': r"lengths from .* 0 to 2147483647",
        'dist = "generalised-pareto", sigma = 1, k = 1': "k: 1.0 is not below 1",
        'dist = "generalised-pareto", sigma = -1, k = 0.2': "sigma: -1.0 is not above 0",
        'dist = "generalised-pareto", sigma = 1, k = 0.2, low = 9, cap = 8': "low: 9.0 is above cap, 8.0",
        'dist = "generalised-extreme-value", mu = 0, sigma = 1, k = 2': "k: 2.0 is not below 1",
        'dist = "generalised-extreme-value", mu = 0, sigma = 0, k = 0': "sigma: 0.0 is not above 0",
        'dist = "generalised-extreme-value", mu = 5, sigma = 5, k = 0': r"lengths from .* 0 to 2147483647",
        'dist = "choice", values = []': "values: empty",
        'dist = "choice", values = [1, 2], weights = [1]': "weights: 1 for 2",
        'dist = "choice", values = [1, inf]': "values: not a finite number",
        'dist = "choice", values = [1, 2], weights = [1, -1]': "weights: one is negative",
        'dist = "mixture", weights = [], parts = []': "parts: empty",
        'dist = "mixture", weights = [0], parts = [{ dist = "fixed", value = 1 }]': "none is above 0",
        'dist = "empirical", points = [[0.5, 1]]': "at least two",
        'dist = "empirical", points = [[0.5, 1], [0.4, 2]]': "not rising probabilities",
        'dist = "empirical", points = [[0.5, 3], [0.6, 2]]': "not rising values",
        'dist = "fixed", value = 1, mean = 1': "unknown field `mean`",
        'dist = "normal", mean = 1': "Invalid value 'normal'",
    },
    "template": {
        "abc<9q>": "character 4: '<9q>': no such slot",
        "é<>": "character 2: '<>': no such slot",
        "a<5d": "character 2: the slot is not closed",
        "a<b<5d>": "character 2: the slot is not closed",
        "<5d><0d>": "character 5: '<0d>': 1 to 1048576 characters",
        "<1048577x>": "1 to 1048576 characters",
        "<600000x><600000x>": "up to 1200000 bytes .*1048576",
        "<$x>": "no slot .* this name",
        "<$a of 3:5d><$a of 3:4x>": "character 13: .*\\$a already",
        "<$key:5d>": "a space before it is missing",
        "<$ key every 3:5d>": "key and every do not go together",
        "<$ of 0:5d>": "of 0: 1 to",
        "<$ often:5d>": "a head is",
        "<$ even:5d>": "even is for words",
        "<int 9..1>": "ends before it begins",
        "<int 0..4294967296 low>": "a range of up to",
        "<int 0..9999999999999999999>": "numbers up to",
        "<int 0..99999999999999999999>": "no such slot",
        "<$ of 3:int 1..9 drift>": "drift and of",
        "<count 1 step 0>": "steps of 1 to",
        "<$ of 3:count 1>": "a count and of",
        "<id 10>": "1 to 9 digits",
        "<$ of 3:id 4>": "an id depends on the key",
        "<$ key:time ms>": "a time depends on the record",
        "<time ms -9999999999>": "ms before are possible",
        "<text 9..2>": "a range that rises",
        f"<{'|'.join('a' * 257)}>": "257 words; .*256",
        "<4x>": "length: no slot of template is elastic",
    },
    "key": {
        "cardinality = 0": r"cardinality: 0.*\$\.key",
        "cardinality = 1099511627777": "cardinality: 1099511627777 is not within",
        "cardinality = 5, skew = -0.1": "skew: -0.1",
        "skew = 1.0": "skew: keys in turn, or one key per record",
        "cardinality = 5, skew = 11": "skew: 11.0",
        "cardinality = 5, skew = nan": "skew: nan",
        "cardinality = 5, skew = 1.0, in_turn = true": "skew: keys in turn",
    },
    "": {
        'value = { template = "a", colour = 3 }': r"colour.*\$\.value",
        'value = { template = "a", null_share = 2 }': r"\$\.value\.null_share",
        "other = [{ share = 0.6 }, { share = 0.6 }]": "other: the sum",
        'other = [{ share = 0.6, tombstone = true, key = { template = "a" } }]': "other: a tombstone",
        f"other = [{', '.join(['{ share = 0.01 }'] * 33)}]": "other: 33 kinds",
        "time = { period_ms = 5, same_in_batch = true }": r"period_ms: .*\$\.time",
        'batching = { model = "linger", linger_ms = 5 }\ntime = { same_in_batch = true }': "time: batches depend",
        f'{SURVIVORS}key = {{ template = "a", cardinality = 9 }}': "key.cardinality: each key survives once",
        f"{SURVIVORS}other = [{{ share = 0.1, tombstone = true }}]": "other: compaction removes",
        f'{TRANSACTIONS}header = [{{ name = "a", template = "b" }}]': "header: markers",
        f"{TRANSACTIONS}other = [{{ share = 0.1, tombstone = true }}]": "other: transactions",
    },
}


@pytest.mark.parametrize(
    ("text", "words"),
    [(WHERE[place].format(text), words) for place, rows in REFUSED.items() for text, words in rows.items()],
)
def test_a_table_is_refused_with_its_key(text: str, words: str) -> None:
    with pytest.raises((msgspec.ValidationError, InvalidConfig), match=words):
        msgspec.convert(BASE | msgspec.toml.decode(text), WorkloadModel)


def test_the_other_tables_are_valid() -> None:
    for text in ("", SURVIVORS, TRANSACTIONS):
        assert msgspec.convert(BASE | msgspec.toml.decode(text), WorkloadModel).question == "a text"
