"""A record whose lock expires while a fetch waits is acquired again by the same consumer, which keeps one entry per
offset.

BEHAVIOUR.md, 28: in each test the older copy is in one place of the table in `unacknowledged.py` when the response with
the new copy arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shareq.consumer import ShareConsumer, TopicPartition
from shareq.model.errors import IllegalStateException
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, ShareAcknowledgeRequest, ShareFetchRequest
from tests.client.fake import Fake, Later, Sent, batch, topic_id
from tests.consumer.fake_share_group import ACCEPT, REJECT, RELEASE, RENEW, FakeShareGroup, acks_of, explicit

P0 = TopicPartition("t", 0)


class HoldingStage:
    """A consumer of `t` that holds record 0; its fetches wait until the test answers them."""

    def __init__(self, leaders: Sequence[int] = (1,), **conf: Any) -> None:
        self.fake = Fake(t=[*leaders])
        self.group = FakeShareGroup(self.fake)
        self.group.append("t", 0, batch(0, "a"))
        self.consumer: ShareConsumer = explicit(self.fake, "t", **conf)
        self.results: list[Any] = []
        self.consumer.set_acknowledgement_commit_callback(
            lambda found, error: self.results.append((sorted(found[P0]), error and error.error.code()))
        )
        (self.first,) = self.consumer.poll(5)
        self.fake.answers[ShareFetchRequest] = lambda *_: None

    def poll(self, timeout: float = 0.2) -> list[tuple[int | None, int | None]]:
        return [(message.offset(), message.delivery_count()) for message in self.consumer.poll(timeout)]

    def acquire_again(self) -> None:
        """Expire all locks; the waiting fetch acquires the records that become available."""
        self.group.expire()
        self.answer(self.fake.pending(ShareFetchRequest))

    def answer(self, sent: Sent) -> None:
        found = self.group.fetch(self.fake, sent.node, sent.request)
        assert not isinstance(found, Later), "no record can be acquired"
        self.fake.reply(sent.call_id, found)
        self.fake.run()

    def move(self, leader: int) -> None:
        """Give the client's metadata a new leader; its fetch plan follows with the next message."""
        core = self.fake.actor
        (key,) = core._membership.assigned
        epoch = core._metadata.topics["t"].leaders[0][1] + 1
        assert core._metadata.moved(key, LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch))
        core._fetcher.replan()
        self.fake.topics["t"] = [leader]


def renewed() -> HoldingStage:
    """The response to the renewal arrives after the poll that sent it; the fetch is sent after it."""
    stage = HoldingStage()
    answer = stage.fake.answers[ShareAcknowledgeRequest]
    stage.fake.answers[ShareAcknowledgeRequest] = lambda *args: Later(5, answer(*args))
    stage.consumer.acknowledge(stage.first, RENEW)
    assert stage.poll(0) == []
    stage.fake.run(timeout_ms=10)
    stage.fake.answers[ShareAcknowledgeRequest] = answer
    return stage


def handed_out_again() -> HoldingStage:
    """The renewed record is held again, and the fetch of the poll that returned it waits."""
    stage = renewed()
    assert stage.poll() == [(0, 1)]
    return stage


# ---- place of the older copy -----------------------------------------------------------------------------------------


def test_a_renewed_record_is_returned_once_as_the_new_copy() -> None:
    stage = renewed()
    stage.acquire_again()
    (again,) = stage.consumer.poll(1)
    assert (again.offset(), again.delivery_count()) == (0, 2)
    with pytest.raises(IllegalStateException, match=r"^1 records"):
        stage.consumer.poll(0)
    stage.consumer.acknowledge(again)
    assert stage.consumer.commit_sync() == {P0: None}
    assert stage.poll() == []
    assert stage.group.state("t") == {0: "done"}
    with pytest.raises(IllegalStateException, match="not in flight"):
        stage.consumer.acknowledge(stage.first)


@pytest.mark.parametrize("begin", [renewed, handed_out_again])
@pytest.mark.parametrize(
    ("kind", "following", "state"),
    [
        pytest.param(ACCEPT, [], "done", id="accepted: not returned again"),
        pytest.param(REJECT, [], "done", id="rejected: not returned again"),
        pytest.param(RENEW, [(0, 2)], "acquired", id="renewed: the new copy is returned"),
    ],
)
def test_an_acknowledgement_of_the_older_copy_counts_for_the_new_lock(
    begin: Any, kind: int, following: list[tuple[int, int]], state: str
) -> None:
    stage = begin()
    stage.acquire_again()
    stage.consumer.acknowledge(stage.first, kind)
    assert stage.consumer.commit_sync() == {P0: None}
    assert stage.poll() == following
    assert stage.group.state("t") == {0: state}
    assert [error for _, error in stage.results] == [None, None]


def test_a_release_of_the_held_older_copy_releases_the_new_lock() -> None:
    stage = handed_out_again()
    stage.acquire_again()
    stage.consumer.acknowledge(stage.first, RELEASE)
    assert stage.consumer.commit_sync() == {P0: None}
    stage.fake.answers[ShareFetchRequest] = stage.group.fetch
    assert stage.poll() == [(0, 3)]


def test_a_held_older_copy_must_be_acknowledged_before_the_next_poll() -> None:
    stage = handed_out_again()
    stage.acquire_again()
    with pytest.raises(IllegalStateException, match=r"^1 records"):
        stage.consumer.poll(0)
    stage.consumer.acknowledge(stage.first)
    assert stage.poll() == []


def test_an_unsent_acknowledgement_counts_for_the_new_lock() -> None:
    stage = handed_out_again()
    stage.consumer.acknowledge(stage.first)
    stage.consumer.commit_async()
    assert len(stage.fake.requests(ShareAcknowledgeRequest)) == 1, "the acknowledgement waits for the fetch"
    stage.acquire_again()
    assert acks_of(stage.fake.requests(ShareAcknowledgeRequest)[-1]) == "0:1"
    assert stage.poll() == []
    assert stage.group.state("t") == {0: "done"}


def test_a_response_with_acknowledged_records_only_does_not_end_the_fetching() -> None:
    stage = handed_out_again()
    stage.consumer.acknowledge(stage.first)
    stage.consumer.commit_async()
    stage.group.expire()
    under_way = stage.fake.pending(ShareFetchRequest)
    response = stage.group.fetch(stage.fake, 1, under_way.request)
    stage.fake.reply(under_way.call_id, response, after_ms=50)
    stage.group.append("t", 0, batch(1, "b"))
    stage.fake.answers[ShareFetchRequest] = stage.group.fetch
    assert stage.poll() == [(1, 1)]


def test_an_unsent_acknowledgement_counts_for_its_own_partition_only() -> None:
    stage = HoldingStage(leaders=[1, 1])
    stage.consumer.acknowledge(stage.first, RENEW)
    assert stage.consumer.commit_sync() == {P0: None}
    assert stage.poll() == [(0, 1)]
    stage.consumer.acknowledge(stage.first)
    stage.consumer.commit_async()
    stage.group.append("t", 1, batch(0, "b"))
    stage.answer(stage.fake.pending(ShareFetchRequest))
    assert [message.value() for message in stage.consumer.poll(1)] == [b"b"]


def test_an_unsent_renewal_adds_no_second_copy() -> None:
    stage = handed_out_again()
    stage.consumer.acknowledge(stage.first, RENEW)
    stage.consumer.commit_async()
    stage.acquire_again()
    sent = stage.fake.requests(ShareAcknowledgeRequest)[-1]
    assert (sent.is_renew_ack, acks_of(sent)) == (True, "0:4")
    assert stage.poll() == [(0, 2)]
    stage.consumer.acknowledge_offset("t", 0, 0)
    assert stage.consumer.commit_sync() == {P0: None}
    assert stage.poll() == []


# ---- a new leader ----------------------------------------------------------------------------------------------------


def test_a_renewed_record_of_a_former_leader_is_not_returned() -> None:
    stage = renewed()
    stage.move(2)
    stage.fake.answers[ShareFetchRequest] = stage.group.fetch
    assert stage.poll() == []
    stage.group.expire()
    assert stage.poll(5) == [(0, 2)]
    stage.consumer.acknowledge_offset("t", 0, 0)
    assert stage.consumer.commit_sync() == {P0: None}


def test_a_renewal_by_a_former_leader_has_no_effect() -> None:
    """The new leader's record is delivered and accepted before the response of the former leader arrives."""
    stage = HoldingStage()
    stage.fake.answers[ShareAcknowledgeRequest] = lambda *_: None
    stage.consumer.acknowledge(stage.first, RENEW)
    stage.poll(0)
    renewal = stage.fake.pending(ShareAcknowledgeRequest)
    response = stage.group.acknowledge(stage.fake, 1, renewal.request)
    stage.fake.answers[ShareAcknowledgeRequest] = stage.group.acknowledge
    stage.move(2)
    stage.group.expire()
    stage.fake.answers[ShareFetchRequest] = stage.group.fetch
    assert stage.poll() == [(0, 2)]
    stage.consumer.acknowledge_offset("t", 0, 0)
    assert stage.consumer.commit_sync() == {P0: None}
    stage.fake.reply(renewal.call_id, response)
    stage.fake.run()
    assert stage.poll() == []


def test_a_late_response_of_a_former_leader_is_ignored() -> None:
    stage = HoldingStage()
    stage.consumer.acknowledge(stage.first, RELEASE)
    assert stage.consumer.commit_sync() == {P0: None}
    stage.poll(0)
    late = stage.fake.pending(ShareFetchRequest)
    response = stage.group.fetch(stage.fake, 1, late.request)
    stage.group.expire()
    stage.move(2)
    stage.fake.answers[ShareFetchRequest] = stage.group.fetch
    stage.fake.reply(late.call_id, response)
    assert stage.poll() == [(0, 3)]
    stage.consumer.acknowledge_offset("t", 0, 0)
    assert stage.consumer.commit_sync() == {P0: None}


def test_buffered_records_of_a_former_leader_are_replaced_by_those_of_the_new_one() -> None:
    """The buffer is empty after the old records are dropped, so the poll fetches."""
    stage = renewed()
    stage.consumer.acknowledge(stage.first)
    assert stage.consumer.commit_sync()
    stage.group.append("t", 0, batch(1, "b"))
    stage.acquire_again()
    stage.move(2)
    stage.group.expire()
    stage.fake.answers[ShareFetchRequest] = stage.group.fetch
    assert stage.poll() == [(1, 2)]


def test_a_renewed_record_of_a_recreated_topic_is_not_returned() -> None:
    stage = renewed()
    stage.fake.ids["t"] = topic_id("another t")
    stage.fake.actor._metadata.want_names(["t"])
    stage.fake.run(timeout_ms=1000)
    assert stage.poll() == []
