"""Records through Java's producers and share consumers, on a shareq cluster and on Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.tools.side_by_side import SideBySide

Fresh = Callable[[str], str]


def test_console_producer_and_share_consumer(both: SideBySide, fresh: Fresh) -> None:
    topic, group = fresh("orders"), fresh("payments")
    both.create(topic, partitions=2)
    both.start_at_earliest(group)
    lines = "".join(f"k{number}:v{number}\n" for number in range(10))
    both.run(
        "kafka-console-producer",
        *("--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        stdin=lines,
    )
    read = both.run(
        "kafka-console-share-consumer",
        *("--topic", topic, "--group", group, "--max-messages", "10", "--timeout-ms", "60000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.delivery=true"),
        *("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"),
    )
    assert sorted(line.split("\t")[-1] for line in read.out) == [f"v{number}" for number in range(10)]
    assert read.errors == ("Processed a total of 10 messages",)


def test_console_consumer_releases_and_rejects(both: SideBySide, fresh: Fresh) -> None:
    """Released records are delivered again, with count 2; rejected records are not."""
    topic, group = fresh("orders"), fresh("payments")
    both.create(topic)
    both.start_at_earliest(group)
    both.produce(topic, "a", "b", "c")
    again = (
        "kafka-console-share-consumer",
        "--topic",
        topic,
        "--group",
        group,
        "--formatter-property",
        "print.delivery=true",
    )
    first = both.run(*again, "--max-messages", "3", "--timeout-ms", "60000", "--release")
    assert first.out == ("Delivery:1\ta", "Delivery:1\tb", "Delivery:1\tc")
    second = both.run(*again, "--max-messages", "3", "--timeout-ms", "60000", "--reject")
    assert second.out == ("Delivery:2\ta", "Delivery:2\tb", "Delivery:2\tc")
    assert both.run(*again, "--timeout-ms", "3000").out == ()


def test_perf_test_tools(both: SideBySide, fresh: Fresh) -> None:
    topic, group, count = fresh("orders"), fresh("payments"), 20_000
    both.create(topic)
    both.start_at_earliest(group)
    sizes = ("--num-records", str(count), "--record-size", "100", "--throughput", "-1")
    for done in both.run_each("kafka-producer-perf-test", "--topic", topic, *sizes):
        assert done.stdout.splitlines()[-1].startswith(f"{count} records sent, ")  # earlier lines show progress
        assert (done.returncode, done.stderr) == (0, "")
    limits = ("--num-records", str(count), "--timeout", "60000")
    for done in both.run_each("kafka-share-consumer-perf-test", "--topic", topic, "--group", group, *limits):
        heads, values = (line.split(", ") for line in done.stdout.splitlines())
        assert dict(zip(heads, values, strict=True))["data.consumed.in.nMsg"] == str(count)
        assert (done.returncode, done.stderr) == (0, "")


def test_verifiable_share_consumer(both: SideBySide, fresh: Fresh) -> None:
    topic, group, count = fresh("orders"), fresh("payments"), 100
    both.create(topic)
    both.produce(topic, *(f"{number}" for number in range(count)))
    results = []
    for done in both.run_each(
        "kafka-verifiable-share-consumer",
        *("--topic", topic, "--group-id", group, "--max-messages", str(count), "--offset-reset-strategy", "earliest"),
    ):
        assert (done.returncode, done.stderr) == (0, "")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        consumed = [event for event in events if event["name"] == "records_consumed"]
        acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
        results.append(
            (
                list(dict.fromkeys(event["name"] for event in events)),
                sum(event["count"] for event in consumed),
                sum(event["count"] for event in acknowledged),
                sorted(offset for event in consumed for one in event["partitions"] for offset in one["offsets"]),
            )
        )
    ours, apache = results
    assert ours == apache
    assert ours[1:] == (count, count, list(range(count)))
