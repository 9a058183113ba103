"""Share sessions and fetches: when a request goes out, and what each error in each answer does."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.consumer import TopicPartition
from shareq.model.errors import Errors, KafkaException
from shareq.model.events import AcknowledgementsSent, RecordsDelivered
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.share_fetch import (
    LeaderIdAndEpoch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from tests.client.fake import Fake, Later, batch, topic_id
from tests.consumer.fake_share_group import RELEASE, RENEW, FakeShareGroup, acks_of, consumer_on, explicit, offsets

P0 = TopicPartition("t", 0)


def setup(leaders: list[int] | None = None, **conf: Any) -> tuple[Fake, FakeShareGroup, Any]:
    fake = Fake(t=leaders or [1])
    group = FakeShareGroup(fake)
    return fake, group, explicit(fake, "t", **conf)


def fetches(fake: Fake) -> list[tuple[int, int]]:
    """(node, session epoch) of each fetch."""
    return [(s.node, s.request.share_session_epoch) for s in fake.sent if isinstance(s.request, ShareFetchRequest)]


def refusing(group: FakeShareGroup, error: Errors, times: int) -> Any:
    """Fetches fail as a whole, so many times; as a broken connection where that is the error."""
    left = [times]

    def answer(fake: Fake, node: int, request: ShareFetchRequest) -> Any:
        left[0] -= 1
        if left[0] < 0:
            return group.fetch(fake, node, request)
        return error if error is Errors.NETWORK_EXCEPTION else ShareFetchResponse(error_code=error)

    return answer


# ---- when a fetch goes out -------------------------------------------------------------------------------------------


def test_every_leader_is_asked_back_to_back_and_none_once_records_have_come() -> None:
    fake, group, consumer = setup([1, 2])
    assert consumer.poll(1.2).is_empty()
    assert fetches(fake) == [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]
    group.append("t", 0, batch(0, "a"))
    assert offsets(consumer.poll(1)) == [0]
    before = len(fetches(fake))
    fake.run(timeout_ms=3000)
    assert len(fetches(fake)) == before


def test_an_empty_answer_starts_the_next_fetch_between_polls_too() -> None:
    fake, _, consumer = setup()
    consumer.poll(0)
    fake.run(timeout_ms=1000)
    assert fetches(fake) == [(1, 0), (1, 1), (1, 2)]


def test_answers_that_come_at_once_do_not_make_the_consumer_spin() -> None:
    fake, _, consumer = setup(fetch_wait_max_ms=0)
    assert consumer.poll(0.05).is_empty()
    assert len(fetches(fake)) == 51


def test_only_changes_are_told_to_the_broker() -> None:
    fake, group, consumer = setup([1, 1])
    consumer.poll(0.6)
    fake.topics["t"] = [1, 2]
    fake.answers[ShareFetchRequest] = moved(group, 1, LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    consumer.poll(2)
    told = [
        (
            s.node,
            s.request.share_session_epoch,
            [p.partition_index for t in s.request.topics for p in t.partitions],
            [index for t in s.request.forgotten_topics_data for index in t.partitions],
        )
        for s in fake.sent
        if isinstance(s.request, ShareFetchRequest)
    ]
    assert told[:5] == [(1, 0, [0, 1], []), (1, 1, [], []), (1, 2, [], []), (1, 3, [], [1]), (2, 0, [1], [])]


def moved(group: FakeShareGroup, partition: int, leader: LeaderIdAndEpoch) -> Any:
    """Node 1 does not lead the partition any more; it may say who does."""

    def answer(fake: Fake, node: int, request: ShareFetchRequest) -> Any:
        forgotten = [index for topic in request.forgotten_topics_data for index in topic.partitions]
        if node != 1 or forgotten:
            return group.fetch(fake, node, request)
        failed = ShareFetchResponse.Partition(
            partition_index=partition, error_code=Errors.NOT_LEADER_OR_FOLLOWER, current_leader=leader
        )
        topic = ShareFetchResponse.Topic(topic_id=fake.ids["t"], partitions=(failed,))
        return Later(10, ShareFetchResponse(responses=(topic,)))

    return answer


def test_a_record_limit_asks_one_node_after_the_other() -> None:
    fake, group, consumer = setup([1, 2], share_acquire_mode="record_limit", max_poll_records=1)
    consumer.poll(1.6)
    assert [node for node, _ in fetches(fake)] == [1, 2, 1, 2]
    group.append("t", 0, batch(0, "a"))
    group.append("t", 1, batch(0, "b"))
    (first,) = consumer.poll(2)
    consumer.acknowledge(first)
    (second,) = consumer.poll(2)
    assert {first.value(), second.value()} == {b"a", b"b"}


# ---- errors of whole requests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "epochs"),
    [
        pytest.param(Errors.SHARE_SESSION_NOT_FOUND, [0, 1, 0, 1], id="session not found: begins anew"),
        pytest.param(Errors.INVALID_SHARE_SESSION_EPOCH, [0, 1, 0, 1], id="session epoch: begins anew"),
        pytest.param(Errors.SHARE_SESSION_LIMIT_REACHED, [0, 1, 0, 1], id="session limit: begins anew"),
        pytest.param(Errors.NETWORK_EXCEPTION, [0, 1, 0, 1], id="disconnected: begins anew"),
        pytest.param(Errors.UNKNOWN_SERVER_ERROR, [0, 1, 2, 3], id="another error: the session goes on"),
        pytest.param(Errors.GROUP_AUTHORIZATION_FAILED, [0, 1, 2, 3], id="authorization: the session goes on"),
    ],
)
def test_a_failed_fetch_costs_the_session_or_not(error: Errors, epochs: list[int]) -> None:
    fake, group, consumer = setup()
    consumer.poll(0)
    fake.answers[ShareFetchRequest] = refusing(group, error, 1)
    assert consumer.poll(1.5).is_empty()
    assert [epoch for _, epoch in fetches(fake)][:4] == epochs
    assert [t.topic_id for t in fake.requests(ShareFetchRequest)[2].topics] == (
        [fake.ids["t"]] if not epochs[2] else []
    )


def test_a_broker_that_always_fails_is_asked_with_growing_pauses() -> None:
    fake, group, consumer = setup()
    fake.answers[ShareFetchRequest] = refusing(group, Errors.UNKNOWN_SERVER_ERROR, 1000)
    consumer.poll(10)
    assert 10 < len(fetches(fake)) < 20


def test_a_broken_connection_has_the_leaders_looked_up() -> None:
    fake, group, consumer = setup()
    consumer.poll(0)
    fake.answers[ShareFetchRequest] = refusing(group, Errors.NETWORK_EXCEPTION, 1)
    fake.topics["t"] = [2]
    consumer.poll(2)
    assert fetches(fake)[-1][0] == 2


# ---- errors of partitions --------------------------------------------------------------------------------------------


def failing_partition(group: FakeShareGroup, error: Errors, times: int = 1) -> Any:
    left = [times]

    def answer(fake: Fake, node: int, request: ShareFetchRequest) -> Any:
        left[0] -= 1
        if left[0] < 0 or not request.topics:
            return group.fetch(fake, node, request)
        failed = ShareFetchResponse.Partition(partition_index=0, error_code=error, error_message="why")
        return ShareFetchResponse(responses=(ShareFetchResponse.Topic(topic_id=fake.ids["t"], partitions=(failed,)),))

    return answer


@pytest.mark.parametrize(
    "error",
    [
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_LEADER_EPOCH,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.OFFSET_NOT_AVAILABLE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.UNKNOWN_SERVER_ERROR,
    ],
    ids=lambda error: error.name,
)
def test_a_partition_that_fails_is_looked_up_and_comes_back_silently(error: Errors) -> None:
    fake, group, consumer = setup()
    group.append("t", 0, batch(0, "a"))
    fake.answers[ShareFetchRequest] = failing_partition(group, error)
    before = len(fake.requests(MetadataRequest))
    assert offsets(consumer.poll(5)) == [0]
    assert len(fake.requests(MetadataRequest)) > before + 1
    assert 80 <= fake.now_ms - 1_000_000 <= 620


@pytest.mark.parametrize(
    "error",
    [Errors.TOPIC_AUTHORIZATION_FAILED, Errors.GROUP_ID_NOT_FOUND, Errors.INVALID_REQUEST],
    ids=lambda error: error.name,
)
def test_what_no_retry_mends_is_raised_by_poll_once(error: Errors) -> None:
    fake, group, consumer = setup()
    group.append("t", 0, batch(0, "a"))
    fake.answers[ShareFetchRequest] = failing_partition(group, error)
    with pytest.raises(KafkaException, match="why") as raised:
        consumer.poll(5)
    assert raised.value.error.code() == error
    assert offsets(consumer.poll(5)) == [0]


def test_a_partition_without_a_leader_is_waited_for() -> None:
    fake, group, consumer = setup([-1])
    group.append("t", 0, batch(0, "a"))
    assert consumer.poll(3).is_empty()
    fake.topics["t"] = [2]
    assert offsets(consumer.poll(3)) == [0]
    assert len(fake.requests(MetadataRequest)) < 15


def test_a_hint_to_the_new_leader_saves_the_search() -> None:
    fake, group, consumer = setup([1])
    group.append("t", 0, batch(0, "a"))
    fake.answers[ShareFetchRequest] = moved(group, 0, LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    assert offsets(consumer.poll(5)) == [0]
    assert len(fake.requests(MetadataRequest)) == 1
    assert fake.now_ms == 1_000_010


# ---- what becomes of acknowledgements --------------------------------------------------------------------------------


def in_hand(leaders: list[int] | None = None, **conf: Any) -> tuple[Fake, FakeShareGroup, Any, list[Any]]:
    """A consumer that holds records 0 to 2, and what its callback will get."""
    fake, group, consumer = setup(leaders, **conf)
    group.append("t", 0, batch(0, *"abc"))
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(
        lambda found, error: results.append((found[P0], error and error.error.code()))
    )
    assert offsets(consumer.poll(5)) == [0, 1, 2]
    return fake, group, consumer, results


def accept_all(consumer: Any) -> None:
    for offset in range(3):
        consumer.acknowledge_offset("t", 0, offset)


@pytest.mark.parametrize(
    ("error", "result"),
    [
        pytest.param(Errors.SHARE_SESSION_NOT_FOUND, Errors.SHARE_SESSION_NOT_FOUND, id="session not found"),
        pytest.param(Errors.INVALID_SHARE_SESSION_EPOCH, Errors.INVALID_SHARE_SESSION_EPOCH, id="session epoch"),
        pytest.param(Errors.NETWORK_EXCEPTION, Errors.NETWORK_EXCEPTION, id="disconnected"),
        pytest.param(Errors.UNKNOWN_SERVER_ERROR, Errors.UNKNOWN_SERVER_ERROR, id="another error"),
    ],
)
def test_acknowledgements_that_ride_on_a_failed_fetch_fail_and_are_not_repeated(error: Errors, result: Errors) -> None:
    fake, group, consumer, results = in_hand()
    accept_all(consumer)
    fake.answers[ShareFetchRequest] = refusing(group, error, 1)
    consumer.poll(2)
    consumer.poll(0)
    assert results == [({0, 1, 2}, result)]
    assert [acks_of(request) for request in fake.requests(ShareFetchRequest)].count("0-2:1") == 1


def test_an_answer_without_the_partition_means_the_records_are_lost() -> None:
    fake, _, consumer, results = in_hand()
    accept_all(consumer)
    fake.answers[ShareFetchRequest] = lambda *_: Later(500, ShareFetchResponse())
    consumer.poll(0.6)
    consumer.poll(0)
    assert results == [({0, 1, 2}, Errors.INVALID_RECORD_STATE)]


def test_locks_that_have_expired_fail_the_whole_partition() -> None:
    _, group, consumer, results = in_hand()
    group.expire()
    accept_all(consumer)
    assert [(m.offset(), m.delivery_count()) for m in consumer.poll(1)] == [(0, 2), (1, 2), (2, 2)]
    accept_all(consumer)
    assert consumer.commit_sync()[P0] is None
    assert results == [({0, 1, 2}, Errors.INVALID_RECORD_STATE), ({0, 1, 2}, None)]


def answering(group: FakeShareGroup, *errors: Errors) -> Any:
    """ShareAcknowledge is answered with these errors, then by the desk."""
    queue = list(errors)

    def answer(fake: Fake, node: int, request: ShareAcknowledgeRequest) -> Any:
        if not queue:
            return group.acknowledge(fake, node, request)
        failed = ShareAcknowledgeResponse.Partition(partition_index=0, error_code=queue.pop(0))
        topic = ShareAcknowledgeResponse.Topic(topic_id=fake.ids["t"], partitions=(failed,))
        return ShareAcknowledgeResponse(responses=(topic,))

    return answer


@pytest.mark.parametrize(
    ("error", "attempts", "result"),
    [
        pytest.param(Errors.COORDINATOR_NOT_AVAILABLE, 2, None, id="retriable: tried again"),
        pytest.param(Errors.KAFKA_STORAGE_ERROR, 2, None, id="storage: tried again"),
        pytest.param(Errors.NOT_LEADER_OR_FOLLOWER, 1, Errors.NOT_LEADER_OR_FOLLOWER, id="not leader: lost"),
        pytest.param(Errors.FENCED_LEADER_EPOCH, 1, Errors.FENCED_LEADER_EPOCH, id="fenced: lost"),
        pytest.param(Errors.UNKNOWN_TOPIC_ID, 1, Errors.UNKNOWN_TOPIC_ID, id="topic deleted: lost"),
        pytest.param(Errors.UNKNOWN_TOPIC_OR_PARTITION, 1, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="no partition: lost"),
        pytest.param(Errors.INVALID_RECORD_STATE, 1, Errors.INVALID_RECORD_STATE, id="record state: final"),
        pytest.param(Errors.INVALID_REQUEST, 1, Errors.INVALID_REQUEST, id="invalid: final"),
    ],
)
def test_a_commit_is_tried_again_where_that_can_help(error: Errors, attempts: int, result: Errors | None) -> None:
    fake, group, consumer, _ = in_hand()
    accept_all(consumer)
    fake.answers[ShareAcknowledgeRequest] = answering(group, error)
    outcome = consumer.commit_sync()[P0]
    assert (outcome and outcome.error.code()) == result
    assert len(fake.requests(ShareAcknowledgeRequest)) == attempts


def test_retries_of_a_commit_end_at_its_deadline() -> None:
    fake, group, consumer, results = in_hand()
    accept_all(consumer)
    fake.answers[ShareAcknowledgeRequest] = answering(group, *[Errors.COORDINATOR_NOT_AVAILABLE] * 1000)
    assert consumer.commit_sync(3)[P0].error.code() == Errors.REQUEST_TIMED_OUT
    fake.run(timeout_ms=2000)
    consumer.commit_async()
    assert results == [({0, 1, 2}, Errors.COORDINATOR_NOT_AVAILABLE)]
    assert len(fake.requests(ShareAcknowledgeRequest)) < 10


def test_a_commit_that_times_out_may_still_succeed() -> None:
    fake, group, consumer, results = in_hand()
    accept_all(consumer)
    fake.answers[ShareAcknowledgeRequest] = lambda f, n, request: Later(5000, group.acknowledge(f, n, request))
    outcome = consumer.commit_sync(1)
    assert outcome[P0].error.code() == Errors.REQUEST_TIMED_OUT
    assert [tp.error for tp in outcome] == [outcome[P0].error]
    fake.run(timeout_ms=5000)
    consumer.commit_async()
    assert results == [({0, 1, 2}, None)]


def test_records_of_a_leader_that_has_moved_cannot_be_acknowledged() -> None:
    """Refused without asking anybody: the new leader does not know of the locks."""
    fake, group, consumer, _ = in_hand([1, 3])
    fake.answers[ShareFetchRequest] = moved(group, 0, LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    consumer.acknowledge_offset("t", 0, 0)
    consumer.acknowledge_offset("t", 0, 1)
    consumer.acknowledge_offset("t", 0, 2, RELEASE)
    fake.actor._metadata.moved(
        next(iter(fake.actor._membership.assigned)), LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
    )
    fake.actor._metadata.topics["t"].leaders[0] = (2, 1)
    assert consumer.commit_sync()[P0].error.code() == Errors.NOT_LEADER_OR_FOLLOWER
    assert fake.requests(ShareAcknowledgeRequest) == []


def test_records_of_a_session_that_is_gone_cannot_be_acknowledged() -> None:
    fake, _, consumer, results = in_hand([1, 1])
    consumer.acknowledge_offset("t", 0, 0)
    fake.answers[ShareAcknowledgeRequest] = lambda *_: ShareAcknowledgeResponse(
        error_code=Errors.SHARE_SESSION_NOT_FOUND
    )
    consumer.commit_async()
    consumer.acknowledge_offset("t", 0, 1)
    assert consumer.commit_sync()[P0].error.code() == Errors.NETWORK_EXCEPTION
    assert [error for _, error in results] == [Errors.SHARE_SESSION_NOT_FOUND, Errors.NETWORK_EXCEPTION]


def test_commits_while_a_request_is_under_way_travel_together() -> None:
    fake, group, consumer, results = in_hand()
    fake.answers[ShareAcknowledgeRequest] = lambda *_: None
    for offset in range(3):
        consumer.acknowledge_offset("t", 0, offset)
        consumer.commit_async()
    first = fake.pending(ShareAcknowledgeRequest)
    fake.answers[ShareAcknowledgeRequest] = group.acknowledge
    fake.reply(first.call_id, group.acknowledge(fake, 1, first.request))
    fake.run()
    assert [acks_of(request) for request in fake.requests(ShareAcknowledgeRequest)] == ["0:1", "1:1 2:1"]
    consumer.commit_async()
    assert results == [({0}, None), ({1}, None), ({2}, None)]


def test_after_unsubscribing_a_commit_still_sends() -> None:
    _, group, consumer, _ = in_hand()
    accept_all(consumer)
    consumer.unsubscribe()
    assert consumer.commit_sync() == {P0: None}
    assert set(group.state("t").values()) == {"done"}


def test_buffered_records_of_topics_nobody_wants_any_more_are_given_back() -> None:
    fake = Fake(t=[1], u=[2])
    group = FakeShareGroup(fake)
    group.append("t", 0, batch(0, "a"))
    group.append("u", 0, batch(0, "b"))
    consumer = consumer_on(fake, "t", "u", max_poll_records=1)
    (first,) = consumer.poll(5)
    mine = str(first.topic())
    other = {"t": "u", "u": "t"}[mine]
    consumer.subscribe([mine])
    fake.run()
    assert group.state(other) == {0: "available"}


def unsubscribing(conf: dict[str, Any]) -> tuple[Fake, FakeShareGroup, Any]:
    """A consumer of t, with a fetch that waits at the broker."""
    fake = Fake(t=[1], u=[1])
    group = FakeShareGroup(fake)
    consumer = explicit(fake, "t", **conf)
    consumer.poll(0.6)
    fake.answers[ShareFetchRequest] = lambda *_: None
    fake.run(timeout_ms=500)
    group.append("t", 0, batch(0, "old"))
    group.append("u", 0, batch(0, "new"))
    return fake, group, consumer


@pytest.mark.parametrize("after_ms", [0, 50], ids=["answered before the poll", "answered in it"])
@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
@pytest.mark.parametrize(
    "subscribe",
    [
        pytest.param(lambda consumer: consumer.subscribe(["u"]), id="another topic"),
        pytest.param(lambda consumer: (consumer.unsubscribe(), consumer.subscribe(["u"])), id="none, then another"),
    ],
)
def test_records_of_a_topic_that_is_no_longer_subscribed_are_released(subscribe: Any, mode: str, after_ms: int) -> None:
    """They come with the answer of the fetch that was under way, and no later fetch asks for more: an assignment takes
    its time to change, and a record that is acquired and released again and again is archived."""
    fake, group, consumer = unsubscribing({"share_acquire_mode": mode})
    beat = fake.answers[ShareGroupHeartbeatRequest]
    fake.answers[ShareGroupHeartbeatRequest] = lambda *asked: Later(3000, beat(*asked))
    under_way = fake.pending(ShareFetchRequest)
    subscribe(consumer)
    fake.reply(under_way.call_id, group.fetch(fake, 1, under_way.request), after_ms=after_ms)
    fake.answers[ShareFetchRequest] = group.fetch
    assert [message.value() for message in consumer.poll(10)] == [b"new"]
    (cell,) = group.states[TopicIdPartition(fake.ids["t"], 0)].values()
    assert cell == ["available", 1], "acquired once"


def test_a_renewed_record_of_a_topic_that_is_no_longer_subscribed_is_released() -> None:
    fake, group, consumer, _ = in_hand()
    fake.topics["u"], fake.ids["u"] = [1], topic_id("u")
    for offset in range(3):
        consumer.acknowledge_offset("t", 0, offset, RENEW if offset else RELEASE)
    assert consumer.commit_sync() == {P0: None}
    consumer.subscribe(["u"])
    consumer.acknowledge_offset("t", 0, 1)
    assert consumer.commit_sync() == {P0: None}, "what is renewed is in hand, and may be acknowledged"
    assert consumer.poll(1).is_empty()
    assert group.state("t") == {0: "available", 1: "done", 2: "available"}


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_what_happens_is_told_to_the_journal() -> None:
    fake, _, consumer, _ = in_hand()
    member = consumer.member_id()
    consumer.acknowledge_offset("t", 0, 1, RELEASE)
    assert consumer.commit_sync() == {P0: None}
    assert fake.events == [
        RecordsDelivered("g", member, "shareq", "t", 0, 0, 3, 3, 1),
        AcknowledgementsSent("g", member, "t", 0, (0, 0, 1, 0, 0), 0),
    ]
