"""Loading of share-partitions, durability of their state, and dropping.

BEHAVIOUR.md, 6 to 11, 36 to 41 and 56 to 58.
"""

from typing import Any

import pytest

from shareq.model.actor import Answer, FindOffset, OffsetFound, Persist
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionDropped, SharePartitionLoaded
from shareq.model.ids import TopicId
from shareq.model.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    StateBatch,
    WriteShareGroupStateResponse,
)
from tests.leader.stage import TOPIC_ID, Member, Stage

E = Errors

CLIENT_ERRORS = [
    (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE),
    (E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
    (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE),
    (E.GROUP_ID_NOT_FOUND, E.GROUP_ID_NOT_FOUND),
    (E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION),
    (E.FENCED_STATE_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
    (E.FENCED_LEADER_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
    (E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR),
    (E.NETWORK_EXCEPTION, E.UNKNOWN_SERVER_ERROR),
]
DROPPING = {E.GROUP_ID_NOT_FOUND, E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_LEADER_OR_FOLLOWER}


def rows() -> list[Any]:
    return [pytest.param(error, client_error, id=error.name) for error, client_error in CLIENT_ERRORS]


def holding(stage: Stage) -> Member:
    stage.produce(0, 10)
    member = stage.member("m")
    assert member.fetch("0").acquired
    return member


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_the_first_fetch_loads_with_the_leader_epoch_and_the_second_does_not() -> None:
    stage = Stage()
    stage.set_leader(0, 0, 5)
    stage.hold = True
    stage.member("m").fetch("0")
    stage.member("n").fetch("0")
    (persist,) = stage.held
    assert persist.request == ReadShareGroupStateRequest(
        group_id="g",
        topics=(
            ReadShareGroupStateRequest.Topic(
                topic_id=TOPIC_ID,
                partitions=(ReadShareGroupStateRequest.Partition(partition=0, leader_epoch=5),),
            ),
        ),
    )


def test_the_durable_state_is_loaded() -> None:
    stage = Stage()
    stage.produce(0, 20)
    state = stage.state()
    state.start_offset = 5
    state.records = {5: (0, 2), 6: (2, 1), 7: (4, 5)}
    assert stage.member("m").fetch("0").acquired == {0: [(5, 5, 3), (8, 19, 1)]}


@pytest.mark.parametrize(
    ("reset", "timestamp", "first"),
    [
        pytest.param("earliest", -2, 0, id="earliest: the log's start"),
        pytest.param("latest", -1, 10, id="latest: the high watermark"),
        pytest.param("by_duration:PT10S", 990_000, 10, id="by duration: 10 s ago"),
        pytest.param("by_duration:P99D", 0, 10, id="by duration: before the first record"),
    ],
)
def test_share_auto_offset_reset_sets_the_first_start_offset(reset: str, timestamp: int, first: int) -> None:
    stage = Stage(group={"share.auto.offset.reset": reset})
    stage.produce(0, 5, 5)
    found = []

    def find(effect: FindOffset) -> OffsetFound:
        found.append(effect.timestamp)
        return OffsetFound(effect.id, E.NONE, first)

    stage._found = find  # type: ignore[method-assign]
    exchange = stage.member("m").fetch("0")
    stage.produce(0, 5)
    assert found == [timestamp]
    assert exchange.acquired[0][0][0] == first


def test_latest_is_the_high_watermark_for_read_committed_too() -> None:
    stage = Stage(group={"share.auto.offset.reset": "latest", "share.isolation.level": "read_committed"})
    stage.produce(0, 5, 5)
    stage.logs[0].stable = 5
    exchange = stage.member("m").fetch("0")
    stage.logs[0].stable = None
    stage.produce(0, 5)
    assert exchange.acquired == {0: [(10, 14, 1)]}


@pytest.mark.parametrize(
    ("found", "error"),
    [
        pytest.param((E.NONE, -1), E.OFFSET_NOT_AVAILABLE, id="no such offset"),
        pytest.param((E.NOT_LEADER_OR_FOLLOWER, -1), E.NOT_LEADER_OR_FOLLOWER, id="the log's own error"),
    ],
)
def test_error_of_a_start_offset_that_is_not_found(found: tuple[Errors, int], error: Errors) -> None:
    stage = Stage()
    stage.produce(0, 5)
    stage.find_offset = found
    member = stage.member("m")
    assert member.fetch("0").errors == {0: error}
    stage.find_offset = None
    assert member.fetch().acquired == {0: [(0, 4, 1)]}, "the next fetch loads again"


@pytest.mark.parametrize(("error", "client_error"), rows())
def test_error_of_state_that_cannot_be_read(error: Errors, client_error: Errors) -> None:
    stage = Stage(traced=True)
    stage.produce(0, 5)
    stage.persister_errors.append(error)
    member = stage.member("m")
    assert member.fetch("0").errors == {0: client_error}
    assert [e.reason for e in stage.events if isinstance(e, SharePartitionDropped)] == [
        f"its state could not be read: {error.name}"
    ]
    assert member.fetch().acquired == {0: [(0, 4, 1)]}, "the next fetch loads again"


def read_response(*partitions: int, topic_id: TopicId = TOPIC_ID) -> ReadShareGroupStateResponse:
    parts = tuple(ReadShareGroupStateResponse.Partition(partition=p) for p in partitions)
    return ReadShareGroupStateResponse(
        results=(ReadShareGroupStateResponse.Topic(topic_id=topic_id, partitions=parts),)
    )


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(None, id="no answer"),
        pytest.param(ReadShareGroupStateResponse(), id="an empty answer"),
        pytest.param(read_response(1), id="another partition"),
        pytest.param(read_response(0, 1), id="one partition too many"),
        pytest.param(read_response(0, topic_id=TopicId("X" * 22)), id="another topic"),
        pytest.param(WriteShareGroupStateResponse(), id="response of another API"),
    ],
)
def test_a_response_about_another_partition_fails_the_load(response: Any) -> None:
    stage = Stage()
    stage.hold = True
    exchange = stage.member("m").fetch("0")
    stage.deliver(Answer(stage.held[0].id, response, E.NETWORK_EXCEPTION if response is None else E.NONE))
    assert exchange.errors == {0: E.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize(
    "batch",
    [pytest.param(StateBatch(4, 9, 0, 1), id="below the start"), pytest.param(StateBatch(9, 8, 0, 1), id="backwards")],
)
def test_invalid_durable_state_fails_the_load(batch: StateBatch) -> None:
    stage = Stage()
    stage.produce(0, 5)
    stage.state().start_offset = 5
    stage.state().batches = lambda: (batch,)  # type: ignore[method-assign]
    assert stage.member("m").fetch("0").errors == {0: E.UNKNOWN_SERVER_ERROR}


def test_a_share_partition_can_be_dropped_while_it_loads() -> None:
    stage = Stage()
    stage.hold = True
    exchange = stage.member("m").fetch("0")
    stage.set_leader(0, 1, 1)
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    stage.release()
    assert stage.effects == []


def test_a_share_partition_can_be_dropped_while_its_start_offset_is_looked_up() -> None:
    stage = Stage()
    stage.hold = True
    exchange = stage.member("m").fetch("0")
    (read,) = stage.held
    effects = stage.leader.handle(stage.persist(read), stage.now_ms)
    stage.set_leader(0, 1, 1)
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    assert isinstance(effects[0], FindOffset)
    assert stage.leader.handle(OffsetFound(effects[0].id, E.NONE, 0), stage.now_ms) == []


def test_a_session_closed_while_its_partition_loads_releases_no_record() -> None:
    stage = Stage()
    stage.hold = True
    member = stage.member("m")
    waiting = member.fetch("0")
    assert member.close().error is E.NONE
    assert (waiting.error, len(stage.held)) == (E.NONE, 1)


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_write_has_the_state_epoch_and_the_leader_epoch() -> None:
    stage = Stage()
    stage.set_leader(0, 0, 5)
    stage._read = lambda group_id, partition, error: ReadShareGroupStateResponse.Partition(  # type: ignore[method-assign]
        partition=partition, error_code=error, state_epoch=7, start_offset=0
    )
    member = holding(stage)
    member.acknowledge({0: "0-9:1"})
    (write,) = stage.writes
    assert (write.partition, write.state_epoch, write.leader_epoch) == (0, 7, 5)


def test_the_response_waits_until_all_acknowledgements_are_durable() -> None:
    stage = Stage(partitions=2)
    stage.produce(1, 10)
    member = holding(stage)
    member.fetch("1")
    stage.hold = True
    exchange = member.acknowledge({0: "0-9:1", 1: "0-9:1"})
    stage.release(1)
    assert exchange.waiting
    stage.release()
    assert exchange.errors == {0: E.NONE, 1: E.NONE}


def test_a_fetch_with_acknowledgements_waits_for_records_and_writes() -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    exchange = member.fetch(acks={0: "0-9:1"})
    stage.produce(0, 5)
    assert exchange.waiting
    stage.release()
    assert (exchange.acks, exchange.acquired) == ({0: E.NONE}, {0: [(10, 14, 1)]})


@pytest.mark.parametrize("order", [pytest.param((0, 1, 2), id="in order"), pytest.param((2, 0, 1), id="out of order")])
def test_several_writes_of_one_share_partition_settle_in_any_order(order: tuple[int, ...]) -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    exchanges = [member.acknowledge({0: text}) for text in ("0-2:1", "3-5:2", "6-9:3")]
    held = list(stage.held)
    for i in order:
        stage.deliver(stage.persist(held[i]))
        assert not exchanges[i].waiting
    stage.hold = False
    assert [e.errors for e in exchanges] == [{0: E.NONE}] * 3
    assert stage.member("n").fetch("0").acquired == {0: [(3, 5, 2)]}


def test_records_under_a_write_cannot_be_acknowledged_or_acquired() -> None:
    """BEHAVIOUR.md, hard case 2."""
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    first = member.acknowledge({0: "0-9:2"})
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.INVALID_RECORD_STATE}
    other = stage.member("n").fetch("0")
    assert other.waiting
    stage.release()
    assert (first.errors, other.acquired) == ({0: E.NONE}, {0: [(0, 9, 2)]})


@pytest.mark.parametrize("by_fetch", [pytest.param(True, id="on a fetch"), pytest.param(False, id="by itself")])
@pytest.mark.parametrize(("error", "client_error"), rows())
def test_errors_of_a_failed_write(error: Errors, client_error: Errors, by_fetch: bool) -> None:
    stage = Stage(traced=True)
    member = holding(stage)
    stage.persister_errors.append(error)
    if by_fetch:
        part = member.fetch(acks={0: "0-9:1"}, max_wait_ms=0).parts[0]
        assert (part.acknowledge_error_code, part.current_leader.leader_epoch) == (client_error, 0)
    else:
        assert member.acknowledge({0: "0-9:1"}).errors == {0: client_error}
    dropped = [e for e in stage.events if isinstance(e, SharePartitionDropped)]
    assert bool(dropped) == (client_error in DROPPING)
    if client_error in DROPPING:
        assert member.acknowledge({0: "0-9:1"}).errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
        assert stage.member("n").fetch("0").acquired == {0: [(0, 9, 1)]}, "loaded again from the last durable state"
    else:
        assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}, "the member still holds the records"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(0, None, E.REQUEST_TIMED_OUT), id="no answer"),
        pytest.param(Answer(0, WriteShareGroupStateResponse()), id="the partition is missing"),
    ],
)
def test_a_write_without_a_result_has_failed(answer: Answer) -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    exchange = member.acknowledge({0: "0-9:1"})
    stage.deliver(answer._replace(id=stage.held[0].id))
    assert exchange.errors == {0: E.UNKNOWN_SERVER_ERROR}


def test_a_failed_write_that_drops_the_share_partition_ends_waiting_fetches() -> None:
    stage = Stage()
    member = holding(stage)
    waiting = stage.member("n").fetch("0")
    stage.persister_errors.append(E.GROUP_ID_NOT_FOUND)
    member.acknowledge({0: "0-9:1"})
    assert waiting.errors == {0: E.GROUP_ID_NOT_FOUND}


def test_a_lock_timeout_holds_even_if_its_write_fails() -> None:
    """BEHAVIOUR.md, hard case 7."""
    stage = Stage(traced=True)
    holding(stage)
    stage.persister_errors.append(E.FENCED_STATE_EPOCH)
    stage.pass_time(30_000)
    assert len(stage.writes) == 1
    assert not [e for e in stage.events if isinstance(e, SharePartitionDropped)], (
        "a failed write of a timeout drops nothing"
    )
    assert stage.member("n").fetch("0").acquired == {0: [(0, 9, 2)]}


def test_a_lock_that_expires_during_a_failing_write_releases_the_records() -> None:
    """BEHAVIOUR.md, hard case 3."""
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    exchange = member.acknowledge({0: "0-9:1"})
    stage.pass_time(31_000)
    stage.release(error=E.COORDINATOR_NOT_AVAILABLE)
    stage.hold = False
    assert exchange.errors == {0: E.COORDINATOR_NOT_AVAILABLE}
    assert stage.member("n").fetch("0").acquired == {0: [(0, 9, 2)]}
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.INVALID_RECORD_STATE}


def test_an_expired_lock_does_not_release_acknowledged_records() -> None:
    """BEHAVIOUR.md, hard case 4."""
    stage = Stage()
    member = holding(stage)
    stage.pass_time(29_999)
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}
    stage.pass_time(100_000)
    assert stage.member("n").fetch("0", max_wait_ms=0).acquired == {}
    assert len(stage.writes) == 1


def test_locks_of_different_times_expire_one_after_the_other() -> None:
    stage = Stage()
    stage.produce(0, 5, 5)
    member, other = stage.member("m"), stage.member("n")
    member.fetch("0", max_records=5)
    stage.pass_time(10_000)
    member.fetch(max_records=5)
    exchange = other.fetch("0", max_wait_ms=100_000)
    stage.pass_time(20_000)
    assert exchange.acquired == {0: [(0, 4, 2)]}
    again = other.fetch(max_wait_ms=100_000)
    stage.pass_time(10_000)
    assert again.acquired == {0: [(5, 9, 2)]}


# ---- dropping while writes are in flight -----------------------------------------------------------------------------


def test_requests_of_a_dropped_share_partition_receive_the_result_of_their_write() -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    one, two = member.acknowledge({0: "0-4:1"}), member.acknowledge({0: "5-9:1"})
    stage.set_leader(0, 1, 1)
    stage.release(1, error=E.FENCED_LEADER_EPOCH)
    stage.release()
    assert (one.errors, two.errors) == ({0: E.NONE}, {0: E.NOT_LEADER_OR_FOLLOWER})
    assert two.parts[0].current_leader.leader_id == 1


def test_state_is_not_read_again_while_old_writes_are_in_flight() -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    acknowledged = member.acknowledge({0: "0-4:1"})
    failed = member.acknowledge({0: "5-9:1"})
    stage.release(1, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    assert failed.errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
    exchange = member.fetch()
    assert [type(p.request).__name__ for p in stage.held] == ["WriteShareGroupStateRequest"]
    stage.hold = False
    stage.release()
    assert acknowledged.errors == {0: E.NONE}
    assert exchange.acquired == {0: [(5, 9, 1)]}, "accepted records are not delivered again"


def test_state_is_read_again_after_the_last_of_several_old_writes() -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    slow = [member.acknowledge({0: "0-1:1"}), member.acknowledge({0: "2-4:1"})]
    member.acknowledge({0: "5-9:1"})
    stage.release(2, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    exchange = member.fetch()
    stage.release(0)
    assert [type(p.request).__name__ for p in stage.held] == ["WriteShareGroupStateRequest"]
    stage.hold = False
    stage.release()
    assert [acknowledged.errors for acknowledged in slow] == [{0: E.NONE}] * 2
    assert exchange.acquired == {0: [(5, 9, 1)]}


@pytest.mark.parametrize("error", [pytest.param(error, id=error.name) for error in (E.NONE, E.FENCED_LEADER_EPOCH)])
def test_a_read_for_a_dropped_share_partition_is_ignored_by_the_next(error: Errors) -> None:
    stage = Stage(traced=True)
    stage.produce(0, 10)
    member = stage.member("m")
    stage.hold = True
    lost = member.fetch("0")
    stage.set_leader(0, 1, 1)
    assert lost.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    stage.set_leader(0, 0, 2)
    exchange = member.fetch()
    stage.release(0, error=error)
    assert exchange.waiting
    stage.release(0)
    assert exchange.acquired == {0: [(0, 9, 1)]}
    assert [event.leader_epoch for event in stage.events if isinstance(event, SharePartitionLoaded)] == [2]


def test_a_share_partition_can_be_dropped_before_its_state_is_read() -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    slow, failed = member.acknowledge({0: "0-4:1"}), member.acknowledge({0: "5-9:1"})
    stage.release(1, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    exchange = member.fetch()
    stage.set_leader(0, 1, 1)
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    stage.hold = False
    stage.release()
    assert (slow.errors, failed.errors) == ({0: E.NONE}, {0: E.UNKNOWN_TOPIC_OR_PARTITION})
    stage.set_leader(0, 0, 2)
    assert member.fetch().acquired == {0: [(5, 9, 1)]}


@pytest.mark.parametrize("sole", [True, False], ids=["no other can have led between", "another may have led between"])
def test_locks_at_a_newer_leader_epoch_of_the_same_broker(sole: bool) -> None:
    stage = Stage(sole=sole)
    member = holding(stage)
    stage.set_leader(0, 0, 5)
    other = stage.member("n").fetch("0")
    assert other.waiting if sole else other.acquired == {0: [(0, 9, 1)]}
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE if sole else E.INVALID_RECORD_STATE}
    assert [write.leader_epoch for write in stage.writes] == ([5] if sole else [])


def test_a_sole_leader_is_followed_by_another_broker() -> None:
    stage = Stage(sole=True)
    member = holding(stage)
    stage.set_leader(0, 1, 1)
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("error", sorted(DROPPING), ids=lambda error: error.name)
def test_a_sole_leader_keeps_its_locks_when_a_read_fails(error: Errors) -> None:
    """The fetch waits as for records, and the log is read again when it is reported to have grown."""
    stage = Stage(sole=True)
    member = holding(stage)
    stage.logs[0].error = error
    other = stage.member("n").fetch("0", max_wait_ms=10_000)
    reads = stage.logs[0].reads
    stage.pass_time(5_000)
    assert other.waiting
    assert stage.logs[0].reads == reads
    stage.logs[0].error = E.NONE
    stage.produce(0, 3)
    assert other.acquired == {0: [(10, 12, 1)]}
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}


def test_a_dropped_share_partition_has_no_timers() -> None:
    stage = Stage()
    holding(stage)
    stage.set_leader(0, 1, 1)
    assert stage.leader.wake_at_ms is None


def test_every_write_is_one_persist_of_one_group() -> None:
    stage = Stage(partitions=2)
    stage.produce(1, 10)
    member = holding(stage)
    member.fetch("1")
    stage.hold = True
    member.acknowledge({0: "0-9:1", 1: "0-9:1"})
    assert [type(effect) for effect in stage.effects] == [Persist, Persist]
