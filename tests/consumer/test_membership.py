"""Membership: every (state, event) pair, every answer to a heartbeat, and what time brings."""

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
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
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
def test_every_pair_of_state_and_event(state: MembershipState, event: MembershipEvent) -> None:
    rows = LEGAL[state] | (FROM_ANY_MEMBER if state in MEMBERS else {})
    assert TRANSITIONS.get((state, event)) == rows.get(event)


def new_group(*answers: Any, **options: Any) -> tuple[Fake, FakeShareGroup, Any]:
    """A consumer of t whose first heartbeats get these answers; later ones those of the group."""
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
    """(ms, epoch, whether topics were sent) of each heartbeat."""
    return [
        (s.after_ms, s.request.member_epoch, s.request.subscribed_topic_names is not None)
        for s in fake.sent
        if isinstance(s.request, ShareGroupHeartbeatRequest)
    ]


@pytest.mark.parametrize(
    ("error", "at_once", "finds"),
    [
        pytest.param(Errors.UNKNOWN_MEMBER_ID, True, 1, id="unknown member: rejoins at once"),
        pytest.param(Errors.FENCED_MEMBER_EPOCH, True, 1, id="fenced: rejoins at once"),
        pytest.param(Errors.NOT_COORDINATOR, True, 2, id="not coordinator: finds it at once"),
        pytest.param(Errors.COORDINATOR_NOT_AVAILABLE, True, 2, id="coordinator not available: finds it at once"),
        pytest.param(Errors.NETWORK_EXCEPTION, True, 2, id="disconnected: finds it at once"),
        pytest.param(Errors.COORDINATOR_LOAD_IN_PROGRESS, False, 1, id="loading: after the back-off"),
    ],
)
def test_what_a_member_survives(error: Errors, at_once: bool, finds: int) -> None:
    fake, _, consumer = new_group(error)
    member = consumer.member_id()
    assert offsets(consumer.poll(10)) == [0]
    first, second = beats(fake)[:2]
    assert (first[1:], second[1:]) == ((0, True), (0, True))
    assert (second[0] == 0) == at_once
    assert len(fake.requests(FindCoordinatorRequest)) == finds
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


def test_an_authorization_error_is_raised_and_the_member_goes_on() -> None:
    _, _, consumer = new_group(Errors.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        consumer.poll(10)
    assert offsets(consumer.poll(10)) == [0]


def test_a_coordinator_that_always_refuses_does_not_make_the_member_spin() -> None:
    fake, _, consumer = new_group(*[Errors.NOT_COORDINATOR] * 1000)
    assert consumer.poll(10).is_empty()
    assert 10 < len(beats(fake)) < 30


def test_a_coordinator_that_is_not_there_yet_is_looked_for_with_growing_pauses() -> None:
    fake, _, consumer = new_group()
    found = fake.answers[FindCoordinatorRequest]
    not_yet = FindCoordinatorResponse.Coordinator(key="g", error_code=Errors.COORDINATOR_NOT_AVAILABLE)

    def answer(fake: Fake, node: int, request: FindCoordinatorRequest) -> Any:
        asked = len(fake.requests(FindCoordinatorRequest))
        return found(fake, node, request) if asked > 4 else FindCoordinatorResponse(coordinators=(not_yet,))

    fake.answers[FindCoordinatorRequest] = answer
    assert offsets(consumer.poll(10)) == [0]
    times = [s.after_ms for s in fake.sent if isinstance(s.request, FindCoordinatorRequest)]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert [80 * 2**i <= pause <= 120 * 2**i for i, pause in enumerate(pauses)] == [True] * 4


def test_a_group_that_no_coordinator_serves_is_fatal() -> None:
    fake, _, consumer = new_group()
    refused = FindCoordinatorResponse.Coordinator(key="g", error_code=Errors.INVALID_GROUP_ID, error_message="empty")
    fake.answers[FindCoordinatorRequest] = lambda *_: FindCoordinatorResponse(coordinators=(refused,))
    with pytest.raises(KafkaException, match="empty"):
        consumer.poll(10)


def test_heartbeats_keep_the_interval_and_stay_short() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    consumer.poll(20)
    assert beats(fake)[2:] == [(5000, 3, False), (10000, 3, False), (15000, 3, False), (20000, 3, False)]


def test_new_topics_are_told_with_the_next_heartbeat() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    fake.topics["u"], fake.ids["u"] = [1], topic_id("u")
    consumer.subscribe(["u"])
    consumer.poll(6)
    told = [request.subscribed_topic_names for request in fake.requests(ShareGroupHeartbeatRequest)]
    assert told[:4] == [("t",), None, ("u",), None]
    assert [(tp.topic, tp.partition) for tp in consumer.assignment()] == [("u", 0)]


@pytest.mark.parametrize("error", [Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT], ids=lambda error: error.name)
def test_an_assignment_whose_answer_is_lost_comes_with_the_next_heartbeat(error: Errors) -> None:
    """A coordinator sends an assignment once, and again to a member that names its topics, at its last epoch or before.

    (`coordinator/group/test_heartbeat`, 1.5 has the other side: 2 with topics, after the answer to 2 was lost.)
    """
    fake, desk, consumer = new_group()
    join = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=("t",))
    assignment = desk.heartbeat(fake, 9, join).assignment
    known = ShareGroupHeartbeatResponse(member_id="m", member_epoch=3, heartbeat_interval_ms=5000)
    joined = replace(known, member_epoch=2, assignment=ShareGroupHeartbeatResponse.Assignment())
    answers = [joined, error]

    def answer(fake: Fake, node: int, request: ShareGroupHeartbeatRequest) -> Any:
        asked = request.subscribed_topic_names is not None
        return answers.pop(0) if answers else replace(known, assignment=assignment if asked else None)

    fake.answers[ShareGroupHeartbeatRequest] = answer
    assert offsets(consumer.poll(20)) == [0]
    assert [beat[1:] for beat in beats(fake)[:4]] == [(0, True), (2, False), (2, True), (3, False)]


def test_a_member_that_nobody_polls_leaves_and_the_next_poll_but_one_rejoins() -> None:
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


def test_unsubscribing_leaves_once_and_subscribing_again_joins_under_the_same_name() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    consumer.unsubscribe()
    consumer.unsubscribe()
    assert consumer.assignment() == []
    consumer.subscribe(["t"])
    consumer.poll(1)
    assert [epoch for _, epoch, _ in beats(fake)] == [0, 2, -1, 0, 2]
    assert len({request.member_id for request in fake.requests(ShareGroupHeartbeatRequest)}) == 1


def test_whoever_has_not_joined_need_not_leave() -> None:
    fake, _, consumer = new_group()
    consumer.unsubscribe()
    consumer.close()
    assert beats(fake) == []


def test_the_answer_to_a_join_that_was_called_off_does_not_count() -> None:
    """Unsubscribed while the join is under way: the goodbye follows, the assignment is not taken."""
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


def test_a_poll_while_the_goodbye_is_under_way_rejoins_after_it() -> None:
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
    ("answer", "goodbyes", "finds"),
    [
        pytest.param(refusal(Errors.NOT_COORDINATOR), 2, 2, id="not coordinator: to the one that is"),
        pytest.param(refusal(Errors.COORDINATOR_NOT_AVAILABLE), 2, 2, id="not available: to the one that is"),
        pytest.param(refusal(Errors.COORDINATOR_LOAD_IN_PROGRESS), 2, 1, id="loading: once more to the same"),
        pytest.param(refusal(Errors.UNKNOWN_MEMBER_ID), 1, 1, id="no member any more"),
        pytest.param(refusal(Errors.GROUP_ID_NOT_FOUND), 1, 1, id="no group any more"),
        pytest.param(Errors.NETWORK_EXCEPTION, 1, 1, id="broken connection: closing waits for no broker"),
    ],
)
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_a_goodbye_is_repeated_where_the_coordinator_has_moved(
    answer: Any, goodbyes: int, finds: int, way: str
) -> None:
    """Else the partitions of a member that has gone are lost to the others for the length of a session."""
    fake, desk, consumer = new_group()
    consumer.poll(1)
    answers = [answer]
    fake.answers[ShareGroupHeartbeatRequest] = lambda *call: answers.pop() if answers else desk.heartbeat(*call)
    getattr(consumer, way)()
    fake.run(timeout_ms=1000)
    assert [epoch for _, epoch, _ in beats(fake)][2:] == [-1] * goodbyes
    assert len(fake.requests(FindCoordinatorRequest)) == finds


def test_an_overdue_member_repeats_a_goodbye_that_was_refused() -> None:
    fake, desk, consumer = new_group(max_poll_interval_ms=7000)
    consumer.poll(1)
    refusals = [refusal(Errors.NOT_COORDINATOR)] * 2
    fake.answers[ShareGroupHeartbeatRequest] = lambda f, n, request: (
        refusals.pop() if refusals and request.member_epoch == -1 else desk.heartbeat(f, n, request)
    )
    fake.run(timeout_ms=20_000)
    assert [epoch for _, epoch, _ in beats(fake)].count(-1) == 3


def test_a_poll_ends_the_repetition_of_a_goodbye() -> None:
    fake, desk, consumer = new_group()
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: None
    consumer.unsubscribe()
    leave = fake.pending(ShareGroupHeartbeatRequest)
    consumer.subscribe(["t"])
    consumer.poll(0)
    fake.answers[ShareGroupHeartbeatRequest] = desk.heartbeat
    fake.reply(leave.call_id, refusal(Errors.NOT_COORDINATOR))
    fake.run()
    assert [epoch for _, epoch, _ in beats(fake)[-3:]] == [-1, 0, 2]


def test_a_coordinator_that_refuses_every_goodbye_holds_up_no_close() -> None:
    fake, _, consumer = new_group()
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda *_: refusal(Errors.NOT_COORDINATOR)
    began_ms = fake.now_ms
    consumer.close(5)
    assert fake.now_ms - began_ms == 5000
    assert 3 < [epoch for _, epoch, _ in beats(fake)].count(-1) < 15
    assert fake.closed


def test_a_stable_members_failed_heartbeats_keep_their_distance() -> None:
    """BEHAVIOUR.md 16."""
    loading = Errors.COORDINATOR_LOAD_IN_PROGRESS
    fake, _, consumer = new_group(None, None, loading, loading)
    consumer.poll(1)
    fake.run(timeout_ms=8000)
    times = [at_ms for at_ms, _, _ in beats(fake)]
    assert times[2] - times[1] == 5000
    assert 80 <= times[3] - times[2] <= 120
    assert 160 <= times[4] - times[3] <= 240


def test_the_answer_to_a_heartbeat_before_a_rejoin_is_ignored() -> None:
    """The member left because it did not poll, and joins again with epoch 0. BEHAVIOUR.md 17."""
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


def test_a_member_that_rejoins_after_its_last_poll_is_overdue_like_any_other() -> None:
    fake, group, consumer = new_group(max_poll_interval_ms=7000)
    consumer.poll(1)
    fake.answers[ShareGroupHeartbeatRequest] = lambda f, n, request: Later(50, group.heartbeat(f, n, request))
    consumer.unsubscribe()
    consumer.subscribe(["t"])
    consumer.poll(0)
    fake.run(timeout_ms=60_000)
    assert [epoch for _, epoch, _ in beats(fake)][-1] == -1
    assert consumer.assignment() == []


def test_an_assignment_of_a_topic_that_was_made_anew_waits_for_its_metadata() -> None:
    """What metadata said of the name is out of date: the new id is asked for."""
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
    assert [asked.topics[0].name for asked in fake.requests(MetadataRequest)] == ["t", None]


def test_unknown_topics_give_empty_polls() -> None:
    fake = Fake()
    FakeShareGroup(fake)
    consumer = consumer_on(fake, "nowhere")
    assert consumer.poll(20).is_empty()
    assert len(fake.requests(MetadataRequest)) == 1
