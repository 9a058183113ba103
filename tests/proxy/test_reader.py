"""Tables of requests and responses, with the events that the reader makes of them."""

from __future__ import annotations

import pytest

from shareq.coordinator.share_state.state import KeyState
from shareq.model.errors import Errors
from shareq.model.events import (
    AcknowledgementRefused,
    AcknowledgementsSent,
    DeliveriesUnseen,
    Event,
    HeartbeatReceived,
    HoldEnded,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    RecordsHeld,
    ShareSessionClosed,
    ShareSessionOpened,
)
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import (
    NO_LEADER,
    AcknowledgementBatch,
    AcquiredRecords,
    LeaderIdAndEpoch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
)
from shareq.model.messages.share_group import MemberAssignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.messages.share_state import StateBatch
from shareq.proxy.holds import GroupRules
from shareq.proxy.messages import AcquiredResponse
from shareq.proxy.reader import Exchange, ShareReader

TOPIC = TopicId("t" * 22)
LOCK_MS = 1000
WHERE = ("g", "orders", 0)
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GAP = 0

Acks = tuple[tuple[int, int, tuple[int, ...]], ...]
Acquired = tuple[tuple[int, int, int], ...]


class ReaderStage:
    """One partition, members `a` and `b` on connections of their own, brokers 1 and 2; time in ms."""

    def __init__(self) -> None:
        self.reader = ShareReader()
        self.reader.topics[TOPIC] = "orders"
        self.now_ms = 0
        self.epochs: dict[tuple[str, int], int] = {}

    def ask_fetch(self, member: str, acks: Acks = (), *, broker: int = 1, epoch: int | None = None) -> Exchange:
        key = (member, broker)
        epoch = self.epochs.get(key, 0) if epoch is None else epoch
        self.epochs[key] = epoch + 1
        partition = ShareFetchRequest.Partition(partition_index=0, acknowledgement_batches=batches(acks))
        topics = (ShareFetchRequest.Topic(topic_id=TOPIC, partitions=(partition,)),)
        request = ShareFetchRequest(group_id="g", member_id=member, share_session_epoch=epoch, topics=topics)
        return self.reader.request(10 * broker + ord(member), broker, member, request)

    def ask_acknowledge(self, member: str, acks: Acks, *, epoch: int = 5) -> Exchange:
        partition = ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=batches(acks))
        topics = (ShareAcknowledgeRequest.Topic(topic_id=TOPIC, partitions=(partition,)),)
        request = ShareAcknowledgeRequest(group_id="g", member_id=member, share_session_epoch=epoch, topics=topics)
        return self.reader.request(10 + ord(member), 1, member, request)

    def fetched(
        self,
        exchange: Exchange,
        acquired: Acquired = (),
        *,
        acks: Errors = Errors.NONE,
        error: Errors = Errors.NONE,
        top: Errors = Errors.NONE,
        leader: LeaderIdAndEpoch = NO_LEADER,
    ) -> list[Event]:
        partition = AcquiredResponse.Partition(
            partition_index=0,
            error_code=error,
            acknowledge_error_code=acks,
            current_leader=leader,
            acquired_records=tuple(
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in acquired
            ),
        )
        topics = () if top else (AcquiredResponse.Topic(topic_id=TOPIC, partitions=(partition,)),)
        response = AcquiredResponse(error_code=top, acquisition_lock_timeout_ms=LOCK_MS, responses=topics)
        return self.reader.response(exchange, response, self.now_ms)

    def acknowledged(self, exchange: Exchange, error: Errors = Errors.NONE) -> list[Event]:
        partition = ShareAcknowledgeResponse.Partition(partition_index=0, error_code=error)
        topics = (ShareAcknowledgeResponse.Topic(topic_id=TOPIC, partitions=(partition,)),)
        response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=topics)
        return self.reader.response(exchange, response, self.now_ms)

    def fetch(self, member: str, *acquired: tuple[int, int, int], broker: int = 1) -> list[Event]:
        return self.fetched(self.ask_fetch(member, broker=broker), acquired)

    def read(self, spso: int, *runs: tuple[int, int, int, int], log_start: int = 0) -> list[Event]:
        """A poll reads a durable state; runs are (first, last, state, delivery count)."""
        state = KeyState(0, start_offset=spso, state_batches=tuple(StateBatch(*run) for run in runs))
        return self.reader.read(SharePartitionKey("g", TOPIC, 0), state, log_start, self.now_ms)

    def at(self, now_ms: int) -> list[Event]:
        self.now_ms = now_ms
        return self.reader.tick(now_ms)


def batches(acks: Acks) -> tuple[AcknowledgementBatch, ...]:
    return tuple(
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
        for first, last, kinds in acks
    )


def held(member: str, first: int, end: int, count: int = 1, deadline_ms: int = LOCK_MS) -> RecordsHeld:
    return RecordsHeld(*WHERE, member, first, end, count, deadline_ms)


def ended(
    member: str, cause: str, first: int, end: int, state: int, *, count: int = 1, inferred: bool = False
) -> HoldEnded:
    inferred |= cause in {"lock_timeout", "session_release"}
    return HoldEnded(*WHERE, member, cause, first, end, state, count, inferred)


def sent(member: str, *counts: int, error: Errors = Errors.NONE) -> AcknowledgementsSent:
    gap, accept, release, reject, renew = counts
    return AcknowledgementsSent("g", member, "orders", 0, (gap, accept, release, reject, renew), error)


OPENED = ShareSessionOpened("g", "a")


def test_an_acquisition_names_holder_count_and_deadline() -> None:
    """BEHAVIOUR.md, 3.1."""
    stage = ReaderStage()
    stage.now_ms = 50
    assert stage.fetch("a", (0, 4, 1), (7, 9, 1)) == [OPENED, held("a", 0, 5, 1, 1050), held("a", 7, 10, 1, 1050)]
    assert stage.reader.wake_at_ms == 1050


@pytest.mark.parametrize("by", ["fetch", "acknowledge"])
def test_a_confirmed_acknowledgement_ends_a_hold_by_its_types(by: str) -> None:
    """BEHAVIOUR.md, 3.2: one type for all offsets, or one for each."""
    stage = ReaderStage()
    stage.fetch("a", (0, 9, 1))
    acks: Acks = ((0, 1, (ACCEPT,)), (2, 6, (RELEASE, RELEASE, REJECT, GAP, ACCEPT)))
    found = (
        stage.fetched(stage.ask_fetch("a", acks))
        if by == "fetch"
        else stage.acknowledged(stage.ask_acknowledge("a", acks))
    )
    assert found == [
        ended("a", "accept", 0, 2, 2),
        ended("a", "release", 2, 4, 0),
        ended("a", "reject", 4, 5, 4),
        ended("a", "gap", 5, 6, 4),
        ended("a", "accept", 6, 7, 2),
        sent("a", 1, 3, 2, 1, 0),
    ]
    assert stage.at(LOCK_MS) == [ended("a", "lock_timeout", 7, 10, 0)]


@pytest.mark.parametrize("by", ["partition", "top level"])
def test_a_refused_acknowledgement_changes_no_record(by: str) -> None:
    """BEHAVIOUR.md, 3.2."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    asked = stage.ask_fetch("a", ((0, 1, (ACCEPT,)),))
    error = Errors.INVALID_RECORD_STATE
    found = stage.fetched(asked, acks=error) if by == "partition" else stage.fetched(asked, top=error)
    assert found == [AcknowledgementRefused(*WHERE, "a", error), sent("a", 0, 2, 0, 0, 0, error=error)]
    assert stage.at(LOCK_MS) == [ended("a", "lock_timeout", 0, 5, 0)]


def test_a_type_that_kafka_does_not_know_is_not_counted() -> None:
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    found = stage.acknowledged(stage.ask_acknowledge("a", ((0, 1, (9,)),)), Errors.INVALID_REQUEST)
    assert found[-1] == sent("a", 0, 0, 0, 0, 0, error=Errors.INVALID_REQUEST)


def test_a_renewal_moves_the_deadline() -> None:
    """BEHAVIOUR.md, 3.3."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    assert stage.at(700) == []
    assert stage.acknowledged(stage.ask_acknowledge("a", ((0, 2, (RENEW,)),)))[0] == held("a", 0, 3, 1, 1700)
    assert stage.at(1000) == [ended("a", "lock_timeout", 3, 5, 0)]
    assert stage.at(1700) == [ended("a", "lock_timeout", 0, 3, 0)]


def test_a_lock_runs_out_at_its_deadline_and_archives_at_the_limit() -> None:
    """BEHAVIOUR.md, 3.4."""
    stage = ReaderStage()
    stage.reader.rules["g"] = GroupRules(2)
    stage.fetch("a", (0, 0, 1))
    assert stage.at(999) == []
    assert stage.at(1000) == [ended("a", "lock_timeout", 0, 1, 0)]
    stage.fetch("b", (0, 0, 2))
    assert stage.at(2000) == [ended("b", "lock_timeout", 0, 1, 4, count=2)]
    assert stage.reader.wake_at_ms is None


def test_records_on_the_way_to_a_dead_letter_queue_are_archiving() -> None:
    """BEHAVIOUR.md, 3.2, 3.4. The leader archives them when they are in the queue, which no response names."""
    stage = ReaderStage()
    stage.reader.rules["g"] = GroupRules(2, dead_letter_queue=True)
    stage.fetch("a", (0, 1, 1))
    rejected = stage.ask_acknowledge("a", ((0, 0, (REJECT,)),))
    assert stage.acknowledged(rejected)[0] == ended("a", "reject", 0, 1, 3)
    assert stage.at(1000) == [ended("a", "lock_timeout", 1, 2, 0)]
    stage.fetch("b", (1, 1, 2))
    assert stage.at(2000) == [ended("b", "lock_timeout", 1, 2, 3, count=2)]


@pytest.mark.parametrize("durable", [3, 4], ids=["archiving", "archived"])
def test_a_poll_shows_a_rejection_on_the_way_to_a_dead_letter_queue(durable: int) -> None:
    """BEHAVIOUR.md, 3.2: its response is late."""
    stage = ReaderStage()
    stage.reader.rules["g"] = GroupRules(2, dead_letter_queue=True)
    stage.fetch("a", (0, 1, 1))
    stage.ask_acknowledge("a", ((0, 0, (REJECT,)),))
    assert stage.read(0, (0, 0, durable, 1)) == [ended("a", "reject", 0, 1, 3)]


def test_a_lock_with_an_acknowledgement_under_way_waits_for_the_response() -> None:
    """BEHAVIOUR.md, 3.4."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    asked = stage.ask_fetch("a", ((0, 1, (ACCEPT,)), (2, 3, (RELEASE,))))
    assert stage.at(1000) == [ended("a", "lock_timeout", 4, 5, 0)]
    assert stage.fetched(asked)[:2] == [ended("a", "accept", 0, 2, 2), ended("a", "release", 2, 4, 0)]
    stage.fetch("b", (2, 3, 2))
    refused = stage.ask_acknowledge("b", ((2, 3, (ACCEPT,)),))
    assert stage.at(2000) == []
    stage.acknowledged(refused, Errors.INVALID_RECORD_STATE)
    assert stage.at(2000) == [ended("b", "lock_timeout", 2, 4, 0, count=2)]


@pytest.mark.parametrize("kind", [ACCEPT, RENEW])
def test_an_acknowledgement_confirmed_after_the_deadline_holds_the_record_again(kind: int) -> None:
    """BEHAVIOUR.md, 3.4: the leader's timer was late."""
    stage = ReaderStage()
    stage.fetch("a", (0, 1, 1))
    assert stage.at(1000) == [ended("a", "lock_timeout", 0, 2, 0)]
    stage.now_ms = 1003
    again = held("a", 0, 1, 1, 2003)
    after = again if kind == RENEW else ended("a", "accept", 0, 1, 2)
    assert stage.acknowledged(stage.ask_acknowledge("a", ((0, 0, (kind,)),)))[:2] == [again, after]
    stage.fetch("b", (1, 1, 2))
    assert stage.acknowledged(stage.ask_acknowledge("a", ((1, 1, (kind,)),)))[:-1] == []


def test_an_acquisition_by_another_member_ends_the_hold_before_its_deadline() -> None:
    """BEHAVIOUR.md, 3.4: the leader's clock began earlier than that of the tap."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    stage.now_ms = 998
    assert stage.fetch("b", (2, 4, 2))[1:] == [
        ended("a", "lock_timeout", 2, 5, 0),
        held("b", 2, 5, 2, 1998),
    ]
    assert stage.at(1000) == [ended("a", "lock_timeout", 0, 2, 0)]


def test_a_release_whose_response_is_late_ends_the_hold_at_the_next_delivery() -> None:
    """BEHAVIOUR.md, 3.4: the fetch with the acknowledgements waits for records at the leader."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    asked = stage.ask_fetch("a", ((0, 1, (RELEASE,)), (2, 2, (ACCEPT,))))
    assert stage.fetch("b", (0, 2, 2))[1:] == [
        ended("a", "release", 0, 2, 0, inferred=True),
        ended("a", "lock_timeout", 2, 3, 0),
        held("b", 0, 3, 2),
    ]
    assert stage.fetched(asked) == [sent("a", 0, 1, 2, 0, 0)]
    assert stage.at(1000) == [ended("b", "lock_timeout", 0, 3, 0, count=2), ended("a", "lock_timeout", 3, 5, 0)]


def test_an_acknowledgement_of_records_of_another_member_is_no_end() -> None:
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    assert stage.acknowledged(stage.ask_acknowledge("b", ((0, 4, (ACCEPT,)),))) == [sent("b", 0, 5, 0, 0, 0)]


@pytest.mark.parametrize("by", ["fetch", "acknowledge", "connection"])
def test_the_end_of_a_session_releases_its_records(by: str) -> None:
    """BEHAVIOUR.md, 3.5: after the acknowledgements of its last request."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    stage.fetch("b", (5, 9, 1))
    acks: Acks = ((0, 1, (ACCEPT,)),)
    if by == "fetch":
        found = stage.fetched(stage.ask_fetch("a", acks, epoch=-1))
    elif by == "acknowledge":
        found = stage.acknowledged(stage.ask_acknowledge("a", acks, epoch=-1))
    else:
        stage.ask_fetch("a", acks)
        found = stage.reader.disconnected(10 + ord("a"))
    reason = "connection lost" if by == "connection" else "closed"
    confirmed = [] if by == "connection" else [ended("a", "accept", 0, 2, 2), sent("a", 0, 2, 0, 0, 0)]
    begin = 0 if by == "connection" else 2
    assert found == [*confirmed, ended("a", "session_release", begin, 5, 0), ShareSessionClosed("g", "a", reason)]
    assert stage.at(1000) == [ended("b", "lock_timeout", 5, 10, 0)]


def test_a_replaced_session_keeps_its_records() -> None:
    """BEHAVIOUR.md, 3.5: a session that the member has opened again does not end with its former connection."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    again = stage.ask_fetch("a", epoch=0)._replace(connection=99)
    assert stage.fetched(again) == [OPENED]
    assert stage.reader.disconnected(10 + ord("a")) == []
    assert stage.reader.disconnected(99)[0] == ended("a", "session_release", 0, 5, 0)


def test_a_forgotten_partition_waits_for_the_locks() -> None:
    """BEHAVIOUR.md, 3.5."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    forgotten = (ShareFetchRequest.ForgottenTopic(topic_id=TOPIC, partitions=(0,)),)
    request = ShareFetchRequest(group_id="g", member_id="a", share_session_epoch=1, forgotten_topics_data=forgotten)
    stage.fetched(stage.reader.request(10 + ord("a"), 1, "a", request))
    assert stage.reader.disconnected(10 + ord("a")) == [ShareSessionClosed("g", "a", "connection lost")]
    assert stage.at(1000) == [ended("a", "lock_timeout", 0, 5, 0)]


@pytest.mark.parametrize(
    ("before", "acquired", "unseen"),
    [
        pytest.param((), (0, 4, 1), [], id="a first delivery"),
        pytest.param((), (0, 4, 3), [(0, 5, 1, 2)], id="deliveries before the tap began"),
        pytest.param(((0, 1, 1),), (0, 4, 2), [(2, 5, 1, 1)], id="a part was seen"),
        pytest.param(((0, 4, 1),), (0, 4, 4), [(0, 5, 2, 3)], id="deliveries past the tap"),
    ],
)
def test_a_delivery_count_that_jumps_names_the_unseen_deliveries(
    before: Acquired, acquired: tuple[int, int, int], unseen: list[tuple[int, int, int, int]]
) -> None:
    """BEHAVIOUR.md, 3.6."""
    stage = ReaderStage()
    stage.fetch("a", *before)
    stage.at(1000)
    found = stage.fetch("b", acquired)
    assert [event for event in found if isinstance(event, DeliveriesUnseen)] == [
        DeliveriesUnseen(*WHERE, *one) for one in unseen
    ]


def test_another_leader_begins_without_locks() -> None:
    """BEHAVIOUR.md, 3.7: it counts deliveries from the durable state."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    asked = stage.ask_fetch("a")
    new = LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
    assert stage.fetched(asked, error=Errors.NOT_LEADER_OR_FOLLOWER, leader=new) == [LeaderElected("orders", 0, 2, 7)]
    stage.reader.led_by(TOPIC, 0, 2)
    assert stage.fetch("b", (0, 4, 1), broker=2)[1:] == [held("b", 0, 5)]
    assert stage.at(1000) == [ended("b", "lock_timeout", 0, 5, 0)]


def test_records_below_the_spso_are_forgotten() -> None:
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    assert stage.read(3) == []
    assert stage.at(1000) == [ended("a", "lock_timeout", 3, 5, 0)]


def heartbeat(
    stage: ReaderStage,
    epoch: int,
    *,
    names: tuple[str, ...] | None = None,
    error: Errors = Errors.NONE,
    now: int = 1,
    partitions: tuple[int, ...] | None = None,
) -> list[Event]:
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=epoch, subscribed_topic_names=names)
    given = MemberAssignment.TopicPartitions(topic_id=TOPIC, partitions=partitions or ())
    assignment = MemberAssignment(topic_partitions=(given,))
    response = ShareGroupHeartbeatResponse(
        error_code=error, member_id="a", member_epoch=now, assignment=None if partitions is None else assignment
    )
    return stage.reader.response(stage.reader.request(1, 1, "anna", request), response, stage.now_ms)


def test_a_member_joins_reconciles_and_leaves() -> None:
    """BEHAVIOUR.md, 3.8."""
    stage = ReaderStage()
    beat = HeartbeatReceived("g", "a", 1, 0)
    assert heartbeat(stage, 0, names=("orders",)) == [
        MemberJoined("g", "a", "anna", ("orders",)), MemberReconciled("g", "a", 1, ()), beat
    ]  # fmt: skip
    assert heartbeat(stage, 1) == [beat]
    held_now = (("orders", (0, 1)),)
    assert heartbeat(stage, 1, now=2, partitions=(0, 1)) == [
        MemberReconciled("g", "a", 2, held_now), HeartbeatReceived("g", "a", 2, 0)
    ]  # fmt: skip
    assert heartbeat(stage, 2, now=3) == [MemberReconciled("g", "a", 3, held_now), HeartbeatReceived("g", "a", 3, 0)]
    assert heartbeat(stage, -1, now=-1) == [MemberLeft("g", "a", "left"), HeartbeatReceived("g", "a", -1, 0)]


def test_a_fenced_member_has_left_and_another_error_leaves_it() -> None:
    """BEHAVIOUR.md, 3.8."""
    stage = ReaderStage()
    heartbeat(stage, 0, names=("orders",))
    busy = Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert heartbeat(stage, 1, error=busy) == [HeartbeatReceived("g", "a", 1, busy)]
    fenced = Errors.FENCED_MEMBER_EPOCH
    assert heartbeat(stage, 1, error=fenced) == [MemberLeft("g", "a", "fenced"), HeartbeatReceived("g", "a", 1, fenced)]


def test_the_holds_of_a_deleted_topic_are_dropped() -> None:
    """BEHAVIOUR.md, 3.9."""
    stage = ReaderStage()
    stage.fetch("a", (0, 4, 1))
    stage.reader.deleted(TOPIC)
    assert stage.at(1000) == []
    assert stage.acknowledged(stage.ask_acknowledge("a", ((0, 4, (ACCEPT,)),))) == [sent("a", 0, 5, 0, 0, 0)]
