"""The worked examples 1 to 7 of BEHAVIOUR.md, on a naive share group."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.consumer import TopicPartition
from shareq.log.batches import parse_batch, restamp
from shareq.log.records import ControlType, control_batch
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from tests.client.fake import Fake, batch
from tests.consumer.fake_share_group import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    FakeShareGroup,
    acks_of,
    consumer_on,
    explicit,
    offsets,
    spread,
)

P0 = TopicPartition("t", 0)


def group_with(*batches: Any, **options: Any) -> tuple[Fake, FakeShareGroup]:
    fake = Fake(t=[1])
    group = FakeShareGroup(fake, **options)
    group.append("t", 0, *batches)
    return fake, group


def singles(count: int) -> list[Any]:
    return [batch(offset, f"v{offset}") for offset in range(count)]


def test_the_first_assignment_takes_one_heartbeat_interval() -> None:
    """The first assignment is empty until the share-partitions are initialized.

    BEHAVIOUR.md, example 1.
    """
    fake, _ = group_with(batch(0, "a"), at_once=False)
    consumer = consumer_on(fake, "t")
    messages = consumer.poll(10)
    beats = [
        (s.after_ms, s.request.member_epoch, s.request.subscribed_topic_names)
        for s in fake.sent
        if isinstance(s.request, ShareGroupHeartbeatRequest)
    ]
    assert beats == [(0, 0, ("t",)), (5000, 2, None), (5000, 3, None)]
    first = fake.requests(ShareFetchRequest)[0]
    assert (first.share_session_epoch, first.topics[0].partitions[0].partition_index) == (0, 0)
    assert offsets(messages) == [0]
    assert fake.now_ms == 1_000_000 + 5000


def test_explicit_acknowledgements_are_sent_with_fetch_commit_and_close() -> None:
    """BEHAVIOUR.md, example 2."""
    fake, group = group_with(batch(0, *"abcde"))
    consumer = explicit(fake, "t")
    polled = consumer.poll(1)
    assert offsets(polled) == [0, 1, 2, 3, 4]
    for message, verdict in zip(polled, [ACCEPT, RELEASE, REJECT, ACCEPT, ACCEPT], strict=True):
        consumer.acknowledge(message, verdict)
    again = consumer.poll(1)
    fetch = fake.requests(ShareFetchRequest)[-1]
    assert (fetch.share_session_epoch, acks_of(fetch)) == (1, "0:1 1:2 2:3 3-4:1")
    assert [(m.offset(), m.delivery_count()) for m in again] == [(1, 2)]
    consumer.acknowledge(again[0])
    assert consumer.commit_sync() == {P0: None}
    sent = fake.requests(ShareAcknowledgeRequest)[-1]
    assert (sent.share_session_epoch, acks_of(sent)) == (2, "1:1")
    group.append("t", 0, batch(5, *"fgh"))
    more = consumer.poll(1)
    fetch = fake.requests(ShareFetchRequest)[-1]
    assert (fetch.share_session_epoch, fetch.topics) == (3, ())
    assert offsets(more) == [5, 6, 7]
    consumer.acknowledge(more[0])
    consumer.commit_async()
    sent = fake.requests(ShareAcknowledgeRequest)[-1]
    assert (sent.share_session_epoch, acks_of(sent)) == (4, "5:1")
    consumer.acknowledge(more[1])
    consumer.close()
    last, leave = fake.sent[-2].request, fake.sent[-1].request
    assert (last.share_session_epoch, acks_of(last)) == (-1, "6:1")
    assert leave.member_epoch == -1
    assert group.state("t")[7] == "available"


def test_the_callback_receives_all_offsets_of_one_request() -> None:
    """BEHAVIOUR.md, example 3."""
    fake, _ = group_with(batch(0, *"abcdefghijklmno"))
    consumer = explicit(fake, "t")
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda *result: results.append(result))
    for message in consumer.poll(1):
        consumer.acknowledge(message, {1: RELEASE, 2: REJECT}.get(message.offset() or 0, ACCEPT))
    again = consumer.poll(1)
    fetch = fake.requests(ShareFetchRequest)[-1]
    sent = spread(fetch.topics[0].partitions[0].acknowledgement_batches)
    assert sent == {offset: {1: 2, 2: 3}.get(offset, 1) for offset in range(15)}
    assert [(m.offset(), m.delivery_count()) for m in again] == [(1, 2)]
    consumer.acknowledge(again[0])
    consumer.poll(0)
    assert results == [({P0: set(range(15))}, None)]


def test_a_renewed_record_is_returned_with_the_same_count() -> None:
    """Unlike in Java, the poll that sends the renewal returns the record as soon as its lock is renewed.

    BEHAVIOUR.md, example 4.
    """
    fake, _ = group_with(batch(0, *"ab"))
    consumer = explicit(fake, "t")
    first, second = consumer.poll(1)
    consumer.acknowledge(first)
    consumer.acknowledge(second, RENEW)
    began_ms = fake.now_ms
    (renewed,) = consumer.poll(2)
    sent = fake.requests(ShareAcknowledgeRequest)[-1]
    assert (sent.is_renew_ack, acks_of(sent)) == (True, "0:1 1:4")
    assert (renewed == second, renewed.delivery_count(), fake.now_ms - began_ms) == (True, 1, 0)
    consumer.acknowledge(renewed, RENEW)
    assert consumer.commit_sync() == {P0: None}
    assert consumer.poll(1)[0] == second


def test_acknowledgements_are_sent_despite_corrupt_records() -> None:
    """A corrupt batch is a message with an error; earlier acknowledgements are sent all the same.

    BEHAVIOUR.md, example 5.
    """
    good, bad = batch(0, "ok0", "ok1"), batch(2, "bad2" * 50, compression="gzip")
    broken = bad._replace(data=bad.data[:61] + bytes(len(bad.data) - 61))
    fake, group = group_with(good, broken, batch(3, "ok3"))
    consumer = explicit(fake, "t", max_poll_records=2)
    for message in consumer.poll(1):
        consumer.acknowledge(message)
    polled = consumer.poll(1)
    assert acks_of(fake.requests(ShareFetchRequest)[-1]) == "0-1:1"
    assert [(m.offset(), m.error() is not None) for m in polled] == [(2, True), (3, False)]
    consumer.acknowledge(polled[1])
    consumer.acknowledge_offset("t", 0, 2, REJECT)
    assert consumer.commit_sync() == {P0: None}
    assert group.state("t") == dict.fromkeys(range(4), "done")


def marker(offset: int) -> Any:
    data = control_batch(ControlType.COMMIT, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1000)
    return parse_batch(restamp(data, offset, 3))


@pytest.mark.parametrize(
    ("hidden", "returned", "acknowledged"),
    [
        pytest.param(set(), [0, 1, 3, 4, 6], "0-1:1 2:0 3-4:1 5:0 6:1 7:0", id="read_uncommitted"),
        pytest.param({3, 4}, [0, 1, 6], "0-1:1 2:0 5:0 6:1 7:0", id="read_committed"),
    ],
)
def test_transaction_markers_are_acknowledged_as_gaps(hidden: set[int], returned: list[int], acknowledged: str) -> None:
    """BEHAVIOUR.md, example 6."""
    log = [batch(0, "a", "b"), marker(2), batch(3, "c", "d"), marker(5), batch(6, "e"), marker(7)]
    fake, group = group_with(*log)
    group.hidden = hidden
    consumer = consumer_on(fake, "t")
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda *result: results.append(result))
    assert offsets(consumer.poll(1)) == returned
    consumer.poll(0)
    assert acks_of(fake.requests(ShareFetchRequest)[1]) == acknowledged
    fake.run(timeout_ms=1000)
    consumer.poll(0)
    assert results[0] == ({P0: set(range(8)) - hidden}, None)


def test_record_limit_acquires_part_of_a_record_batch() -> None:
    """BEHAVIOUR.md, example 7."""
    fake, _ = group_with(batch(0, *"abcdefghij"))
    consumer = consumer_on(fake, "t", share_acquire_mode="RECORD_LIMIT", max_poll_records=4)
    assert [offsets(consumer.poll(1)) for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    first = fake.requests(ShareFetchRequest)[0]
    assert (first.share_session_epoch, first.share_acquire_mode, first.max_records) == (0, 1, 4)
