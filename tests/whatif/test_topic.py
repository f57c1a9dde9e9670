"""A what-if of a topic uses the connector that reads it. tests/live reads a topic of a real broker."""

from pathlib import Path

import pyspark
import pytest

from kfbench.errors import MissingTool
from kfbench.sources.topic import NO_LEADER, Topic
from kfbench.sweep.spark import topic as spark
from kfbench.sweep.spark.topic import connector_settings
from kfbench.whatif.question import Question
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.tally import tally_topic


def test_the_connector_is_sparks_own_unless_given() -> None:
    [packages] = connector_settings(None).values()
    assert packages == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert connector_settings("a:b:1") == {"spark.jars.packages": "a:b:1"}


def test_a_folder_of_jars(tmp_path: Path) -> None:
    for name in ("b.jar", "a c.jar", "README"):
        (tmp_path / name).touch()
    assert connector_settings(str(tmp_path)) == {
        "spark.jars": f"{tmp_path.as_uri()}/a%20c.jar,{tmp_path.as_uri()}/b.jar"
    }


@pytest.mark.parametrize("connector", ["nowhere", "a:b"])
def test_invalid_connectors_are_refused(tmp_path: Path, connector: str) -> None:
    with pytest.raises(MissingTool, match=rf"^{connector}: .*GROUP:ARTIFACT:VERSION$"):
        connector_settings(connector)
    with pytest.raises(MissingTool, match=rf"^{tmp_path}: no jar in this folder"):
        connector_settings(str(tmp_path))


def test_a_partition_without_a_leader_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {0: 100, 1: NO_LEADER}  # stands for the broker's answer
    monkeypatch.setattr(spark, "topic_mapped", lambda topic, function_for, *_: [function_for(sizes)([])])
    question = Question(arms=(("v2", "none"),), assumed=Batching(5.0, 1000))
    found, _, sums = tally_topic(Topic(bootstrap="a:1", name="t"), lambda _: question)
    assert [part.name for part in found.parts] == [source.path for source in sums.sources] == ["t-0"]
    [left_out] = found.skipped
    assert (left_out.path, left_out.reason, left_out.is_data) == ("t-1", "it has no leader", True)
