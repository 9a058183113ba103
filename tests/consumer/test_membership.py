"""Membership: every pair of state and event, every response to a heartbeat, and timeouts. BEHAVIOUR.md, 13 to 18."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from shareq.consumer.membership import TRANSITIONS, MembershipEvent, MembershipState
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import TopicId
from shareq.model.messages.cluster import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.share_group import MemberAssignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.client.fake import Fake, Later, batch, topic_id
from tests.consumer.fake_share_group import FakeShareGroup, consumer_on, offsets

S, E = MembershipState, MembershipEvent

LEGAL = {
    S.UNSUBSCRIBED: {E.POLL: S.JOINING},
    S.JOINING: {E.ANSWER: S.STABLE},
    S.RECONCILING: {E.RESOLVED: S.ACKNOWLEDGING},
    S.ACKNOWLEDGING: {E.SENT: S.STABLE},
    S.STABLE: {},
    S.LEAVING: {E.LEFT: S.UNSUBSCRIBED},
    S.STALE: {E.POLL: S.JOINING, E.LEAVE: S.UNSUBSCRIBED},
    S.FATAL: {},
}
FROM_ANY_MEMBER = {
    E.ASSIGNMENT: S.RECONCILING,
    E.FENCED: S.JOINING,
    E.OVERDUE: S.STALE,
    E.LEAVE: S.LEAVING,
    E.FATAL: S.FATAL,
}
MEMBERS = (S.JOINING, S.RECONCILING, S.ACKNOWLEDGING, S.STABLE)


@pytest.mark.parametrize(("state", "event"), [pytest.param(s, e, id=f"{s} {e}") for s, e in product(S, E)])
def test_transition_of_every_pair_of_state_and_event(state: MembershipState, event: MembershipEvent) -> None:
    rows = LEGAL[state] | (FROM_ANY_MEMBER if state in MEMBERS else {})
    assert TRANSITIONS.get((state, event)) == rows.get(event)


def new_group(*answers: Any, **options: Any) -> tuple[Fake, FakeShareGroup, Any]:
    """A consumer of t whose first heartbeats have these responses; later ones have the responses of the group."""
    fake = Fake(t=[1])
    group = FakeShareGroup(fake)
    group.append("t", 0, batch(0, "a"))
    queue = list(answers)

    def answer(fake: Fake, node: int, request: ShareGroupHeartbeatRequest) -> Any:
        scripted = queue.pop(0) if queue else None
        if scripted is None:
            return group.heartbeat(fake, node, request)
        if isinstance(scripted, ShareGroupHeartbeatResponse):
            return scripted
        return scripted if scripted is Errors.NETWORK_EXCEPTION else refusal(scripted)

    fake.answers[ShareGroupHeartbeatRequest] = answer
    return fake, group, consumer_on(fake, "t", **options)


def refusal(error: Errors) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error, error_message="no")


def beats(fake: Fake) -> list[tuple[int, int, bool]]:
    """(ms, member epoch, True if topics were sent) of each heartbeat."""
    return [
        (s.after_ms, s.request.member_epoch, s.request.subscribed_topic_names is not None)
        for s in fake.sent
        if isinstance(s.request, ShareGroupHeartbeatRequest)
    ]


@pytest.mark.parametrize(
    ("error", "immediate", "lookups"),
    [
        pytest.param(Errors.UNKNOWN_MEMBER_ID, True, 1, id="unknown member: rejoins immediately"),
        pytest.param(Errors.FENCED_MEMBER_EPOCH, True, 1, id="fenced: rejoins immediately"),
        pytest.param(Errors.NOT_COORDINATOR, True, 2, id="not coordinator: immediate lookup"),
        pytest.param(Errors.COORDINATOR_NOT_AVAILABLE, True, 2, id="coordinator not available: immediate lookup"),
        pytest.param(Errors.NETWORK_EXCEPTION, True, 2, id="disconnected: immediate lookup"),
        pytest.param(Errors.COORDINATOR_LOAD_IN_PROGRESS, False, 1, id="loading: after the back-off"),
    ],
)
def test_errors_that_a_member_recovers_from(error: Errors, immediate: bool, lookups: int) -> None:
    fake, _, consumer = new_group(error)
    member = consumer.member_id()
    assert offsets(consumer.poll(10)) == [0]
    first, second = beats(fake)[:2]
    assert (first[1:], second[1:]) == ((0, True), (0, True))
    assert (second[0] == 0) == immediate
    assert len(fake.requests(FindCoordinatorRequest)) == lookups
    assert {request.member_id for request in fake.requests(ShareGroupHeartbeatRequest)} == {member}


@pytest.mark.parametrize(
    "error",
    [
        Errors.GROUP_ID_NOT_FOUND,
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.GROUP_MAX_SIZE_REACHED,
        Errors.INVALID_REQUEST,
        Errors.UNSUPPORTED_VERSION,
        Errors.UNKNOWN_SERVER_ERROR,
    ],
    ids=lambda error: error.name,
)
def test_a_fatal_error_is_raised_once_and_later_polls_are_empty(error: Errors) -> None:
    fake, _, consumer = new_group(error)
    with pytest.raises(KafkaException) as raised:
        consumer.poll(10)
    assert (raised.value.error.code(), raised.value.error.fatal()) == (error, True)
    assert consumer.poll(10).is_empty()
    assert len(beats(fake)) == 1


def test_an_authorization_error_is_raised_and_the_membership_continues() -> None:
    _, _, consumer = new_group(Errors.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        consumer.poll(10)
    assert offsets(consumer.poll(10)) == [0]


def test_heartbeats_to_a_coordinator_that_always_refuses_back_off() -> None:
    fake, _, consumer = new_group(*[Errors.NOT_COORDINATOR] * 1000)
    assert consumer.poll(10).is_empty()
    assert 10 < len(beats(fake)) < 30


def test_lookups_of_an_unavailable_coordinator_back_off() -> None:
    fake, _, consumer = new_group()
    found = fake.answers[FindCoordinatorRequest]
    not_yet = FindCoordinatorResponse.Coordinator(key="g", error_code=Errors.COORDINATOR_NOT_AVAILABLE)

    def answer(fake: Fake, node: int, request: FindCoordinatorRequest) -> Any:
        lookups = len(fake.requests(FindCoordinatorRequest))
        return found(fake, node, request) if lookups > 4 else FindCoordinatorResponse(coordinators=(not_yet,))

    fake.answers[FindCoordinatorRequest] = answer
    assert offsets(consumer.poll(10)) == [0]
    times = [s.after_ms for s in fake.sent if isinstance(s.request, FindCoordinatorRequest)]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert [80 * 2**i <= pause <= 120 * 2**i for i, pause in enumerate(pauses)] == [True] * 4


def test_an_invalid_group_id_is_fatal() -> None:
    fake, _, consumer = new_group()
    refused = FindCoordinatorResponse.Coordinator(key="g", error_code=Errors.INVALID_GROUP_ID, error_message="empty")
    fake.answers[FindCoordinatorRequest] = lambda *_: FindCoordinatorResponse(coordinators=(refused,))
    with pytest.raises(KafkaException, match="empty"):
        consumer.poll(10)


def test_heartbeats_keep_the_interval_and_have_topics_only_once() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    consumer.poll(20)
    assert beats(fake)[2:] == [(5000, 3, False), (10000, 3, False), (15000, 3, False), (20000, 3, False)]


def test_new_topics_are_sent_with_the_next_heartbeat() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    fake.topics["u"], fake.ids["u"] = [1], topic_id("u")
    consumer.subscribe(["u"])
    consumer.poll(6)
    topics = [request.subscribed_topic_names for request in fake.requests(ShareGroupHeartbeatRequest)]
    assert topics[:4] == [("t",), None, ("u",), None]
    assert [(tp.topic, tp.partition) for tp in consumer.assignment()] == [("u", 0)]


@pytest.mark.parametrize("error", [Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT], ids=lambda error: error.name)
def test_an_assignment_whose_response_is_lost_is_received_with_the_next_heartbeat(error: Errors) -> None:
    """A coordinator sends an assignment once, and again to a member whose heartbeat has its topics, at the current
    epoch or the one before.

    (The coordinator's side is in `coordinator/group/test_heartbeat`, 1.5: 2 with topics, after the response to 2 was
    lost.)
    """
    fake, group, consumer = new_group()
    join = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=("t",))
    assignment = group.heartbeat(fake, 9, join).assignment
    stable = ShareGroupHeartbeatResponse(member_id="m", member_epoch=3, heartbeat_interval_ms=5000)
    joined = replace(stable, member_epoch=2, assignment=MemberAssignment())
    answers = [joined, error]

    def answer(fake: Fake, node: int, request: ShareGroupHeartbeatRequest) -> Any:
        has_topics = request.subscribed_topic_names is not None
        return answers.pop(0) if answers else replace(stable, assignment=assignment if has_topics else None)

    fake.answers[ShareGroupHeartbeatRequest] = answer
    assert offsets(consumer.poll(20)) == [0]
    assert [beat[1:] for beat in beats(fake)[:4]] == [(0, True), (2, False), (2, True), (3, False)]


def test_a_member_without_polls_leaves_and_rejoins_with_the_second_poll() -> None:
    fake, _, consumer = new_group(max_poll_interval_ms=7000)
    consumer.poll(1)
    fake.run(timeout_ms=20000)
    assert beats(fake)[-1] == (7000, -1, False)
    with pytest.raises(KafkaException) as raised:
        consumer.poll(1)
    assert raised.value.error == KafkaError._MAX_POLL_EXCEEDED
    consumer.poll(1)
    assert [epoch for _, epoch, _ in beats(fake)[-3:]] == [-1, 0, 2]


def test_a_long_poll_is_not_overdue() -> None:
    fake, _, consumer = new_group(max_poll_interval_ms=1000)
    consumer.poll(1)
    assert consumer.poll(30).is_empty()
    assert -1 not in [epoch for _, epoch, _ in beats(fake)]


def test_unsubscribe_leaves_once_and_a_new_subscription_joins_with_the_same_member_id() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    consumer.unsubscribe()
    consumer.unsubscribe()
    assert consumer.assignment() == []
    consumer.subscribe(["t"])
    consumer.poll(1)
    assert [epoch for _, epoch, _ in beats(fake)] == [0, 2, -1, 0, 2]
    assert len({request.member_id for request in fake.requests(ShareGroupHeartbeatRequest)}) == 1


def test_a_consumer_that_has_not_joined_does_not_leave() -> None:
    fake, _, consumer = new_group()
    consumer.unsubscribe()
    consumer.close()
    assert beats(fake) == []


def test_the_response_to_a_cancelled_join_is_ignored() -> None:
    """Unsubscribed while the join is in flight, the consumer sends the leave heartbeat and ignores the assignment."""
    fake, group, consumer = new_group()
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: None
    consumer.poll(0)
    consumer.unsubscribe()
    join = fake.pending(ShareGroupHeartbeatRequest)
    fake.answers[ShareGroupHeartbeatRequest] = group.heartbeat
    fake.reply(join.call_id, group.heartbeat(fake, 9, join.request))
    fake.run()
    assert [epoch for _, epoch, _ in beats(fake)] == [0, -1]
    assert consumer.assignment() == []


def test_a_poll_during_the_leave_heartbeat_rejoins_after_it() -> None:
    fake, group, consumer = new_group()
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: None
    consumer.unsubscribe()
    leave = fake.pending(ShareGroupHeartbeatRequest)
    assert leave.request.member_epoch == -1
    consumer.subscribe(["t"])
    consumer.poll(0)
    fake.answers[ShareGroupHeartbeatRequest] = group.heartbeat
    fake.reply(leave.call_id, group.heartbeat(fake, 9, leave.request))
    fake.run()
    assert [epoch for _, epoch, _ in beats(fake)[-3:]] == [-1, 0, 2]


@pytest.mark.parametrize(
    ("answer", "leaves", "lookups"),
    [
        pytest.param(refusal(Errors.NOT_COORDINATOR), 2, 2, id="not coordinator: sent to the current one"),
        pytest.param(refusal(Errors.COORDINATOR_NOT_AVAILABLE), 2, 2, id="not available: sent to the current one"),
        pytest.param(refusal(Errors.COORDINATOR_LOAD_IN_PROGRESS), 2, 1, id="loading: sent again to the same"),
        pytest.param(refusal(Errors.UNKNOWN_MEMBER_ID), 1, 1, id="unknown member"),
        pytest.param(refusal(Errors.GROUP_ID_NOT_FOUND), 1, 1, id="unknown group"),
        pytest.param(Errors.NETWORK_EXCEPTION, 1, 1, id="broken connection: closing waits for no broker"),
    ],
)
@pytest.mark.parametrize("call", ["close", "unsubscribe"])
def test_a_leave_heartbeat_is_repeated_if_the_coordinator_has_moved(
    answer: Any, leaves: int, lookups: int, call: str
) -> None:
    """Otherwise the partitions of the member stay unassigned until its session times out."""
    fake, group, consumer = new_group()
    consumer.poll(1)
    answers = [answer]
    fake.answers[ShareGroupHeartbeatRequest] = lambda *args: answers.pop() if answers else group.heartbeat(*args)
    getattr(consumer, call)()
    fake.run(timeout_ms=1000)
    assert [epoch for _, epoch, _ in beats(fake)][2:] == [-1] * leaves
    assert len(fake.requests(FindCoordinatorRequest)) == lookups


def test_an_overdue_member_repeats_a_refused_leave_heartbeat() -> None:
    fake, group, consumer = new_group(max_poll_interval_ms=7000)
    consumer.poll(1)
    refusals = [refusal(Errors.NOT_COORDINATOR)] * 2
    fake.answers[ShareGroupHeartbeatRequest] = lambda f, n, request: (
        refusals.pop() if refusals and request.member_epoch == -1 else group.heartbeat(f, n, request)
    )
    fake.run(timeout_ms=20_000)
    assert [epoch for _, epoch, _ in beats(fake)].count(-1) == 3


def test_a_poll_ends_the_repetition_of_a_leave_heartbeat() -> None:
    fake, group, consumer = new_group()
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: None
    consumer.unsubscribe()
    leave = fake.pending(ShareGroupHeartbeatRequest)
    consumer.subscribe(["t"])
    consumer.poll(0)
    fake.answers[ShareGroupHeartbeatRequest] = group.heartbeat
    fake.reply(leave.call_id, refusal(Errors.NOT_COORDINATOR))
    fake.run()
    assert [epoch for _, epoch, _ in beats(fake)[-3:]] == [-1, 0, 2]


def test_a_coordinator_that_refuses_every_leave_heartbeat_does_not_delay_close() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: refusal(Errors.NOT_COORDINATOR)
    began_ms = fake.now_ms
    consumer.close(5)
    assert fake.now_ms - began_ms == 5000
    assert 3 < [epoch for _, epoch, _ in beats(fake)].count(-1) < 15
    assert fake.closed


def test_failed_heartbeats_of_a_stable_member_back_off() -> None:
    """BEHAVIOUR.md, 16."""
    loading = Errors.COORDINATOR_LOAD_IN_PROGRESS
    fake, _, consumer = new_group(None, None, loading, loading)
    consumer.poll(1)
    fake.run(timeout_ms=8000)
    times = [at_ms for at_ms, _, _ in beats(fake)]
    assert times[2] - times[1] == 5000
    assert 80 <= times[3] - times[2] <= 120
    assert 160 <= times[4] - times[3] <= 240


def test_the_response_to_a_heartbeat_before_a_rejoin_is_ignored() -> None:
    """The member left because it did not poll, and joins again with epoch 0. BEHAVIOUR.md, 17."""
    fake, group, consumer = new_group(max_poll_interval_ms=7000)
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: None
    fake.run(timeout_ms=8000)
    before = fake.pending(ShareGroupHeartbeatRequest)
    with pytest.raises(KafkaException, match=r"max\.poll\.interval\.ms"):
        consumer.poll(0)
    consumer.poll(0)
    count = len(beats(fake))
    fake.answers[ShareGroupHeartbeatRequest] = group.heartbeat
    fake.reply(before.call_id, ShareGroupHeartbeatResponse(member_epoch=9, heartbeat_interval_ms=5000))
    fake.run(timeout_ms=10)
    assert [epoch for _, epoch, _ in beats(fake)[count:]][:2] == [-1, 0]


def test_a_member_that_rejoins_after_its_last_poll_becomes_overdue() -> None:
    fake, group, consumer = new_group(max_poll_interval_ms=7000)
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda f, n, request: Later(50, group.heartbeat(f, n, request))
    consumer.unsubscribe()
    consumer.subscribe(["t"])
    consumer.poll(0)
    fake.run(timeout_ms=60_000)
    assert [epoch for _, epoch, _ in beats(fake)][-1] == -1
    assert consumer.assignment() == []


def test_an_assignment_of_a_recreated_topic_waits_for_its_metadata() -> None:
    """The topic id of the client's metadata is outdated, so it requests metadata of the new id."""
    fake, group, consumer = new_group()
    old, new = fake.ids["t"], TopicId(fake.ids["t"][::-1])

    def metadata(fake: Fake, node: int, request: MetadataRequest) -> MetadataResponse:
        fake.ids["t"] = old if request.topics and request.topics[0].name else new
        answer = fake.metadata(node, request)
        fake.ids["t"] = new
        return answer

    fake.answers[MetadataRequest] = metadata
    fake.ids["t"] = new
    group.append("t", 0, batch(0, "new"))
    assert [message.value() for message in consumer.poll(1)] == [b"new"]
    assert [request.topics[0].name for request in fake.requests(MetadataRequest)] == ["t", None]


def test_polls_of_unknown_topics_are_empty() -> None:
    fake = Fake()
    FakeShareGroup(fake)
    consumer = consumer_on(fake, "nowhere")
    assert consumer.poll(20).is_empty()
    assert len(fake.requests(MetadataRequest)) == 1
