"""`Admin.redrive_dead_letters` on virtual time, and its parts: shareq/admin/BEHAVIOUR.md, 3.3.

`tests/tools/test_dead_letters.py` has what is the same on an Apache Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from shareq import Admin, Cluster, ConfigException, KafkaException, NewTopic
from shareq.admin.dead_letters import LetterFilter
from shareq.admin.redrive.contents import GONE, PERHAPS_A_MARKER, Content, Marker, Skipped, content_of
from shareq.admin.redrive.ledger import LEDGER_TOPIC, OffsetRanges
from shareq.client.arguments import INT64_MAX
from shareq.model.errors import Errors
from tests.pairings.dead_letters import COPY, REJECT, DeadLetterStage


@pytest.fixture
def stage() -> Iterator[DeadLetterStage]:
    """A queue with letters of three records: a, b, c."""
    with Cluster(brokers=1, seed=7) as cluster:
        made = DeadLetterStage(
            cluster.bootstrap_servers, lambda what: what, unavailable=None, pass_time=lambda: cluster.advance(100)
        )
        with made.stack:
            made.create(group=COPY)
            made.write("a", "b", "c")
            made.take(3)
            made.acknowledge(REJECT, 0, 1, 2)
            made.until_lag(0)
            yield made


def values(admin: Admin, topic: str) -> list[bytes | None]:
    whole = [(0, INT64_MAX)]
    reads = admin.read_batches({(topic, 0): whole})
    return [record.value for read in reads for record in read.records(whole)]


def test_letters_go_back_to_the_topic_of_their_records_once(stage: DeadLetterStage) -> None:
    seen: list[int] = []
    done = stage.admin.redrive_dead_letters(stage.group, progress=seen.append)
    assert (done.queue, done.executed, done.counts) == (stage.queue, True, {("source", 0, "source"): 3})
    assert (done.markers, done.skipped, sum(seen)) == (0, [], 3)
    assert values(stage.admin, stage.source) == [b"a", b"b", b"c"] * 2
    assert stage.admin.redrive_dead_letters(stage.group).counts == {}
    assert len(values(stage.admin, stage.source)) == 6


def test_validate_only_writes_nothing(stage: DeadLetterStage) -> None:
    done = stage.admin.redrive_dead_letters(stage.group, validate_only=True)
    assert (done.executed, done.counts) == (False, {("source", 0, "source"): 3})
    assert values(stage.admin, stage.source) == [b"a", b"b", b"c"]
    assert LEDGER_TOPIC not in stage.admin.list_topics()


def test_a_filter_and_another_topic(stage: DeadLetterStage) -> None:
    """What a filter leaves out stays for later calls."""
    stage.admin.create_topics([NewTopic("target", 1)]).check()
    done = stage.admin.redrive_dead_letters(stage.group, LetterFilter(offsets=range(1, 2)), to="target")
    assert done.counts == {("source", 0, "target"): 1}
    assert stage.admin.redrive_dead_letters(stage.group).counts == {("source", 0, "source"): 2}
    assert values(stage.admin, "target") == [b"b"]
    assert values(stage.admin, stage.source) == [b"a", b"b", b"c", b"a", b"c"]


def test_a_queue_that_the_group_does_not_name_any_more(stage: DeadLetterStage) -> None:
    stage.configure({"errors.deadletterqueue.topic.name": ""})
    with pytest.raises(KafkaException) as refused:
        stage.admin.redrive_dead_letters(stage.group)
    assert refused.value.error.code() == Errors.RESOURCE_NOT_FOUND
    assert stage.admin.redrive_dead_letters(stage.group, queue=stage.queue).counts == {("source", 0, "source"): 3}


def test_the_queue_itself_is_no_target(stage: DeadLetterStage) -> None:
    with pytest.raises(ConfigException, match=r"dlq\.source is the dead-letter queue itself"):
        stage.admin.redrive_dead_letters(stage.group, to=stage.queue)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group_id": ""}, "the name of a group must not be empty"),
        ({"letters": {"topics": ["source"]}}, "letters must be a LetterFilter, not dict"),
        ({"to": 5}, "to must be a str, not int"),
        ({"queue": None}, "queue must be a str, not NoneType"),
        ({"progress": 1}, "progress must be callable, not int"),
    ],
)
def test_invalid_arguments_are_refused(stage: DeadLetterStage, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        stage.admin.redrive_dead_letters(**{"group_id": stage.group, **arguments})
    assert LEDGER_TOPIC not in stage.admin.list_topics()


# ---- parts -----------------------------------------------------------------------------------------------------------


MARKER = b"\0\0\0\1", bytes(6)
"""Key and value of the marker that commits a transaction."""


def record(key: bytes | None, value: bytes | None) -> Any:
    return SimpleNamespace(key=key, value=value, headers=[("h", b"1")])


@pytest.mark.parametrize(
    ("letter", "source", "content"),
    [
        pytest.param((None, None), record(b"k", b"v"), Content(b"k", b"v", [("h", b"1")]), id="no copy"),
        pytest.param((None, None), record(None, None), Content(None, None, [("h", b"1")]), id="nothing to copy"),
        pytest.param((b"k", b"v"), record(b"k", b"v"), Content(b"k", b"v", [("h", b"1")]), id="copy and source"),
        pytest.param((b"k", b"v"), record(b"k", b"w"), Content(b"k", b"v"), id="another record at its offset"),
        pytest.param((None, b""), None, Content(None, b""), id="copy"),
        pytest.param((None, None), None, Skipped(GONE), id="neither"),
        pytest.param(MARKER, Marker(), Marker(), id="a marker"),
        pytest.param(MARKER, None, Skipped(PERHAPS_A_MARKER), id="perhaps a marker"),
        pytest.param(MARKER, record(*MARKER), Content(*MARKER, [("h", b"1")]), id="a record like a marker"),
    ],
)
def test_content(letter: tuple[bytes, bytes], source: Any, content: object) -> None:
    assert content_of(SimpleNamespace(key=letter[0], value=letter[1]), source) == content  # type: ignore[arg-type]


def test_ranges_of_offsets_are_sets(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        ranges, oracle = OffsetRanges(), set[int]()
        for _ in range(20):
            first = rng.randrange(40)
            end = first + rng.randrange(6)
            ranges.add(first, end)
            oracle |= set(range(first, end))
        assert {offset for offset in range(50) if offset in ranges} == oracle
        assert list(OffsetRanges(list(ranges))) == list(ranges)
        assert all(end < first for (_, end), (first, _) in zip(list(ranges), list(ranges)[1:], strict=False))
        *gaps, (last, end) = ranges.gaps()
        assert end == INT64_MAX
        assert {offset for first, end in gaps for offset in range(first, end)} == set(range(last)) - oracle
