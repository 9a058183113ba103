"""A share session alone: epochs, contents of requests, and acknowledgements sent together. BEHAVIOUR.md, 21 to 25."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shareq.client.calls import Backoff, Calls
from shareq.client.metadata import Metadata, Topic
from shareq.consumer.acknowledgements import Acknowledgements, AcknowledgeRun, MemberIdentity
from shareq.consumer.fetch_buffer import FetchBuffer
from shareq.consumer.metrics import FetchMetrics
from shareq.consumer.session_handler import MAX_EPOCH, FetchLimits, ShareSessionHandler
from shareq.consumer.share_fetcher import ShareFetcher
from shareq.model.actor import Answer, Call
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.share_fetch import ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse
from shareq.model.states import AcquireMode
from tests.client.fake import topic_id
from tests.consumer.fake_share_group import acks_of

IDENTITY = MemberIdentity("g", "m", "c")
LIMITS = FetchLimits(500, 1, 1000, 10, AcquireMode.BATCH_OPTIMIZED)
A0, A1, B0 = (TopicIdPartition(topic_id(name), index) for name, index in (("a", 0), ("a", 1), ("b", 0)))


def acks(key: TopicIdPartition, *runs: tuple[int, int, int], deadline_ms: int | None = None) -> Acknowledgements:
    return Acknowledgements(key, "t", 1, [AcknowledgeRun(*run) for run in runs], {}, deadline_ms=deadline_ms)


def partitions_of(request: ShareFetchRequest) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """(listed, forgotten) partitions of a request, as (topic, index)."""
    listed = [(topic.topic_id[0], p.partition_index) for topic in request.topics for p in topic.partitions]
    forgotten = [(topic.topic_id[0], index) for topic in request.forgotten_topics_data for index in topic.partitions]
    return listed, forgotten


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (MAX_EPOCH - 1, MAX_EPOCH), (MAX_EPOCH, 1)], ids=str)
def test_each_response_advances_the_epoch(epoch: int, following: int) -> None:
    session = ShareSessionHandler(1)
    session.epoch = epoch
    session.answered()
    assert session.epoch == following


def test_a_fetch_has_changes_only_but_all_partitions_after_a_loss() -> None:
    session = ShareSessionHandler(1)
    requests = []
    for wanted in ({A0, B0}, {A0, B0}, {A0, A1}, set[TopicIdPartition](), {A0}):
        session.want(frozenset(wanted))
        requests.append(partitions_of(session.fetch(IDENTITY, LIMITS, [])))
        session.answered()
    session.lost()
    requests.append(partitions_of(session.fetch(IDENTITY, LIMITS, [])))
    assert requests == [
        ([("a", 0), ("b", 0)], []),
        ([], []),
        ([("a", 1)], [("b", 0)]),
        ([], [("a", 0), ("a", 1)]),
        ([("a", 0)], []),
        ([("a", 0)], []),
    ]
    assert session.epoch == 0


def test_acknowledged_partitions_are_listed_without_being_added() -> None:
    session = ShareSessionHandler(1)
    session.want(frozenset({A0}))
    session.fetch(IDENTITY, LIMITS, [])
    session.answered()
    request = session.fetch(IDENTITY, LIMITS, [acks(A0, (0, 2, 1))])
    assert (partitions_of(request), acks_of(request)) == (([("a", 0)], []), "0-1:1")
    assert session.members == {A0}


def test_only_disjoint_acknowledgements_of_a_partition_share_a_request() -> None:
    session = ShareSessionHandler(1)
    session.waiting.extend(
        [acks(A0, (0, 2, 1)), acks(B0, (0, 1, 1)), acks(A0, (2, 3, 2)), acks(A0, (1, 2, 1)), acks(B0, (5, 6, 1))]
    )
    requests = []
    while session.waiting:
        requests.append(acks_of(session.acknowledge(IDENTITY, session.take_waiting())))
    assert requests == ["0-1:1 2:2 0:1", "1:1 5:1"]


def fetcher_with_session() -> tuple[ShareFetcher, Calls, list[Any]]:
    """A fetcher with an open session with node 1, its calls, and the list of settled acknowledgements."""
    calls = Calls()
    backoff = Backoff(random.Random(1))
    metadata = Metadata(calls, backoff, lambda: None)
    for key in (A0, B0):
        partition = MetadataResponse.Partition(partition_index=0, leader_id=1, leader_epoch=0)
        name = key.topic_id[0]
        topic = Topic(MetadataResponse.Topic(name=name, topic_id=key.topic_id, partitions=(partition,)))
        metadata.topics[name] = metadata.by_id[key.topic_id] = topic
    settled: list[Any] = []
    fetcher = ShareFetcher(
        calls,
        backoff,
        metadata,
        FetchBuffer(check_crcs=False),
        identity=IDENTITY,
        limits=LIMITS,
        metrics=FetchMetrics(),
        holds=lambda node: False,
        on_settled=lambda acknowledgements, error, _: settled.append((acknowledgements.runs, error)),
        on_error=lambda error: None,
    )
    fetcher.subscribe(frozenset({"a", "b"}))
    fetcher.assign(frozenset({A0, B0}))
    fetcher.fetching = True
    fetcher.pump(0)
    (call,) = take_calls(calls)
    fetcher.fetching = False
    calls.answered(Answer(call.id, ShareFetchResponse()), 0)
    return fetcher, calls, settled


def take_calls(calls: Calls) -> list[Call]:
    return [effect for effect in calls.take_effects() if isinstance(effect, Call)]


def test_closing_sends_overlapping_acknowledgements_in_separate_requests() -> None:
    fetcher, calls, settled = fetcher_with_session()
    for key, verdict in ((A0, 2), (A0, 1)):
        fetcher.acknowledge(acks(key, (0, 1, verdict)))
    fetcher.close()
    requests = []
    for now_ms in (5, 10):
        fetcher.pump(now_ms)
        (call,) = take_calls(calls)
        request: Any = call.request
        requests.append((request.share_session_epoch, acks_of(request)))
        assert not fetcher.closed
        calls.answered(Answer(call.id, ShareAcknowledgeResponse()), now_ms)
    assert requests == [(1, "0:2"), (-1, "0:1")]
    assert [error for _, error in settled] == [Errors.INVALID_RECORD_STATE] * 2  # the responses have no partition
    assert fetcher.closed


def test_a_session_that_was_never_opened_is_not_closed() -> None:
    fetcher, calls, _ = fetcher_with_session()
    fetcher._sessions[1].lost()
    fetcher.close()
    fetcher.pump(5)
    assert (take_calls(calls), fetcher.closed) == ([], True)
