"""Requests as a whole: the checks before a shard is used, concurrency, and errors of the log (BEHAVIOUR.md 4 to 10)."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.share_state import ShareCoordinator
from shareq.model.actor import Incoming, RecordsRead, Respond
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.base import Request
from tests.coordinator.share_state.stage import (
    HOME,
    KEY,
    OTHER,
    TOPIC,
    Delete,
    Initialize,
    Read,
    Stage,
    Summary,
    Write,
    batches,
    image,
    named,
    partition_of,
    topic_image,
)

FIELDS: dict[Any, dict[str, int]] = {
    Initialize: {"state_epoch": 1, "start_offset": 0},
    Read: {"leader_epoch": 1},
    Write: {"state_epoch": 1, "leader_epoch": 1, "start_offset": 0},
    Summary: {"leader_epoch": 1},
    Delete: {},
}
KINDS = [pytest.param(kind, id=kind.__name__.removesuffix("Request")) for kind in FIELDS]


def request(kind: Any, *partitions: tuple[TopicId, tuple[int, ...]], group: str = "g1") -> Request:
    topics = tuple(
        kind.Topic(topic_id=topic, partitions=tuple(kind.Partition(partition=p, **FIELDS[kind]) for p in indexes))
        for topic, indexes in partitions
    )
    built: Request = kind(group_id=group, topics=topics)
    return built


def results_of(response: Any) -> list[tuple[TopicId, int, Errors]]:
    """Topic id, partition and error of each result."""
    return [(t.topic_id, p.partition, p.error_code) for t in response.results for p in t.partitions]


def inactive_response(request: Request) -> Any:
    """The response of a coordinator that has not received an image."""
    (answer,) = ShareCoordinator(1, traced=False).handle(Incoming(1, request), 0)
    assert isinstance(answer, Respond)
    return answer.response


@pytest.mark.parametrize("kind", KINDS)
def test_empty_requests_have_empty_results(kind: Any) -> None:
    """BEHAVIOUR.md 5."""
    stage = Stage()
    assert stage.ask(request(kind)).results == ()
    assert stage.ask(request(kind, (TOPIC, (1,)), group="")).results == ()
    assert stage.logs == {}


@pytest.mark.parametrize("kind", KINDS)
def test_topic_without_partitions_makes_the_response_empty_except_for_initialize(kind: Any) -> None:
    """BEHAVIOUR.md 5."""
    stage = Stage()
    answered = results_of(stage.ask(request(kind, (TOPIC, (1,)), (OTHER, ()))))
    assert answered == ([(TOPIC, 1, Errors.NONE)] if kind is Initialize else [])
    assert stage.ask(request(kind, (OTHER, ()))).results == ()


@pytest.mark.parametrize("kind", KINDS)
def test_inactive_coordinator_is_not_available(kind: Any) -> None:
    """BEHAVIOUR.md 4."""
    response = inactive_response(request(kind, (TOPIC, (1, 2)), (OTHER, (0,))))
    expected = [(TOPIC, 1), (TOPIC, 2), (OTHER, 0)]
    assert results_of(response) == [(*part, Errors.COORDINATOR_NOT_AVAILABLE) for part in expected]


@pytest.mark.parametrize("kind", KINDS)
def test_read_and_write_check_the_group_id_before_the_active_coordinator(kind: Any) -> None:
    """BEHAVIOUR.md 4."""
    response = inactive_response(request(kind, (TOPIC, (1,)), group=""))
    refused = [(TOPIC, 1, Errors.COORDINATOR_NOT_AVAILABLE)]
    assert results_of(response) == ([] if kind in (Write, Read) else refused)
    assert inactive_response(request(kind)).results == ()


def test_response_waits_for_all_partitions() -> None:
    """BEHAVIOUR.md 6."""
    stage = Stage()
    stage.holding = True
    request_id = stage.send(request(Initialize, (TOPIC, (0, 1)), (OTHER, (2,))))
    assert len(stage.held) == 3
    stage.release()
    stage.release(Errors.NOT_ENOUGH_REPLICAS)
    assert request_id not in stage.answers
    stage.release()
    assert sorted(results_of(stage.answers[request_id])) == sorted(
        [
            (TOPIC, 0, Errors.NONE),
            (TOPIC, 1, Errors.COORDINATOR_NOT_AVAILABLE),
            (OTHER, 2, Errors.NONE),
        ]
    )


def test_partition_named_twice_has_the_later_result() -> None:
    """BEHAVIOUR.md 6."""
    stage = Stage()
    stage.initialize()
    entries = [
        Write.Partition(partition=3, state_epoch=3, leader_epoch=0, start_offset=5),
        Write.Partition(partition=3, state_epoch=2, leader_epoch=0, start_offset=9),
    ]
    response = stage.ask(Write(group_id="g1", topics=(Write.Topic(topic_id=TOPIC, partitions=tuple(entries)),)))
    assert results_of(response) == [(TOPIC, 3, Errors.FENCED_STATE_EPOCH)]
    assert stage.summary().start_offset == 5


LOG_ERRORS = [
    (Errors.NETWORK_EXCEPTION, Errors.COORDINATOR_LOAD_IN_PROGRESS),
    (Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_ENOUGH_REPLICAS, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.REQUEST_TIMED_OUT, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
    (Errors.KAFKA_STORAGE_ERROR, Errors.NOT_COORDINATOR),
    (Errors.MESSAGE_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
    (Errors.RECORD_LIST_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
    (Errors.INVALID_FETCH_SIZE, Errors.UNKNOWN_SERVER_ERROR),
    (Errors.CORRUPT_MESSAGE, Errors.CORRUPT_MESSAGE),
]


@pytest.mark.parametrize(("log_error", "expected"), [pytest.param(*row, id=row[0].name) for row in LOG_ERRORS])
def test_failed_append_changes_nothing_and_its_error_is_translated(log_error: Errors, expected: Errors) -> None:
    """BEHAVIOUR.md 8."""
    stage = Stage()
    stage.initialize(3, 7)
    stage.append_error = log_error
    assert stage.write("8-8/2/1", so=7) is expected
    assert stage.initialize(9, 0) is expected
    assert stage.delete() is expected
    stage.append_error = Errors.NONE
    assert stage.read(0).state_batches == ()
    assert (stage.summary().state_epoch, stage.summary().start_offset) == (3, 7)


def test_reads_wait_for_earlier_writes() -> None:
    """BEHAVIOUR.md 9."""
    stage = Stage()
    stage.initialize(3, 0)
    stage.holding = True
    write = stage.send(named(Write, state_epoch=3, leader_epoch=5, start_offset=9, state_batches=batches("9-9/2/1")))
    summary = stage.send(named(Summary))
    elsewhere = stage.send(named(Summary, SharePartitionKey("g2", OTHER, 0)))
    assert elsewhere in stage.answers, "another shard does not wait"
    assert not {write, summary} & stage.answers.keys()
    stage.release()
    assert stage.answers[summary].results[0].partitions[0].start_offset == 9


def test_write_committed_after_the_write_timeout_takes_effect() -> None:
    """BEHAVIOUR.md 10."""
    stage = Stage(image(topic_image("t", TOPIC, 4), write_timeout_ms=700))
    stage.initialize(3, 0)
    stage.holding = True
    late = stage.send(named(Write, state_epoch=3, leader_epoch=5, start_offset=9))
    stage.wait_until(699)
    assert late not in stage.answers
    stage.wait_until(700)
    assert results_of(stage.answers[late]) == [(TOPIC, 3, Errors.COORDINATOR_NOT_AVAILABLE)]
    stage.holding = False
    stage.release()
    assert stage.summary().start_offset == 9


def test_error_of_each_shard_state() -> None:
    """BEHAVIOUR.md 7. COORDINATOR_LOAD_IN_PROGRESS only while loading; NOT_COORDINATOR before the election, after a
    failed load and after the resignation."""
    stage = Stage(load=False)

    def error() -> Errors:
        answered: Errors = stage.summary().error_code
        return answered

    def shards() -> dict[str, int]:
        return {dict(tags)["state"]: count for (_, tags), count in stage.coordinator.gauges().items()}

    assert error() is Errors.NOT_COORDINATOR
    stage.elect(HOME)
    assert error() is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert shards() == {"loading": 1, "failed": 0}
    stage.handle(RecordsRead(stage.loads.pop().id, Errors.NONE, [(0, b"\x00\x01", None)], 1, True))
    assert error() is Errors.NOT_COORDINATOR
    assert shards() == {"loading": 0, "failed": 1}
    stage.elect(HOME)
    assert error() is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.handle(RecordsRead(stage.loads.pop().id, Errors.NONE, [(0, b"\x00\x09", None)], 1, True))
    assert error() is Errors.NONE
    stage.resign(HOME)
    assert error() is Errors.NOT_COORDINATOR


def test_partition_of_a_key_depends_on_the_partition_count() -> None:
    """BEHAVIOUR.md 1."""
    stage = Stage(image(topic_image("t", TOPIC, 4), state_partitions=3))
    stage.initialize()
    assert list(stage.logs) == [partition_of(KEY, 3)] == [1]


def test_changed_partition_count_applies_to_known_keys() -> None:
    """BEHAVIOUR.md 1. The state topic is created with another count than the broker's config."""
    topics = topic_image("t", TOPIC, 4), topic_image("u", OTHER, 4)
    stage = Stage(image(*topics))
    new_key = KEY._replace(partition=0)
    assert (stage.summary().error_code, partition_of(KEY), partition_of(KEY, 3)) == (Errors.NONE, HOME, 1)
    stage.change(image(*topics, state_partitions=3))
    assert [stage.initialize(key=key) for key in (KEY, new_key)] == [Errors.NONE, Errors.NONE]
    assert set(stage.logs) == {partition_of(KEY, 3), partition_of(new_key, 3)}
    assert partition_of(new_key, 3) != partition_of(new_key)


def test_group_id_with_a_colon_has_its_own_state() -> None:
    """BEHAVIOUR.md 1, hard case 25."""
    stage = Stage()
    odd = SharePartitionKey("a:b", TOPIC, 0)
    stage.initialize(3, 1, odd)
    assert list(stage.logs) == [31]
    assert (stage.summary(odd).start_offset, stage.summary(odd._replace(group_id="a")).start_offset) == (1, -1)
