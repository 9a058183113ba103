"""How share-partitions come into memory, how their state becomes durable, and how they are dropped."""

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
from tests.leader.desk import TOPIC_ID, Desk, Member

E = Errors

SEEN_BY_CLIENTS = [
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
    return [pytest.param(error, told, id=error.name) for error, told in SEEN_BY_CLIENTS]


def holding(desk: Desk) -> Member:
    desk.produce(0, 10)
    member = desk.member("m")
    assert member.fetch("0").acquired
    return member


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_the_first_fetch_loads_with_the_leader_epoch_and_the_second_does_not() -> None:
    desk = Desk()
    desk.set_leader(0, 0, 5)
    desk.hold = True
    desk.member("m").fetch("0")
    desk.member("n").fetch("0")
    (persist,) = desk.held
    assert persist.request == ReadShareGroupStateRequest(
        group_id="g",
        topics=(
            ReadShareGroupStateRequest.Topic(
                topic_id=TOPIC_ID,
                partitions=(ReadShareGroupStateRequest.Partition(partition=0, leader_epoch=5),),
            ),
        ),
    )


def test_what_was_durable_is_what_is_loaded() -> None:
    desk = Desk()
    desk.produce(0, 20)
    state = desk.state()
    state.start_offset = 5
    state.records = {5: (0, 2), 6: (2, 1), 7: (4, 5)}
    assert desk.member("m").fetch("0").acquired == {0: [(5, 5, 3), (8, 19, 1)]}


@pytest.mark.parametrize(
    ("reset", "timestamp", "first"),
    [
        pytest.param("earliest", -2, 0, id="earliest: the log's start"),
        pytest.param("latest", -1, 10, id="latest: the high watermark"),
        pytest.param("by_duration:PT10S", 990_000, 10, id="by duration: so long ago"),
        pytest.param("by_duration:P99D", 0, 10, id="by duration: before all time"),
    ],
)
def test_without_durable_state_the_group_says_where_to_start(reset: str, timestamp: int, first: int) -> None:
    desk = Desk(group={"share.auto.offset.reset": reset})
    desk.produce(0, 5, 5)
    found = []

    def find(effect: FindOffset) -> OffsetFound:
        found.append(effect.timestamp)
        return OffsetFound(effect.id, E.NONE, first)

    desk._found = find  # type: ignore[method-assign]
    exchange = desk.member("m").fetch("0")
    desk.produce(0, 5)
    assert found == [timestamp]
    assert exchange.acquired[0][0][0] == first


def test_latest_is_the_high_watermark_also_for_read_committed() -> None:
    desk = Desk(group={"share.auto.offset.reset": "latest", "share.isolation.level": "read_committed"})
    desk.produce(0, 5, 5)
    desk.logs[0].stable = 5
    exchange = desk.member("m").fetch("0")
    desk.logs[0].stable = None
    desk.produce(0, 5)
    assert exchange.acquired == {0: [(10, 14, 1)]}


@pytest.mark.parametrize(
    ("found", "error"),
    [
        pytest.param((E.NONE, -1), E.OFFSET_NOT_AVAILABLE, id="nothing so new"),
        pytest.param((E.NOT_LEADER_OR_FOLLOWER, -1), E.NOT_LEADER_OR_FOLLOWER, id="the log's own error"),
    ],
)
def test_a_start_offset_that_cannot_be_found(found: tuple[Errors, int], error: Errors) -> None:
    desk = Desk()
    desk.produce(0, 5)
    desk.find_offset = found
    member = desk.member("m")
    assert member.fetch("0").errors == {0: error}
    desk.find_offset = None
    assert member.fetch().acquired == {0: [(0, 4, 1)]}, "the next fetch loads anew"


@pytest.mark.parametrize(("error", "told"), rows())
def test_state_that_cannot_be_read(error: Errors, told: Errors) -> None:
    desk = Desk(traced=True)
    desk.produce(0, 5)
    desk.persister_errors.append(error)
    member = desk.member("m")
    assert member.fetch("0").errors == {0: told}
    assert [e.reason for e in desk.events if isinstance(e, SharePartitionDropped)] == [
        f"its state could not be read: {error.name}"
    ]
    assert member.fetch().acquired == {0: [(0, 4, 1)]}, "the next fetch loads anew"


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
        pytest.param(read_response(0, 1), id="one too many"),
        pytest.param(read_response(0, topic_id=TopicId("X" * 22)), id="another topic"),
        pytest.param(WriteShareGroupStateResponse(), id="the answer to something else"),
    ],
)
def test_an_answer_that_is_not_about_this_partition_fails_the_load(response: Any) -> None:
    desk = Desk()
    desk.hold = True
    exchange = desk.member("m").fetch("0")
    desk.deliver(Answer(desk.held[0].id, response, E.NETWORK_EXCEPTION if response is None else E.NONE))
    assert exchange.errors == {0: E.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize(
    "batch",
    [pytest.param(StateBatch(4, 9, 0, 1), id="below the start"), pytest.param(StateBatch(9, 8, 0, 1), id="backwards")],
)
def test_durable_state_that_makes_no_sense_fails_the_load(batch: StateBatch) -> None:
    desk = Desk()
    desk.produce(0, 5)
    desk.state().start_offset = 5
    desk.state().batches = lambda: (batch,)  # type: ignore[method-assign]
    assert desk.member("m").fetch("0").errors == {0: E.UNKNOWN_SERVER_ERROR}


def test_dropped_while_it_loads() -> None:
    desk = Desk()
    desk.hold = True
    exchange = desk.member("m").fetch("0")
    desk.set_leader(0, 1, 1)
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    desk.release()
    assert desk.effects == []


def test_dropped_while_its_start_offset_is_looked_up() -> None:
    desk = Desk()
    desk.hold = True
    exchange = desk.member("m").fetch("0")
    (read,) = desk.held
    effects = desk.leader.handle(desk.persist(read), desk.now_ms)
    desk.set_leader(0, 1, 1)
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    assert isinstance(effects[0], FindOffset)
    assert desk.leader.handle(OffsetFound(effects[0].id, E.NONE, 0), desk.now_ms) == []


def test_a_session_closed_while_its_partition_loads_has_nothing_to_release() -> None:
    desk = Desk()
    desk.hold = True
    member = desk.member("m")
    waiting = member.fetch("0")
    assert member.close().error is E.NONE
    assert (waiting.error, len(desk.held)) == (E.NONE, 1)


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_write_carries_the_epochs() -> None:
    desk = Desk()
    desk.set_leader(0, 0, 5)
    desk._read = lambda group_id, partition, error: ReadShareGroupStateResponse.Partition(  # type: ignore[method-assign]
        partition=partition, error_code=error, state_epoch=7, start_offset=0
    )
    member = holding(desk)
    member.acknowledge({0: "0-9:1"})
    (write,) = desk.writes
    assert (write.partition, write.state_epoch, write.leader_epoch) == (0, 7, 5)


def test_the_answer_waits_until_all_that_was_acknowledged_is_durable() -> None:
    desk = Desk(partitions=2)
    desk.produce(1, 10)
    member = holding(desk)
    member.fetch("1")
    desk.hold = True
    exchange = member.acknowledge({0: "0-9:1", 1: "0-9:1"})
    desk.release(1)
    assert exchange.waiting
    desk.release()
    assert exchange.errors == {0: E.NONE, 1: E.NONE}


def test_a_fetch_with_acknowledgements_waits_for_both() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    exchange = member.fetch(acks={0: "0-9:1"})
    desk.produce(0, 5)
    assert exchange.waiting
    desk.release()
    assert (exchange.acks, exchange.acquired) == ({0: E.NONE}, {0: [(10, 14, 1)]})


@pytest.mark.parametrize("order", [pytest.param((0, 1, 2), id="in order"), pytest.param((2, 0, 1), id="out of order")])
def test_several_writes_of_one_share_partition_settle_in_any_order(order: tuple[int, ...]) -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    exchanges = [member.acknowledge({0: text}) for text in ("0-2:1", "3-5:2", "6-9:3")]
    held = list(desk.held)
    for i in order:
        desk.deliver(desk.persist(held[i]))
        assert not exchanges[i].waiting
    desk.hold = False
    assert [e.errors for e in exchanges] == [{0: E.NONE}] * 3
    assert desk.member("n").fetch("0").acquired == {0: [(3, 5, 2)]}


def test_hard_case_2_records_under_a_write_are_nobodys_to_acknowledge_or_acquire() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    first = member.acknowledge({0: "0-9:2"})
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.INVALID_RECORD_STATE}
    other = desk.member("n").fetch("0")
    assert other.waiting
    desk.release()
    assert (first.errors, other.acquired) == ({0: E.NONE}, {0: [(0, 9, 2)]})


@pytest.mark.parametrize("by_fetch", [pytest.param(True, id="on a fetch"), pytest.param(False, id="by itself")])
@pytest.mark.parametrize(("error", "told"), rows())
def test_a_write_that_fails(error: Errors, told: Errors, by_fetch: bool) -> None:
    desk = Desk(traced=True)
    member = holding(desk)
    desk.persister_errors.append(error)
    if by_fetch:
        part = member.fetch(acks={0: "0-9:1"}, max_wait_ms=0).parts[0]
        assert (part.acknowledge_error_code, part.current_leader.leader_epoch) == (told, 0)
    else:
        assert member.acknowledge({0: "0-9:1"}).errors == {0: told}
    dropped = [e for e in desk.events if isinstance(e, SharePartitionDropped)]
    assert bool(dropped) == (told in DROPPING)
    if told in DROPPING:
        assert member.acknowledge({0: "0-9:1"}).errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
        assert desk.member("n").fetch("0").acquired == {0: [(0, 9, 1)]}, "loaded anew, as it was last durable"
    else:
        assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}, "the records are still the member's"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(0, None, E.REQUEST_TIMED_OUT), id="no answer"),
        pytest.param(Answer(0, WriteShareGroupStateResponse()), id="the partition is missing"),
    ],
)
def test_a_write_without_a_result_has_failed(answer: Answer) -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    exchange = member.acknowledge({0: "0-9:1"})
    desk.deliver(answer._replace(id=desk.held[0].id))
    assert exchange.errors == {0: E.UNKNOWN_SERVER_ERROR}


def test_fetches_that_wait_are_told_when_a_failed_write_drops_the_share_partition() -> None:
    desk = Desk()
    member = holding(desk)
    waiting = desk.member("n").fetch("0")
    desk.persister_errors.append(E.GROUP_ID_NOT_FOUND)
    member.acknowledge({0: "0-9:1"})
    assert waiting.errors == {0: E.GROUP_ID_NOT_FOUND}


def test_hard_case_7_a_lock_time_out_stands_even_if_its_write_fails() -> None:
    desk = Desk(traced=True)
    holding(desk)
    desk.persister_errors.append(E.FENCED_STATE_EPOCH)
    desk.pass_time(30_000)
    assert len(desk.writes) == 1
    assert not [e for e in desk.events if isinstance(e, SharePartitionDropped)], "a failed time-out is only noted"
    assert desk.member("n").fetch("0").acquired == {0: [(0, 9, 2)]}


def test_hard_case_3_a_lock_that_expires_under_a_write_that_fails() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    exchange = member.acknowledge({0: "0-9:1"})
    desk.pass_time(31_000)
    desk.release(error=E.COORDINATOR_NOT_AVAILABLE)
    desk.hold = False
    assert exchange.errors == {0: E.COORDINATOR_NOT_AVAILABLE}
    assert desk.member("n").fetch("0").acquired == {0: [(0, 9, 2)]}
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.INVALID_RECORD_STATE}


def test_hard_case_4_what_was_acknowledged_in_time_is_not_given_back_by_its_timer() -> None:
    desk = Desk()
    member = holding(desk)
    desk.pass_time(29_999)
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}
    desk.pass_time(100_000)
    assert desk.member("n").fetch("0", max_wait_ms=0).acquired == {}
    assert len(desk.writes) == 1


def test_locks_of_different_times_expire_one_after_the_other() -> None:
    desk = Desk()
    desk.produce(0, 5, 5)
    member, other = desk.member("m"), desk.member("n")
    member.fetch("0", max_records=5)
    desk.pass_time(10_000)
    member.fetch(max_records=5)
    exchange = other.fetch("0", max_wait_ms=100_000)
    desk.pass_time(20_000)
    assert exchange.acquired == {0: [(0, 4, 2)]}
    again = other.fetch(max_wait_ms=100_000)
    desk.pass_time(10_000)
    assert again.acquired == {0: [(5, 9, 2)]}


# ---- dropping while writes are on their way --------------------------------------------------------------------------


def test_requests_of_a_dropped_share_partition_still_get_the_result_of_their_write() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    one, two = member.acknowledge({0: "0-4:1"}), member.acknowledge({0: "5-9:1"})
    desk.set_leader(0, 1, 1)
    desk.release(1, error=E.FENCED_LEADER_EPOCH)
    desk.release()
    assert (one.errors, two.errors) == ({0: E.NONE}, {0: E.NOT_LEADER_OR_FOLLOWER})
    assert two.parts[0].current_leader.leader_id == 1


def test_state_is_not_read_again_while_old_writes_are_on_their_way() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    acknowledged = member.acknowledge({0: "0-4:1"})
    failed = member.acknowledge({0: "5-9:1"})
    desk.release(1, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    assert failed.errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
    exchange = member.fetch()
    assert [type(p.request).__name__ for p in desk.held] == ["WriteShareGroupStateRequest"]
    desk.hold = False
    desk.release()
    assert acknowledged.errors == {0: E.NONE}
    assert exchange.acquired == {0: [(5, 9, 1)]}, "what was accepted is not delivered again"


def test_state_is_read_again_after_the_last_of_several_old_writes() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    slow = [member.acknowledge({0: "0-1:1"}), member.acknowledge({0: "2-4:1"})]
    member.acknowledge({0: "5-9:1"})
    desk.release(2, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    exchange = member.fetch()
    desk.release(0)
    assert [type(p.request).__name__ for p in desk.held] == ["WriteShareGroupStateRequest"]
    desk.hold = False
    desk.release()
    assert [acknowledged.errors for acknowledged in slow] == [{0: E.NONE}] * 2
    assert exchange.acquired == {0: [(5, 9, 1)]}


@pytest.mark.parametrize("error", [pytest.param(error, id=error.name) for error in (E.NONE, E.FENCED_LEADER_EPOCH)])
def test_what_was_read_for_a_dropped_share_partition_is_not_its_successor_s(error: Errors) -> None:
    desk = Desk(traced=True)
    desk.produce(0, 10)
    member = desk.member("m")
    desk.hold = True
    lost = member.fetch("0")
    desk.set_leader(0, 1, 1)
    assert lost.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    desk.set_leader(0, 0, 2)
    exchange = member.fetch()
    desk.release(0, error=error)
    assert exchange.waiting
    desk.release(0)
    assert exchange.acquired == {0: [(0, 9, 1)]}
    assert [event.leader_epoch for event in desk.events if isinstance(event, SharePartitionLoaded)] == [2]


def test_a_successor_dropped_before_it_could_read() -> None:
    desk = Desk()
    member = holding(desk)
    desk.hold = True
    slow, failed = member.acknowledge({0: "0-4:1"}), member.acknowledge({0: "5-9:1"})
    desk.release(1, error=E.UNKNOWN_TOPIC_OR_PARTITION)
    exchange = member.fetch()
    desk.set_leader(0, 1, 1)
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    desk.hold = False
    desk.release()
    assert (slow.errors, failed.errors) == ({0: E.NONE}, {0: E.UNKNOWN_TOPIC_OR_PARTITION})
    desk.set_leader(0, 0, 2)
    assert member.fetch().acquired == {0: [(5, 9, 1)]}


def test_a_dropped_share_partition_has_no_timers() -> None:
    desk = Desk()
    holding(desk)
    desk.set_leader(0, 1, 1)
    assert desk.leader.wake_at_ms is None


def test_every_write_is_one_persist_of_one_group() -> None:
    desk = Desk(partitions=2)
    desk.produce(1, 10)
    member = holding(desk)
    member.fetch("1")
    desk.hold = True
    member.acknowledge({0: "0-9:1", 1: "0-9:1"})
    assert [type(effect) for effect in desk.effects] == [Persist, Persist]
