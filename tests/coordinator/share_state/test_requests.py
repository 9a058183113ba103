"""Requests as a whole: what the coordinator says before it looks at a shard, and how errors of the log come out
(BEHAVIOUR.md 4-10)."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.share_state import ShareCoordinator
from shareq.model.actor import Incoming, RecordsRead, Respond
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.base import Request
from tests.coordinator.share_state.support import (
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
    made: Request = kind(group_id=group, topics=topics)
    return made


def told(response: Any) -> list[tuple[TopicId, int, Errors]]:
    return [(t.topic_id, p.partition, p.error_code) for t in response.results for p in t.partitions]


def inactive(asked: Request) -> Any:
    """The answer of a coordinator that has not heard of the cluster yet."""
    (answer,) = ShareCoordinator(1, traced=False).handle(Incoming(1, asked), 0)
    assert isinstance(answer, Respond)
    return answer.response


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_asked_nothing_answered(kind: Any) -> None:
    stage = Stage()
    assert stage.ask(request(kind)).results == ()
    assert stage.ask(request(kind, (TOPIC, (1,)), group="")).results == ()
    assert stage.logs == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_without_partitions_empties_the_answer_but_not_of_initialize(kind: Any) -> None:
    stage = Stage()
    answered = told(stage.ask(request(kind, (TOPIC, (1,)), (OTHER, ()))))
    assert answered == ([(TOPIC, 1, Errors.NONE)] if kind is Initialize else [])
    assert stage.ask(request(kind, (OTHER, ()))).results == ()


@pytest.mark.parametrize("kind", KINDS)
def test_an_inactive_coordinator_is_not_available(kind: Any) -> None:
    response = inactive(request(kind, (TOPIC, (1, 2)), (OTHER, (0,))))
    expected = [(TOPIC, 1), (TOPIC, 2), (OTHER, 0)]
    assert told(response) == [(*part, Errors.COORDINATOR_NOT_AVAILABLE) for part in expected]


@pytest.mark.parametrize("kind", KINDS)
def test_write_and_read_look_at_the_request_before_they_are_inactive(kind: Any) -> None:
    response = inactive(request(kind, (TOPIC, (1,)), group=""))
    refused = [(TOPIC, 1, Errors.COORDINATOR_NOT_AVAILABLE)]
    assert told(response) == ([] if kind in (Write, Read) else refused)
    assert inactive(request(kind)).results == ()


def test_the_answer_waits_for_all_partitions() -> None:
    stage = Stage()
    stage.holding = True
    asked = stage.begin(request(Initialize, (TOPIC, (0, 1)), (OTHER, (2,))))
    assert len(stage.held) == 3
    stage.release()
    stage.release(Errors.NOT_ENOUGH_REPLICAS)
    assert asked not in stage.answers
    stage.release()
    assert sorted(told(stage.answers[asked])) == sorted(
        [
            (TOPIC, 0, Errors.NONE),
            (TOPIC, 1, Errors.COORDINATOR_NOT_AVAILABLE),
            (OTHER, 2, Errors.NONE),
        ]
    )


def test_a_partition_that_is_named_twice_is_done_twice_and_the_later_result_is_told() -> None:
    stage = Stage()
    stage.initialize()
    entries = [
        Write.Partition(partition=3, state_epoch=3, leader_epoch=0, start_offset=5),
        Write.Partition(partition=3, state_epoch=2, leader_epoch=0, start_offset=9),
    ]
    response = stage.ask(Write(group_id="g1", topics=(Write.Topic(topic_id=TOPIC, partitions=tuple(entries)),)))
    assert told(response) == [(TOPIC, 3, Errors.FENCED_STATE_EPOCH)]
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


@pytest.mark.parametrize(
    ("of_the_log", "told_to_the_client"), [pytest.param(*row, id=row[0].name) for row in LOG_ERRORS]
)
def test_a_failed_append_changes_nothing_and_is_mapped(of_the_log: Errors, told_to_the_client: Errors) -> None:
    """BEHAVIOUR.md 8."""
    stage = Stage()
    stage.initialize(3, 7)
    stage.append_error = of_the_log
    assert stage.write("8-8/2/1", so=7) is told_to_the_client
    assert stage.initialize(9, 0) is told_to_the_client
    assert stage.delete() is told_to_the_client
    stage.append_error = Errors.NONE
    assert stage.read(0).state_batches == ()
    assert (stage.summary().state_epoch, stage.summary().start_offset) == (3, 7)


def test_reads_wait_for_what_was_written_before() -> None:
    stage = Stage()
    stage.initialize(3, 0)
    stage.holding = True
    write = stage.begin(named(Write, state_epoch=3, leader_epoch=5, start_offset=9, state_batches=batches("9-9/2/1")))
    summary = stage.begin(named(Summary))
    elsewhere = stage.begin(named(Summary, SharePartitionKey("g2", OTHER, 0)))
    assert elsewhere in stage.answers, "another shard is not held up"
    assert not {write, summary} & stage.answers.keys()
    stage.release()
    assert stage.answers[summary].results[0].partitions[0].start_offset == 9


def test_a_write_after_the_write_timeout_counts() -> None:
    """BEHAVIOUR.md 10."""
    stage = Stage(image(topic_image("t", TOPIC, 4), write_timeout_ms=700))
    stage.initialize(3, 0)
    stage.holding = True
    late = stage.begin(named(Write, state_epoch=3, leader_epoch=5, start_offset=9))
    stage.wait(699)
    assert late not in stage.answers
    stage.wait(700)
    assert told(stage.answers[late]) == [(TOPIC, 3, Errors.COORDINATOR_NOT_AVAILABLE)]
    stage.holding = False
    stage.release()
    assert stage.summary().start_offset == 9


def test_refusals_by_the_station_of_the_shard() -> None:
    """BEHAVIOUR.md 7. 14 only while loading; 16 before, after a failed load, and after resignation."""
    stage = Stage(load=False)

    def error() -> Errors:
        answered: Errors = stage.summary().error_code
        return answered

    assert error() is Errors.NOT_COORDINATOR
    stage.elect(HOME)
    assert error() is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.send(RecordsRead(stage.loads.pop().id, Errors.NONE, [(0, b"\x00\x01", None)], 1, True))
    assert error() is Errors.NOT_COORDINATOR
    stage.elect(HOME)
    assert error() is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.send(RecordsRead(stage.loads.pop().id, Errors.NONE, [(0, b"\x00\x09", None)], 1, True))
    assert error() is Errors.NONE
    stage.resign(HOME)
    assert error() is Errors.NOT_COORDINATOR


def test_keys_are_spread_over_as_many_partitions_as_the_topic_has() -> None:
    stage = Stage(image(topic_image("t", TOPIC, 4), state_partitions=3))
    stage.initialize()
    assert list(stage.logs) == [partition_of(KEY, 3)] == [1]


def test_a_changed_partition_count_of_the_state_topic_moves_known_keys() -> None:
    """The state topic was created with another count than the broker's configuration had announced."""
    topics = topic_image("t", TOPIC, 4), topic_image("u", OTHER, 4)
    stage = Stage(image(*topics))
    strange = KEY._replace(partition=0)
    assert (stage.summary().error_code, partition_of(KEY), partition_of(KEY, 3)) == (Errors.NONE, HOME, 1)
    stage.change(image(*topics, state_partitions=3))
    assert [stage.initialize(key=key) for key in (KEY, strange)] == [Errors.NONE, Errors.NONE]
    assert set(stage.logs) == {partition_of(KEY, 3), partition_of(strange, 3)}
    assert partition_of(strange, 3) != partition_of(strange)


def test_a_group_id_with_a_colon_has_a_state_of_its_own() -> None:
    """BEHAVIOUR.md 1, hard case 25."""
    stage = Stage()
    odd = SharePartitionKey("a:b", TOPIC, 0)
    stage.initialize(3, 1, odd)
    assert list(stage.logs) == [31]
    assert (stage.summary(odd).start_offset, stage.summary(odd._replace(group_id="a")).start_offset) == (1, -1)
