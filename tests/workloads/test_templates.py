"""Each placeholder of a template writes the right text. No record depends on other records."""

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.errors import InvalidConfig, InvalidRecords
from kfbench.workloads.grid import START_OF_2026_MS
from kfbench.workloads.payload.parser import PHRASES
from kfbench.workloads.payload.template import Template
from tests.templates import EVENT, EXAMPLES

SEED, PURPOSE = 7, 3


def records(text: str, count: int = 300, lengths: Any = None, start: int = 0, **columns: Any) -> list[bytes]:
    numbers = np.arange(start, start + count)
    if lengths is not None:
        lengths = np.broadcast_to(np.asarray(lengths, np.int32), count)
    return split(Template.parse(text), numbers, lengths, **columns)


def split(template: Template, numbers: Any, lengths: Any = None, seed: int = SEED, **columns: Any) -> list[bytes]:
    data, starts = template.fill(seed, PURPOSE, numbers, lengths, **columns)
    if lengths is None:
        lengths = template.natural(seed, PURPOSE, numbers, keys=columns.get("keys"))
    return [data[at : at + max(length, 0)].tobytes() for at, length in zip(starts, lengths, strict=True)]


@pytest.mark.parametrize(
    ("slot", "pattern"),
    [
        ("5d", "[0-9]{5}"),
        ("8x", "[0-9a-f]{8}"),
        ("9a", "[a-z]{9}"),
        ("9A", "[A-Z]{9}"),
        ("11w", "[0-9A-Za-z]{11}"),
        ("11b", "[0-9A-Za-z_-]{11}"),
        ("13 raw", "(?s:.){13}"),
        ("3zeros", "\0{3}"),
        ("uuid", "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        ("GET|POST|", "GET|POST|"),
        ("int -3..12", "-[123]|[0-9]|1[012]"),
        ("time s", "[0-9]{10}"),
        ("time ms", "[0-9]{13}"),
        ("text 10..40", "[a-z ]{10,40}"),
        ("id 4", "[0-9]{4}"),
    ],
)
def test_what_a_slot_writes(slot: str, pattern: str) -> None:
    made = records(f"a<<{'<' + slot + '>'}>z")
    found = [re.fullmatch(f"a<({pattern})>z".encode(), record) for record in made]
    assert all(found)
    assert (len(set(made)) > 1) == (slot not in ("3zeros", "time s"))


def test_words_are_as_likely_as_their_place_says() -> None:
    made = records("<a|b|c|d>", 40_000)
    shares = np.array([made.count(word) for word in (b"a", b"b", b"c", b"d")]) / 40_000
    assert shares == pytest.approx(12 / 25 / np.arange(1, 5), abs=0.015)
    even = records("<$ even:a|b|c|d>", 40_000)
    assert [even.count(word) / 40_000 for word in (b"a", b"b", b"c", b"d")] == pytest.approx([0.25] * 4, abs=0.01)


def test_no_word_is_missing() -> None:
    words = [f"{number:03}" for number in range(256)]
    assert set(records(f"<{'|'.join(words)}>", 10_000)) == {word.encode() for word in words}
    assert len(set(records(f"<{'|'.join(words[:100])}>", 10_000))) == 100


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (-9, 9), (99, 101), (0, 2**62 - 1), (-(2**61), 2**61 - 1), (2**32, 2**33)]
)
def test_numbers_lie_in_their_range(low: int, high: int) -> None:
    made = [int(record) for record in records(f"<int {low}..{high}>", 2_000)]
    assert low <= min(made) <= low + (high - low) // 50
    assert high - (high - low) // 50 <= max(made) <= high


def test_low_numbers_are_more_often_low() -> None:
    made = np.array(records("<int 0..9999 low>", 5_000)).astype(int)
    assert np.median(made) == pytest.approx(1_250, abs=150)
    assert made.mean() == pytest.approx(2_500, abs=120)


def test_drift_stays_near_its_neighbours() -> None:
    made = np.array(records("<int -5000..5000 drift>", 20_000)).astype(int)
    assert np.abs(np.diff(made)).max() < 10_001 * (1 / 16 + 1 / 64 + 0.001)
    assert made.min() < -4_000 and made.max() > 4_000
    by_key = np.array(records("<$ key:int 0..100000 drift>", 64, keys=np.arange(64) % 2)).astype(int).reshape(-1, 2)
    assert np.abs(np.diff(by_key, axis=0)).max() < 10_000 < abs(by_key[0, 0] - by_key[0, 1])


def test_counts_rise() -> None:
    assert records("<count 98>", 4) == [b"98", b"99", b"100", b"101"]
    rising = np.array(records("<count 5 step 40>", 1_000)).astype(int)
    assert np.all(np.diff(rising) > 0) and np.diff(rising).mean() == pytest.approx(40, abs=1)
    assert records("<$ every 3:count 0>", 6) == [b"0"] * 3 + [b"1"] * 3
    assert records("<$ key:count 10>", 3, keys=np.array([5, 0, 5])) == [b"15", b"10", b"15"]


def test_ids_of_different_keys_differ() -> None:
    made = records("<id 4>", 10_000)
    assert len(set(made)) == 10_000
    assert made != sorted(made)
    assert records("<id 4>", 2, keys=np.array([77, 10_077])) == [made[77]] * 2
    assert split(Template.parse("<id 4>"), np.arange(9), seed=8) != made[:9]


def test_times() -> None:
    days = np.array([0, 58, 59, 60, 789, 11_016, 20_512, 47_540, 115_740]) * 86_400_000 + 45_296_789
    form = "<time iso> <time clf> <time s> <time ms>"
    for ms, record in zip(days.tolist(), records(form, len(days), timestamps_ms=days), strict=True):
        at = datetime.fromtimestamp(ms // 1000, UTC)
        date, clock = f"{at:%Y-%m-%d}", f"{at:%H:%M:%S}"
        assert record.decode() == (f"{date}T{clock}.789Z {at:%d/%b/%Y:%H:%M:%S} +0000 {ms // 1000:010} {ms:013}")
    assert records("<time ms>", 2, start=5) == [str(START_OF_2026_MS + number).encode() for number in (5, 6)]
    far = np.array([-(2**63), -1, 2**63 - 1])
    assert records("<time ms>", 3, timestamps_ms=far) == [b"0" * 13, b"0" * 13, b"9" * 13]
    assert records("<time iso>", 3, timestamps_ms=far)[2] == b"2286-11-20T17:46:39.999Z"


def test_times_before_the_record_s() -> None:
    at = np.full(2_000, START_OF_2026_MS)
    before = START_OF_2026_MS - np.array(records("<time ms -50>", 2_000, timestamps_ms=at)).astype(int)
    assert set(before.tolist()) == set(range(51))


def test_a_name_repeats_its_slot() -> None:
    for record in records("<$a:8x>,<$b every 3 of 7:uuid>,<$a>,<$b>"):
        a, b, again, b_again = record.split(b",")
        assert (a, b) == (again, b_again)
    assert all(a != b for a, b in (record.split(b",") for record in records("<8x>,<8x>")))


def test_slots_of_one_name_are_chosen_together() -> None:
    made = {tuple(record.split()) for record in records("<$c of 40:8x> <$c:even|odd|none> <$c:8x> <$c:8d>")}
    users = {row[0] for row in made}
    assert len(made) == len(users) <= 40
    assert {row[0] == row[2] for row in made} == {True}
    assert len({row[1] for row in made}) == 3


def test_of_chooses_among_few_and_the_first_more_often() -> None:
    made = records("<$ of 100:8x>", 20_000)
    assert len(set(made)) == 100
    most = sorted((made.count(each) for each in set(made)), reverse=True)
    assert most[0] > 10 * most[60]
    assert len(set(records("<$ of 1:8x>"))) == 1


def test_every_is_the_same_for_a_run_of_neighbours() -> None:
    made = records("<$ every 20:8x>", 200)
    assert [len(set(made[at : at + 20])) for at in range(0, 200, 20)] == [1] * 10
    assert len(set(made)) == 10


def test_key_slots_follow_the_key_in_every_part_of_a_record() -> None:
    keys = np.arange(600) % 30
    made = records("<$user key:8x> <$ key of 5:4d> <4x>", 600, keys=keys)
    assert len({record[:13] for record in made}) == 30
    assert len(set(made)) > 590
    data, _ = Template.parse("id=<$user key:8x>").fill(SEED, PURPOSE + 1, keys[:30])
    assert data.tobytes() == b"".join(b"id=" + record[:8] for record in made[:30])


def test_nothing_else_repeats_from_purpose_to_purpose_or_seed_to_seed() -> None:
    template, numbers = Template.parse("<16x>"), np.arange(50)
    made = {template.fill(*seeds, numbers)[0].tobytes() for seeds in [(7, 3), (7, 4), (8, 3), (8, 4), (3, 7)]}
    assert len(made) == 5


@pytest.mark.parametrize("name", EXAMPLES)
@given(drawn=st.data())
def test_a_record_depends_on_itself_alone(name: str, drawn: st.DataObject) -> None:
    template = Template.parse(EXAMPLES[name])
    longest = template.most_bytes + 50 if template.elastic else template.least_bytes
    rows = drawn.draw(
        st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 99), st.integers(-1, longest)), max_size=9)
    )
    numbers, keys, lengths = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    lengths = lengths.astype(np.int32)
    made = split(template, numbers, lengths, keys=keys)
    assert [len(record) for record in made] == np.maximum(lengths, 0).tolist()
    alone = [split(template, numbers[i : i + 1], lengths[i : i + 1], keys=keys[i : i + 1])[0] for i in range(len(rows))]
    assert made == alone
    natural = template.natural(SEED, PURPOSE, numbers, keys=keys)
    assert np.all((natural >= template.least_bytes) & (natural <= template.most_bytes))
    assert natural.dtype == np.int32
    for record, whole in zip(made, split(template, numbers, keys=keys), strict=True):
        if not template.elastic:
            assert whole.startswith(record)


def test_a_record_below_its_natural_length_is_cut() -> None:
    whole = records(EVENT, 50)
    for length in (1, 40, min(map(len, whole))):
        assert records(EVENT, 50, length) == [record[:length] for record in whole]


def test_elastic_slots_take_what_is_left() -> None:
    for length in (400, 401, 5_000):
        made = records(EVENT, 20, length)
        assert {len(record) for record in made} == {length}
        assert all(record.startswith(b'{"id":"') and record.endswith(b'"}') for record in made)
    assert records("<A>", 1, 9)[0].isupper()
    half = records("<raw><zeros>", 30, 101)
    assert {record[50:] for record in half} == {bytes(51)} and len({record[:50] for record in half}) == 30
    assert re.fullmatch(rb"\d{33}-[a-z]{33}=[A-Z]{34}", records("<d>-<a>=<A>", 1, 102)[0])


def test_a_stretched_record_keeps_its_other_slots() -> None:
    short, long = records("<8x> <text> <int 1..99>", 20, 40), records("<8x> <text> <int 1..99>", 20, 90)
    assert [re.sub(b" .* ", b"", record) for record in short] == [re.sub(b" .* ", b"", record) for record in long]


def test_constant_text_is_there_once() -> None:
    data, starts = Template.parse("application/json").fill(SEED, PURPOSE, np.arange(1_000))
    assert data.tobytes() == b"application/json" and not starts.any()
    assert records("", 3) == [b""] * 3 and records("é<<", 2, 1) == [b"\xc3"] * 2


def test_a_buffer_to_reuse() -> None:
    template, numbers = Template.parse("<8x>-<text 3..9>"), np.arange(30)
    made, _ = template.fill(SEED, PURPOSE, numbers)
    out = np.zeros(template.room_bytes(len(made)), np.uint8)
    again, _ = template.fill(SEED, PURPOSE, numbers, out=out)
    assert again.base is out and again.tobytes() == made.tobytes()
    with pytest.raises(InvalidRecords, match="are needed"):
        template.fill(SEED, PURPOSE, numbers, out=out[1:])


def test_longer_than_it_can_be() -> None:
    with pytest.raises(InvalidConfig, match="template 'user-<5d>': record 12 has 10 bytes, 11 "):
        records("user-<5d>", 9, [10, -1, 11, 3, 4, 5, 6, 7, 8], start=10)
    with pytest.raises(InvalidConfig, match="record 0 has 4 bytes, 5 "):
        records("four", 2, [5, 4])


def test_phrases_can_stand_in_json_and_be_moved_at_once() -> None:
    assert all(re.fullmatch("[a-z ]{1,31}", phrase) for phrase in PHRASES)
    assert len(PHRASES) == len(set(PHRASES)) <= 256


def test_bytes_of_published_seeds_never_change() -> None:
    """Published runs used these seeds. If this test fails, the bytes of published runs have changed."""
    assert records("<8x> <uuid> <int 0..99999> <a|b|c|d|e> <$n of 9:4d> <id 5> <text 9..30>", 1, start=70_000) == [
        b"2e8472c3 6c30099e-8458-425d-b7d6-13f332010aeb 19974 a 2225 24694 thread pool is"
    ]
