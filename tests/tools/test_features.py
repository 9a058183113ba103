"""Kafka's tool switches share groups off and on, on shareq as on an Apache Kafka. Both are the test's own: others need
the share groups."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shareq import Cluster
from shareq.kafka import LocalKafka
from tests.kafka.fixtures import Reachable
from tests.tools.java_tools import JavaTools

pytestmark = pytest.mark.kafka

WHY = re.compile(r"(?<=had an error: ).*")
EPOCH = re.compile(r"Epoch: \d+")


@pytest.fixture(scope="module")
def own_clusters() -> Iterator[tuple[Reachable, Reachable]]:
    with LocalKafka() as kafka, Cluster(clock="wall") as cluster, cluster.serve() as server:
        yield kafka, server


def run(java_tools: JavaTools, cluster: Reachable, *args: str) -> tuple[int, list[str]]:
    """The exit code and the lines, without the words of an error and the number of changes of the metadata."""
    done = java_tools.run("kafka-features", "--bootstrap-server", cluster.bootstrap_servers, *args)
    lines = WHY.sub("...", EPOCH.sub("Epoch: n", done.stdout + done.stderr)).splitlines()
    return done.returncode, [line for line in lines if "kraft.version" not in line]  # shareq has no such quorum


@pytest.mark.parametrize(
    ("steps", "level", "answer"),
    [
        (["downgrade --feature share.version=1"], 1, (0, "share.version was downgraded to 1.")),
        (["downgrade --feature share.version=0"], 0, (0, "share.version was downgraded to 0.")),
        (["disable --feature share.version"], 0, (0, "share.version was disabled.")),
        (["downgrade --feature share.version=0", "upgrade --feature share.version=1"], 1, (0, "was upgraded to 1.")),
        (["disable --feature share.version", "upgrade --feature share.version=2 --dry-run"], 0, (0, "can be upgraded")),
        (["upgrade --feature share.version=3"], 2, (1, "Could not upgrade share.version to 3.")),
        (["upgrade --feature share.version=1"], 2, (1, "Could not upgrade share.version to 1.")),
        (["upgrade --feature shares.version=1"], 2, (1, "Could not upgrade shares.version to 1.")),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, list) else None,
)
def test_features_are_changed_as_by_kafka(
    own_clusters: tuple[Reachable, Reachable],
    java_tools: JavaTools,
    steps: list[str],
    level: int,
    answer: tuple[int, str],
) -> None:
    answers = []
    for cluster in own_clusters:
        begun = run(java_tools, cluster, "upgrade", "--feature", "share.version=2")
        done = [run(java_tools, cluster, *step.split()) for step in steps]
        answers.append([begun, *done, run(java_tools, cluster, "describe")])
    kafka, ours = answers
    assert ours == kafka
    code, lines = ours[-2]
    assert (code, answer[1] in "\n".join(lines)) == (answer[0], True)
    (row,) = (line for line in ours[-1][1] if "share.version" in line)
    assert f"FinalizedVersionLevel: {level} " in row.replace("\t", " ")
