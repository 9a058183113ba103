"""Share sessions and fetches: when a request is sent, and the effect of each error. BEHAVIOUR.md, 19 to 27."""

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
from shareq.model.messages.share_group import MemberAssignment, ShareGroupHeartbeatRequest
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
    """Refuse the next fetches with the error, `times` times; NETWORK_EXCEPTION breaks the connection."""
    left = [times]

    def answer(fake: Fake, node: int, request: ShareFetchRequest) -> Any:
        left[0] -= 1
        if left[0] < 0:
            return group.fetch(fake, node, request)
        return error if error is Errors.NETWORK_EXCEPTION else ShareFetchResponse(error_code=error)

    return answer


# ---- when a fetch is sent --------------------------------------------------------------------------------------------


def test_every_leader_is_fetched_from_until_records_have_arrived() -> None:
    fake, group, consumer = setup([1, 2])
    assert consumer.poll(1.2).is_empty()
    assert fetches(fake) == [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]
    group.append("t", 0, batch(0, "a"))
    assert offsets(consumer.poll(1)) == [0]
    before = len(fetches(fake))
    fake.run(timeout_ms=3000)
    assert len(fetches(fake)) == before


def test_an_empty_response_starts_the_next_fetch_between_polls_too() -> None:
    fake, _, consumer = setup()
    consumer.poll(0)
    fake.run(timeout_ms=1000)
    assert fetches(fake) == [(1, 0), (1, 1), (1, 2)]


def test_immediate_empty_responses_do_not_cause_a_busy_loop() -> None:
    fake, _, consumer = setup(fetch_wait_max_ms=0)
    assert consumer.poll(0.05).is_empty()
    assert len(fetches(fake)) == 51


def test_fetches_have_changed_partitions_only() -> None:
    fake, group, consumer = setup([1, 1])
    consumer.poll(0.6)
    fake.topics["t"] = [1, 2]
    fake.answers[ShareFetchRequest] = moved(group, 1, LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    consumer.poll(2)
    contents = [
        (
            s.node,
            s.request.share_session_epoch,
            [p.partition_index for t in s.request.topics for p in t.partitions],
            [index for t in s.request.forgotten_topics_data for index in t.partitions],
        )
        for s in fake.sent
        if isinstance(s.request, ShareFetchRequest)
    ]
    assert contents[:5] == [(1, 0, [0, 1], []), (1, 1, [], []), (1, 2, [], []), (1, 3, [], [1]), (2, 0, [1], [])]


def moved(group: FakeShareGroup, partition: int, leader: LeaderIdAndEpoch) -> Any:
    """Node 1 does not lead the partition any more; `leader` is the current leader in its response."""

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


def test_record_limit_fetches_from_one_node_at_a_time() -> None:
    fake, group, consumer = setup([1, 2], share_acquire_mode="record_limit", max_poll_records=1)
    consumer.poll(1.6)
    assert [node for node, _ in fetches(fake)] == [1, 2, 1, 2]
    group.append("t", 0, batch(0, "a"))
    group.append("t", 1, batch(0, "b"))
    (first,) = consumer.poll(2)
    consumer.acknowledge(first)
    (second,) = consumer.poll(2)
    assert {first.value(), second.value()} == {b"a", b"b"}


# ---- sessions without partitions ------------------------------------------------------------------------------------


def assign(group: FakeShareGroup, *partitions: int) -> None:
    """The next heartbeat's response has these partitions."""
    given = MemberAssignment.TopicPartitions(topic_id=group.fake.ids["t"], partitions=partitions)
    group.assignment = (given,)


def forgets(request: Any) -> bool:
    return isinstance(request, ShareFetchRequest) and bool(request.forgotten_topics_data)


def test_a_session_without_partitions_is_ended_and_opened_again() -> None:
    """BEHAVIOUR.md, 21."""
    fake, group, consumer = setup([1, 2])
    assert consumer.poll(1.2).is_empty()
    assign(group, 0)
    assert consumer.poll(5).is_empty()
    last = [s.request for s in fake.sent if isinstance(s.request, ShareFetchRequest) and s.node == 2][-2:]
    assert [index for topic in last[0].forgotten_topics_data for index in topic.partitions] == [1]
    assert (last[1].share_session_epoch, last[1].topics) == (-1, ())
    assert 2 not in group.sessions
    assign(group, 0, 1)
    before = len(fake.sent)
    assert consumer.poll(6).is_empty()
    later = [s.request for s in fake.sent[before:] if isinstance(s.request, ShareFetchRequest) and s.node == 2]
    assert later[0].share_session_epoch == 0
    consumer.close()
    assert not group.sessions


def test_a_session_is_not_ended_while_records_of_it_are_held() -> None:
    """BEHAVIOUR.md, 21. Its end would release the record, which is renewed here."""
    fake, group, consumer = setup([1, 2])
    group.append("t", 1, batch(0, "a"))
    (message,) = consumer.poll(1)
    assign(group, 0)
    for _ in range(3):
        consumer.acknowledge(message, RENEW)
        (message,) = consumer.poll(3)
        fake.run(timeout_ms=3000)
    assert any(forgets(s.request) for s in fake.sent if s.node == 2)
    assert (2, -1) not in fetches(fake)
    assert group.state("t", 1) == {0: "acquired"}
    consumer.acknowledge(message, "accept")
    consumer.commit_sync()
    fake.run(timeout_ms=100)
    assert fetches(fake)[-1] == (2, -1)
    assert group.state("t", 1) == {0: "done"}


def test_a_lost_request_to_end_a_session_is_not_repeated() -> None:
    fake, group, consumer = setup([1, 2])
    assert consumer.poll(1.2).is_empty()
    assign(group, 0)

    def broken(fake: Fake, node: int, request: ShareFetchRequest) -> Any:
        return Errors.NETWORK_EXCEPTION if request.share_session_epoch == -1 else group.fetch(fake, node, request)

    fake.answers[ShareFetchRequest] = broken
    assert consumer.poll(10).is_empty()
    assert [fetch for fetch in fetches(fake) if fetch[1] == -1] == [(2, -1)]


# ---- errors of whole requests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "epochs"),
    [
        pytest.param(Errors.SHARE_SESSION_NOT_FOUND, [0, 1, 0, 1], id="session not found: a new session"),
        pytest.param(Errors.INVALID_SHARE_SESSION_EPOCH, [0, 1, 0, 1], id="session epoch: a new session"),
        pytest.param(Errors.SHARE_SESSION_LIMIT_REACHED, [0, 1, 0, 1], id="session limit: a new session"),
        pytest.param(Errors.NETWORK_EXCEPTION, [0, 1, 0, 1], id="disconnected: a new session"),
        pytest.param(Errors.UNKNOWN_SERVER_ERROR, [0, 1, 2, 3], id="another error: the session continues"),
        pytest.param(Errors.GROUP_AUTHORIZATION_FAILED, [0, 1, 2, 3], id="authorization: the session continues"),
    ],
)
def test_errors_of_a_fetch_end_or_keep_the_session(error: Errors, epochs: list[int]) -> None:
    fake, group, consumer = setup()
    consumer.poll(0)
    fake.answers[ShareFetchRequest] = refusing(group, error, 1)
    assert consumer.poll(1.5).is_empty()
    assert [epoch for _, epoch in fetches(fake)][:4] == epochs
    assert [t.topic_id for t in fake.requests(ShareFetchRequest)[2].topics] == (
        [fake.ids["t"]] if not epochs[2] else []
    )


def test_fetches_from_a_failing_broker_back_off() -> None:
    fake, group, consumer = setup()
    fake.answers[ShareFetchRequest] = refusing(group, Errors.UNKNOWN_SERVER_ERROR, 1000)
    consumer.poll(10)
    assert 10 < len(fetches(fake)) < 20


def test_a_broken_connection_causes_a_lookup_of_the_leaders() -> None:
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
def test_a_partition_with_a_leader_error_is_looked_up_and_fetched_again(error: Errors) -> None:
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
def test_a_final_partition_error_is_raised_by_poll_once(error: Errors) -> None:
    fake, group, consumer = setup()
    group.append("t", 0, batch(0, "a"))
    fake.answers[ShareFetchRequest] = failing_partition(group, error)
    with pytest.raises(KafkaException, match="why") as raised:
        consumer.poll(5)
    assert raised.value.error.code() == error
    assert offsets(consumer.poll(5)) == [0]


def test_a_partition_without_a_leader_is_fetched_when_it_has_one() -> None:
    fake, group, consumer = setup([-1])
    group.append("t", 0, batch(0, "a"))
    assert consumer.poll(3).is_empty()
    fake.topics["t"] = [2]
    assert offsets(consumer.poll(3)) == [0]
    assert len(fake.requests(MetadataRequest)) < 15


def test_a_current_leader_in_the_response_saves_the_lookup() -> None:
    fake, group, consumer = setup([1])
    group.append("t", 0, batch(0, "a"))
    fake.answers[ShareFetchRequest] = moved(group, 0, LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    assert offsets(consumer.poll(5)) == [0]
    assert len(fake.requests(MetadataRequest)) == 1
    assert fake.now_ms == 1_000_010


# ---- results of acknowledgements -------------------------------------------------------------------------------------


def holding(leaders: list[int] | None = None, **conf: Any) -> tuple[Fake, FakeShareGroup, Any, list[Any]]:
    """A consumer that holds records 0 to 2, and the list that its callback appends to."""
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
def test_acknowledgements_of_a_failed_fetch_fail_without_a_retry(error: Errors, result: Errors) -> None:
    fake, group, consumer, results = holding()
    accept_all(consumer)
    fake.answers[ShareFetchRequest] = refusing(group, error, 1)
    consumer.poll(2)
    consumer.poll(0)
    assert results == [({0, 1, 2}, result)]
    assert [acks_of(request) for request in fake.requests(ShareFetchRequest)].count("0-2:1") == 1


def test_a_response_without_the_partition_fails_the_acknowledgements() -> None:
    fake, _, consumer, results = holding()
    accept_all(consumer)
    fake.answers[ShareFetchRequest] = lambda *_: Later(500, ShareFetchResponse())
    consumer.poll(0.6)
    consumer.poll(0)
    assert results == [({0, 1, 2}, Errors.INVALID_RECORD_STATE)]


def test_locks_that_have_expired_fail_the_whole_partition() -> None:
    _, group, consumer, results = holding()
    group.expire()
    accept_all(consumer)
    assert [(m.offset(), m.delivery_count()) for m in consumer.poll(1)] == [(0, 2), (1, 2), (2, 2)]
    accept_all(consumer)
    assert consumer.commit_sync()[P0] is None
    assert results == [({0, 1, 2}, Errors.INVALID_RECORD_STATE), ({0, 1, 2}, None)]


def answering(group: FakeShareGroup, *errors: Errors) -> Any:
    """Answer ShareAcknowledge with these errors, then as the group does."""
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
        pytest.param(Errors.COORDINATOR_NOT_AVAILABLE, 2, None, id="retriable: retried"),
        pytest.param(Errors.KAFKA_STORAGE_ERROR, 2, None, id="storage: retried"),
        pytest.param(Errors.NOT_LEADER_OR_FOLLOWER, 1, Errors.NOT_LEADER_OR_FOLLOWER, id="not leader: lost"),
        pytest.param(Errors.FENCED_LEADER_EPOCH, 1, Errors.FENCED_LEADER_EPOCH, id="fenced: lost"),
        pytest.param(Errors.UNKNOWN_TOPIC_ID, 1, Errors.UNKNOWN_TOPIC_ID, id="topic deleted: lost"),
        pytest.param(Errors.UNKNOWN_TOPIC_OR_PARTITION, 1, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="no partition: lost"),
        pytest.param(Errors.INVALID_RECORD_STATE, 1, Errors.INVALID_RECORD_STATE, id="record state: final"),
        pytest.param(Errors.INVALID_REQUEST, 1, Errors.INVALID_REQUEST, id="invalid: final"),
    ],
)
def test_a_commit_retries_retriable_errors_only(error: Errors, attempts: int, result: Errors | None) -> None:
    fake, group, consumer, _ = holding()
    accept_all(consumer)
    fake.answers[ShareAcknowledgeRequest] = answering(group, error)
    outcome = consumer.commit_sync()[P0]
    assert (outcome and outcome.error.code()) == result
    assert len(fake.requests(ShareAcknowledgeRequest)) == attempts


def test_retries_of_a_commit_end_at_its_deadline() -> None:
    fake, group, consumer, results = holding()
    accept_all(consumer)
    fake.answers[ShareAcknowledgeRequest] = answering(group, *[Errors.COORDINATOR_NOT_AVAILABLE] * 1000)
    assert consumer.commit_sync(3)[P0].error.code() == Errors.REQUEST_TIMED_OUT
    fake.run(timeout_ms=2000)
    consumer.commit_async()
    assert results == [({0, 1, 2}, Errors.COORDINATOR_NOT_AVAILABLE)]
    assert len(fake.requests(ShareAcknowledgeRequest)) < 10


def test_a_commit_that_timed_out_can_still_succeed() -> None:
    fake, group, consumer, results = holding()
    accept_all(consumer)
    fake.answers[ShareAcknowledgeRequest] = lambda f, n, request: Later(5000, group.acknowledge(f, n, request))
    outcome = consumer.commit_sync(1)
    assert outcome[P0].error.code() == Errors.REQUEST_TIMED_OUT
    assert [tp.error for tp in outcome] == [outcome[P0].error]
    fake.run(timeout_ms=5000)
    consumer.commit_async()
    assert results == [({0, 1, 2}, None)]


def test_records_of_a_leader_that_has_moved_cannot_be_acknowledged() -> None:
    """Refused without a request, because the new leader does not have the locks."""
    fake, group, consumer, _ = holding([1, 3])
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


def test_records_of_a_lost_session_cannot_be_acknowledged() -> None:
    fake, _, consumer, results = holding([1, 1])
    consumer.acknowledge_offset("t", 0, 0)
    fake.answers[ShareAcknowledgeRequest] = lambda *_: ShareAcknowledgeResponse(
        error_code=Errors.SHARE_SESSION_NOT_FOUND
    )
    consumer.commit_async()
    consumer.acknowledge_offset("t", 0, 1)
    assert consumer.commit_sync()[P0].error.code() == Errors.NETWORK_EXCEPTION
    assert [error for _, error in results] == [Errors.SHARE_SESSION_NOT_FOUND, Errors.NETWORK_EXCEPTION]


def test_commits_during_a_request_are_sent_together() -> None:
    fake, group, consumer, results = holding()
    fake.answers[ShareAcknowledgeRequest] = lambda *_: None
    for offset in range(3):
        consumer.acknowledge_offset("t", 0, offset)
        consumer.commit_async()
    first = fake.pending(ShareAcknowledgeRequest)
    fake.answers[ShareAcknowledgeRequest] = group.acknowledge
    fake.reply(first.call_id, group.acknowledge(fake, 1, first.request))
    fake.run()
    assert [acks_of(request) for request in fake.requests(ShareAcknowledgeRequest)] == ["0:1", "1-2:1"]
    consumer.commit_async()
    assert results == [({0}, None), ({1}, None), ({2}, None)]


def test_a_commit_after_unsubscribe_is_sent() -> None:
    _, group, consumer, _ = holding()
    accept_all(consumer)
    consumer.unsubscribe()
    assert consumer.commit_sync() == {P0: None}
    assert set(group.state("t").values()) == {"done"}


def test_buffered_records_of_unsubscribed_topics_are_released() -> None:
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


def with_waiting_fetch(conf: dict[str, Any]) -> tuple[Fake, FakeShareGroup, Any]:
    """A consumer of t with a fetch that waits at the broker, for tests that unsubscribe."""
    fake = Fake(t=[1], u=[1])
    group = FakeShareGroup(fake)
    consumer = explicit(fake, "t", **conf)
    consumer.poll(0.6)
    fake.answers[ShareFetchRequest] = lambda *_: None
    fake.run(timeout_ms=500)
    group.append("t", 0, batch(0, "old"))
    group.append("u", 0, batch(0, "new"))
    return fake, group, consumer


@pytest.mark.parametrize("after_ms", [0, 50], ids=["response before the poll", "response during the poll"])
@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
@pytest.mark.parametrize(
    "subscribe",
    [
        pytest.param(lambda consumer: consumer.subscribe(["u"]), id="another topic"),
        pytest.param(lambda consumer: (consumer.unsubscribe(), consumer.subscribe(["u"])), id="none, then another"),
    ],
)
def test_records_of_a_topic_that_is_no_longer_subscribed_are_released(subscribe: Any, mode: str, after_ms: int) -> None:
    """The response of the fetch in flight has the records, and no later fetch lists the topic. Otherwise records would
    be acquired and released until they are archived, because the assignment changes late.
    """
    fake, group, consumer = with_waiting_fetch({"share_acquire_mode": mode})
    beat = fake.answers[ShareGroupHeartbeatRequest]
    fake.answers[ShareGroupHeartbeatRequest] = lambda *args: Later(3000, beat(*args))
    in_flight = fake.pending(ShareFetchRequest)
    subscribe(consumer)
    fake.reply(in_flight.call_id, group.fetch(fake, 1, in_flight.request), after_ms=after_ms)
    fake.answers[ShareFetchRequest] = group.fetch
    assert [message.value() for message in consumer.poll(10)] == [b"new"]
    (cell,) = group.states[TopicIdPartition(fake.ids["t"], 0)].values()
    assert cell == ["available", 1], "acquired once"


def test_a_renewed_record_of_a_topic_that_is_no_longer_subscribed_is_released() -> None:
    fake, group, consumer, _ = holding()
    fake.topics["u"], fake.ids["u"] = [1], topic_id("u")
    for offset in range(3):
        consumer.acknowledge_offset("t", 0, offset, RENEW if offset else RELEASE)
    assert consumer.commit_sync() == {P0: None}
    consumer.subscribe(["u"])
    consumer.acknowledge_offset("t", 0, 1)
    assert consumer.commit_sync() == {P0: None}, "a renewed record is held and can be acknowledged"
    assert consumer.poll(1).is_empty()
    assert group.state("t") == {0: "available", 1: "done", 2: "available"}


# ---- events ----------------------------------------------------------------------------------------------------------


def test_fetches_and_acknowledgements_are_events() -> None:
    fake, _, consumer, _ = holding()
    member = consumer.member_id()
    consumer.acknowledge_offset("t", 0, 1, RELEASE)
    assert consumer.commit_sync() == {P0: None}
    assert fake.events == [
        RecordsDelivered("g", member, "shareq", "t", 0, 0, 3, 3, 1),
        AcknowledgementsSent("g", member, "t", 0, (0, 0, 1, 0, 0), 0),
    ]
