"""Whole requests: errors and their order, acknowledgements on a fetch or alone, renewals, leadership.

BEHAVIOUR.md, 56 to 59 and 70 to 77.
"""

from dataclasses import replace
from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.share_fetch import (
    LeaderIdAndEpoch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.leader.stage import TOPIC_ID, Stage, ack_batches

UNKNOWN_ID = TopicId("U" * 22)
E = Errors


def fetch_request(**changes: Any) -> ShareFetchRequest:
    return ShareFetchRequest(**{"group_id": "g", "member_id": "m", "share_session_epoch": 0, **changes})


def parts(topic_id: TopicId = TOPIC_ID, **acks: str) -> tuple[ShareFetchRequest.Topic, ...]:
    found = tuple(
        ShareFetchRequest.Partition(partition_index=int(name[1:]), acknowledgement_batches=ack_batches(text))
        for name, text in acks.items()
    )
    return (ShareFetchRequest.Topic(topic_id=topic_id, partitions=found),)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"group_id": None}, E.INVALID_REQUEST, id="no group"),
        pytest.param({"member_id": ""}, E.INVALID_REQUEST, id="no member"),
        pytest.param({"is_renew_ack": True}, E.INVALID_REQUEST, id="renew with limits"),
        pytest.param({"topics": parts(p0="0:1")}, E.INVALID_REQUEST, id="acknowledgements at epoch 0"),
        pytest.param({"share_session_epoch": 1}, E.SHARE_SESSION_NOT_FOUND, id="no session"),
        pytest.param({"share_session_epoch": -1}, E.SHARE_SESSION_NOT_FOUND, id="no session to close"),
        pytest.param({"share_acquire_mode": 2}, E.UNKNOWN_SERVER_ERROR, id="unknown acquire mode"),
        pytest.param(
            {"share_acquire_mode": 2, "share_session_epoch": 7}, E.SHARE_SESSION_NOT_FOUND, id="session first"
        ),
    ],
)
def test_errors_of_a_whole_fetch(changes: dict[str, Any], error: Errors) -> None:
    assert Stage().send(fetch_request(**changes)).response == ShareFetchResponse(error_code=error)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"group_id": None}, E.INVALID_REQUEST, id="no group"),
        pytest.param({"member_id": None}, E.INVALID_REQUEST, id="no member"),
        pytest.param({"share_session_epoch": 0}, E.INVALID_SHARE_SESSION_EPOCH, id="hard case 26: epoch 0"),
        pytest.param({"share_session_epoch": 3}, E.SHARE_SESSION_NOT_FOUND, id="no session"),
    ],
)
def test_errors_of_a_whole_acknowledge(changes: dict[str, Any], error: Errors) -> None:
    request = ShareAcknowledgeRequest(**{"group_id": "g", "member_id": "m", "share_session_epoch": 1, **changes})
    assert Stage().send(request).response == ShareAcknowledgeResponse(error_code=error)


def test_disabled_share_groups_refuse_requests_and_drop_share_partitions() -> None:
    stage = Stage(traced=True)
    stage.produce(0, 10)
    member = stage.member("m")
    assert member.fetch("0").acquired
    waiting = member.fetch()
    stage.set_image(share_version=0)
    assert waiting.errors == {0: E.UNSUPPORTED_VERSION}
    assert member.fetch().error is E.UNSUPPORTED_VERSION
    stage.set_image(share_version=1)
    assert member.fetch(epoch=3).error is E.SHARE_SESSION_NOT_FOUND
    assert stage.leader.wake_at_ms is None


def test_an_unknown_acquire_mode_is_refused_before_acknowledging() -> None:
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    assert member.fetch(acks={0: "0-9:1"}, share_acquire_mode=9).error is E.UNKNOWN_SERVER_ERROR
    assert member.fetch(acks={0: "0-9:1"}, max_wait_ms=0).acks == {0: E.NONE}, (
        "the refused request advanced the session epoch"
    )


# ---- acknowledging ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_fetch", [pytest.param(True, id="on a fetch"), pytest.param(False, id="alone")])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("0-9:1", E.NONE, id="all records"),
        pytest.param("0-4:1 5:2 6-9:3,3,0,0", E.NONE, id="several types"),
        pytest.param("", E.NONE, id="no batches"),
        pytest.param("0-4:1 4-9:1", E.INVALID_RECORD_STATE, id="touching batches"),
        pytest.param("5-9:1 0-4:1", E.INVALID_REQUEST, id="wire: descending"),
        pytest.param("0:4", E.INVALID_REQUEST, id="wire: renew without is_renew_ack"),
        pytest.param("50:1", E.INVALID_REQUEST, id="beyond the in-flight records"),
    ],
)
def test_result_of_acknowledgements_of_one_partition(by_fetch: bool, text: str, error: Errors) -> None:
    stage = Stage(partitions=2)
    stage.produce(0, 10)
    stage.produce(1, 10)
    member = stage.member("m")
    member.fetch("01")
    acks = {0: text, 1: "0:1"}
    if by_fetch:
        assert member.fetch(acks=acks, max_wait_ms=0).acks == {0: error, 1: E.NONE}
    else:
        assert member.acknowledge(acks).errors == {0: error, 1: E.NONE}


def test_error_messages_of_the_leader_but_not_of_the_wire_check() -> None:
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    assert member.acknowledge({0: "9-0:1"}).parts[0].error_message is None
    assert member.acknowledge({0: "0-4:1 4-9:1"}).parts[0].error_message
    part = member.fetch(acks={0: "0-4:1 4-9:1"}, max_wait_ms=0).parts[0]
    assert (part.error_message, bool(part.acknowledge_error_message)) == (None, True)


@pytest.mark.parametrize(
    ("topic_id", "acks", "error"),
    [
        pytest.param(UNKNOWN_ID, {"p0": "0:1"}, E.UNKNOWN_TOPIC_ID, id="unknown id"),
        pytest.param(UNKNOWN_ID, {"p0": "9-0:1"}, E.UNKNOWN_TOPIC_ID, id="unknown id before the wire check"),
        pytest.param(TOPIC_ID, {"p9": "9-0:1"}, E.INVALID_REQUEST, id="wire check before the metadata"),
        pytest.param(TOPIC_ID, {"p9": "0:1"}, E.UNKNOWN_TOPIC_OR_PARTITION, id="no such partition"),
        pytest.param(TOPIC_ID, {"p9": ""}, E.UNKNOWN_TOPIC_OR_PARTITION, id="metadata before the empty list"),
        pytest.param(TOPIC_ID, {"p1": ""}, E.NONE, id="empty list before the leader"),
        pytest.param(TOPIC_ID, {"p1": "0:1"}, E.UNKNOWN_TOPIC_OR_PARTITION, id="no share-partition in memory"),
    ],
)
def test_acknowledgement_checks_in_order(topic_id: TopicId, acks: dict[str, str], error: Errors) -> None:
    stage = Stage(partitions=2)
    stage.member("m").fetch("0", max_wait_ms=0)
    topics = tuple(
        ShareAcknowledgeRequest.Topic(
            topic_id=t.topic_id,
            partitions=tuple(
                ShareAcknowledgeRequest.Partition(
                    partition_index=p.partition_index, acknowledgement_batches=p.acknowledgement_batches
                )
                for p in t.partitions
            ),
        )
        for t in parts(topic_id, **acks)
    )
    request = ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=topics)
    assert list(stage.send(request).errors.values()) == [error]


def test_acknowledging_while_the_share_partition_loads_is_refused() -> None:
    stage = Stage()
    stage.hold = True
    member = stage.member("m")
    member.fetch("0")
    assert member.acknowledge({0: "0:1"}).errors == {0: E.INVALID_RECORD_STATE}


def test_acknowledged_partitions_need_not_be_in_the_session() -> None:
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    member.fetch(forget="0", max_wait_ms=0)
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}


def test_a_partition_listed_only_to_acknowledge_is_added_and_fetched() -> None:
    stage = Stage(partitions=2)
    stage.produce(1, 10)
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    exchange = member.fetch(acks={1: "0:1"})
    assert (exchange.acks[1], exchange.acquired) == (E.UNKNOWN_TOPIC_OR_PARTITION, {1: [(0, 9, 1)]})


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda m: m.fetch("0"), 15000, id="fetch"),
        pytest.param(lambda m: (m.fetch("0"), m.acknowledge({0: "0:1"}))[1], 15000, id="acknowledge"),
        pytest.param(lambda m: m.fetch(epoch=9), 0, id="fetch refused"),
        pytest.param(lambda m: m.acknowledge({}, epoch=9), 0, id="acknowledge refused"),
    ],
)
def test_the_lock_duration_is_returned_unless_the_request_is_refused(make: Any, expected: int) -> None:
    stage = Stage(group={"share.record.lock.duration.ms": "15000"})
    stage.produce(0, 10)
    assert make(stage.member("m")).response.acquisition_lock_timeout_ms == expected


# ---- renewing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_fetch", [pytest.param(True, id="on a fetch"), pytest.param(False, id="alone")])
def test_a_renewal_restarts_the_lock_and_fetches_nothing(by_fetch: bool) -> None:
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    stage.produce(0, 10)
    stage.pass_time(20_000)
    exchange = member.renew({0: "0-9:4"}) if by_fetch else member.acknowledge({0: "0-9:4"}, renew=True)
    assert (exchange.error, exchange.waiting) == (E.NONE, False)
    if by_fetch:
        assert exchange.acquired == {}
    assert stage.writes == [], "a renewal is not written"
    stage.pass_time(29_999)
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}


def test_a_later_error_does_not_undo_a_renewal() -> None:
    """BEHAVIOUR.md, example 20."""
    stage = Stage()
    stage.produce(0, 10, 10)
    member, other = stage.member("m"), stage.member("n")
    assert member.fetch("0", max_records=10).acquired == {0: [(0, 9, 1)]}
    assert other.fetch("0", max_records=10).acquired == {0: [(10, 19, 1)]}
    stage.pass_time(20_000)
    assert member.renew({0: "0-4:4 10-14:1"}).acks == {0: E.INVALID_RECORD_STATE}
    stage.pass_time(10_000)
    third = stage.member("k")
    assert third.fetch("0", max_records=5).acquired == {0: [(5, 9, 2)]}, "only the records that were not renewed"
    stage.pass_time(20_000)
    assert third.fetch(max_records=5).acquired == {0: [(0, 4, 2)]}


def test_a_renewal_can_end_before_the_lock_that_it_renews() -> None:
    stage = Stage(group={"share.record.lock.duration.ms": "60000"})
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    stage.set_group(record_lock_duration_ms="15000")
    member.renew({0: "0-9:4"})
    waiting = stage.member("n").fetch("0", max_wait_ms=60_000)
    stage.pass_time(15_000)
    assert waiting.acquired == {0: [(0, 9, 2)]}


def test_renewals_can_be_switched_off() -> None:
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    stage.set_group(renew_acknowledge_enable="false")
    assert member.renew({0: "0-9:4"}).acks == {0: E.INVALID_RECORD_STATE}


# ---- leadership ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic_id", "part", "error"),
    [
        pytest.param(UNKNOWN_ID, "p0", E.UNKNOWN_TOPIC_ID, id="unknown id"),
        pytest.param(TOPIC_ID, "p9", E.UNKNOWN_TOPIC_OR_PARTITION, id="not in the metadata"),
        pytest.param(TOPIC_ID, "p1", E.NOT_LEADER_OR_FOLLOWER, id="another broker leads"),
    ],
)
def test_errors_of_fetched_partitions(topic_id: TopicId, part: str, error: Errors) -> None:
    stage = Stage(partitions=2)
    stage.set_leader(1, 1, 4)
    exchange = stage.send(fetch_request(topics=parts(topic_id, **{part: ""})))
    found = exchange.parts[int(part[1:])]
    assert (exchange.error, found.error_code, found.error_message) == (E.NONE, error, None)
    if error is E.NOT_LEADER_OR_FOLLOWER:
        assert found.current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=4)
        assert [e.node_id for e in exchange.response.node_endpoints] == [1]


def test_partition_errors_do_not_end_the_wait_for_other_partitions() -> None:
    stage = Stage(partitions=2)
    stage.set_leader(1, 1, 4)
    exchange = stage.member("m").fetch("01")
    assert exchange.waiting
    stage.produce(0, 5)
    assert (exchange.acquired, exchange.errors) == ({0: [(0, 4, 1)]}, {0: E.NONE, 1: E.NOT_LEADER_OR_FOLLOWER})


def test_loss_of_leadership_ends_a_waiting_fetch() -> None:
    """BEHAVIOUR.md, hard case 20."""
    stage = Stage(partitions=2)
    exchange = stage.member("m").fetch("01")
    assert exchange.waiting
    stage.set_leader(1, 1, 1)
    assert exchange.errors == {0: E.NONE, 1: E.NOT_LEADER_OR_FOLLOWER}
    assert exchange.parts[1].current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=1)


def test_loss_of_leadership_during_a_read() -> None:
    stage = Stage(partitions=2)
    member = stage.member("m")
    member.fetch("01", max_wait_ms=0)
    stage.produce(0, 5)
    stage.produce(1, 5)
    stage.hold_reads = True
    exchange = member.fetch()
    stage.set_leader(1, 1, 1)
    while stage.held_logs:
        stage.release_logs()
    assert (exchange.errors[1], exchange.acquired) == (E.NOT_LEADER_OR_FOLLOWER, {0: [(0, 4, 1)]})


def test_a_partition_whose_leadership_returns_is_loaded_again() -> None:
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    member.acknowledge({0: "0-4:1"})
    stage.set_leader(0, 1, 1)
    assert member.acknowledge({0: "5-9:1"}).errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert member.fetch().errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    stage.set_leader(0, 0, 2)
    assert member.fetch().acquired == {0: [(5, 9, 1)]}


def test_a_new_leader_epoch_drops_the_share_partition() -> None:
    stage = Stage(traced=True)
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    stage.set_leader(0, 0, 2)
    assert member.fetch().acquired == {0: [(0, 9, 1)]}


def test_a_recreated_topic_starts_without_state() -> None:
    """BEHAVIOUR.md, hard case 30."""
    stage = Stage()
    stage.produce(0, 10)
    member = stage.member("m")
    member.fetch("0")
    waiting = member.fetch()
    topic = stage.image.topics["t"]
    stage.set_topics(replace(topic, topic_id=TopicId("V" * 22)))
    assert waiting.errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert member.fetch().errors == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert member.acknowledge({0: "0-9:1"}).errors == {0: E.UNKNOWN_TOPIC_ID}
    fresh = stage.send(fetch_request(member_id="n", topics=parts(TopicId("V" * 22), p0="")))
    assert fresh.acquired == {0: [(0, 9, 1)]}


def test_an_unknown_message_type_raises_key_error() -> None:
    with pytest.raises(KeyError):
        Stage().leader.handle("hello", 0)  # type: ignore[arg-type]
