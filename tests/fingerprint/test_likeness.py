"""Records generated from a fingerprint take about as many bytes as the original ones, in every format and codec."""

from pathlib import Path

import pytest

from tools.fingerprint_likeness import NAMED, RECORDED, differences, pair_of

WITHOUT_CODEC, WITH_CODEC = 0.03, 0.25  # docs/fingerprint.md states these bounds
HALF_RANDOM = ("omb-100b", "omb-1kb")  # the first half of a value is random, the second half is zeros
WITH_CODEC_IF_HALF_RANDOM = 0.4


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [*RECORDED, *NAMED])
def test_generated_records_take_about_as_many_bytes(name: str, tmp_path: Path) -> None:
    most = WITH_CODEC_IF_HALF_RANDOM if name in HALF_RANDOM else WITH_CODEC
    found = list(differences(pair_of(name, tmp_path)))
    assert len(found) > 50
    wrong = [each for each in found if abs(each.change) > (WITHOUT_CODEC if each.codec == "none" else most)]
    assert not wrong
