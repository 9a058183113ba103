"""kafka-consumer-groups on a shareq cluster and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka

from tests.tools.side_by_side import SideBySide

TOOL = "kafka-consumer-groups"


def test_a_group_is_listed_described_reset_and_deleted(both: SideBySide, fresh: Callable[[str], str]) -> None:
    topic, group = fresh("orders"), fresh("reports")
    both.create(topic)
    both.produce(topic, "a", "b", "c")
    for address in (both.ours, both.apache):
        with confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": group}) as consumer:
            consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 1)], asynchronous=False)
    assert both.run(TOOL, "--list", about=group).out == (group,)
    (row,) = both.run(TOOL, "--describe", "--group", group, about=topic).rows
    assert row[:6] == [group, topic, "0", "1", "3", "2"]
    state = both.run(TOOL, "--describe", "--group", group, "--state", about=group)
    assert "Empty" in state.out[-1]
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute")
    assert both.run(TOOL, *reset, about=topic).rows == [[group, topic, "0", "3"]]
    assert both.run(TOOL, "--delete", "--group", group).code == 0
    assert both.run(TOOL, "--list", about=group).out == ()
