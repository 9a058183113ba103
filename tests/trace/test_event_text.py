"""Every event, with every cause, has a text."""

from __future__ import annotations

from typing import get_args

import pytest

from shareq.model import events as e
from shareq.model.messages.share_state import StateBatch
from shareq.trace.journal.event_text import count_text, event_text, list_text, member_name, range_text
from tests.trace.histories import WHERE, loaded

CHANGED = e.RecordsChanged(*WHERE, "acquire", 111, 113, 1, 1, "m", 99)
TAGGED = CHANGED._replace(cause="prepared", write_id=17)
OVER = CHANGED._replace(cause="settled", member_id=None, deadline_ms=None)
UNDER_WAY = ", state write under way"

TEXTS: list[tuple[e.Event, str]] = [
    (CHANGED, "consumer-2 acquired 111–112"),
    (CHANGED._replace(delivery_count=3), "consumer-2 acquired 111–112, attempt 3"),
    (CHANGED._replace(state=0, member_id=None),
     "111–112 came into the window, available, with the batch of acquired records"),
    (TAGGED._replace(to_state=2, why="accept"), "consumer-2 accepted 111–112" + UNDER_WAY),
    (TAGGED._replace(to_state=0, why="release"), "consumer-2 released 111–112" + UNDER_WAY),
    (TAGGED._replace(to_state=4, why="release"), "consumer-2 released 111–112, deliveries used up" + UNDER_WAY),
    (TAGGED._replace(to_state=4, why="reject"), "consumer-2 rejected 111–112" + UNDER_WAY),
    (TAGGED._replace(to_state=4, why="gap", end=112), "consumer-2 found no record at 111" + UNDER_WAY),
    (TAGGED._replace(to_state=0, why="session_release"),
     "the share session of consumer-2 released 111–112" + UNDER_WAY),
    (TAGGED._replace(to_state=4, why="session_release"),
     "the share session of consumer-2 released 111–112, deliveries used up" + UNDER_WAY),
    (OVER._replace(state=2, why="accept"), "111–112 became acknowledged, the state write succeeded"),
    (OVER._replace(state=0, why="release"), "111–112 became available, the state write succeeded"),
    (OVER._replace(state=4, why="reject"), "111–112 became archived, the state write succeeded"),
    (CHANGED._replace(cause="abandoned", why="accept"), "111–112 stays acquired by consumer-2, the state write failed"),
    (CHANGED._replace(cause="renew"), "consumer-2 renewed its lock on 111–112"),
    (OVER._replace(cause="lock_timeout", state=0), "the lock on 111–112 ran out, available again"),
    (OVER._replace(cause="lock_timeout", state=4), "the lock on 111–112 ran out, archived: deliveries used up"),
    (OVER._replace(cause="log_start", state=4), "the log now starts above 111–112, archived"),
    (OVER._replace(cause="missing", state=4), "111–112 is no longer in the log, archived"),
    (OVER._replace(cause="aborted", state=4), "111–112 belongs to an aborted transaction, archived"),
    (loaded(10, 14), "broker 7 loaded the share-partition, SPSO 10, 4 in flight"),
    (e.SharePartitionDropped(*WHERE, "the topic is gone"), "broker 7 dropped the share-partition, the topic is gone"),
    (e.WindowMoved(*WHERE, 10, 14), "the window is now 10–13"),
    (e.WindowMoved(*WHERE, 14, 14), "the window is empty at 14"),
    (e.KeysLearned(*WHERE, (e.KeyRange(10, 12, "a"), e.KeyRange(13, 14, "b")), 1),
     "the keys of 10–13 are known, at most 1 of a key in flight"),
    (OVER._replace(cause="expired", state=4), "the time to live of 111–112 was over, archived"),
    (OVER._replace(cause="expired", state=3), "the time to live of 111–112 was over, archiving"),
    (e.LogKept("t", 0, 5, "g", "group g is not further"), "the log of t-0 is kept from 5 on, group g is not further"),
    (e.ExpiredRecordsSkipped(*WHERE, 10, 14), "the time to live of 10–13 was over, the window begins above"),
    (OVER._replace(cause="rested", state=0), "111–112 has rested, it can be acquired again"),
    (OVER._replace(cause="settled", state=0, deadline_ms=1500, why="release"),
     "111–112 became available, the state write succeeded: it rests until 1,500 ms"),
    (TAGGED._replace(cause="staged", to_state=1, why="accept"), "consumer-2 accepted 111–112 in a transaction, staged"),
    (TAGGED._replace(cause="staged", to_state=1, why="reject"), "consumer-2 rejected 111–112 in a transaction, staged"),
    (TAGGED._replace(cause="staged", member_id=None, deadline_ms=None, to_state=1, why="accept"),
     "111–112 is staged in a transaction, as the durable state has it (accept)"),
    (OVER._replace(cause="txn_commit", state=2, why="accept"),
     "the transaction that 111–112 is staged in was committed, acknowledged"),
    (OVER._replace(cause="txn_commit", state=4, why="reject"),
     "the transaction that 111–112 is staged in was committed, archived"),
    (OVER._replace(cause="txn_abort", state=0),
     "the transaction that 111–112 is staged in was aborted, available again"),
    (OVER._replace(cause="txn_abort", state=4),
     "the transaction that 111–112 is staged in was aborted, archived: deliveries used up"),
    (e.StateWritePrepared(*WHERE, 17, 10, 0, ()), "state write 17 is under way, SPSO 10"),
    (e.StateWritePrepared(*WHERE, 17, 10, 0, (StateBatch(10, 11, 2, 1), StateBatch(12, 12, 4, 5))),
     "state write 17 is under way, 10–11 acknowledged, 12 archived"),
    (e.StateWriteSettled(*WHERE, 17, 0), "state write 17 is durable"),
    (e.StateWriteSettled(*WHERE, 17, 124), "state write 17 failed, FENCED_STATE_EPOCH"),
    (OVER._replace(cause="dead_lettered", state=4),
     "the way of 111–112 to the dead-letter queue has ended, archived"),
    (OVER._replace(state=3, why="reject"), "111–112 became archiving, the state write succeeded"),
    (OVER._replace(cause="lock_timeout", state=3), "the lock on 111–112 ran out, archiving: deliveries used up"),
    (e.DeadLettersSent(*WHERE, 10, "dlq.t", 1, 2),
     "a request takes 2 records from 10 on to the dead-letter queue, dlq.t-1"),
    (e.DeadLettersRefused(*WHERE, 10, 87, final=True),
     "a request that takes 10 to the dead-letter queue has failed, INVALID_RECORD"),
    (e.DeadLettersWritten(*WHERE, 10, 12, "dlq.t", 1, 7, 2),
     "10–11 is in the dead-letter queue, dlq.t-1 from 7 on"),
    (e.DeadLettersWaiting(*WHERE, 10, "topic dlq.t does not exist"),
     "10 waits for the dead-letter queue, topic dlq.t does not exist"),
    (e.DeadLettersGivenUp(*WHERE, 10, 12, "there is none"),
     "10–11 does not get to a dead-letter queue, there is none"),
    (e.AcknowledgementRefused(*WHERE, "m", 121), "an acknowledgement of consumer-2 was refused, INVALID_RECORD_STATE"),
    (e.ShareSessionOpened("g", "m"), "consumer-2 opened a share session with broker 7"),
    (e.ShareSessionClosed("g", "m", "closed"), "the share session of consumer-2 with broker 7 ended, closed"),
    (e.RecordsAppended("t", 0, 5, 6), "1 record appended to t-0, 5"),
    (e.RecordsAppended("t", 0, 5, 2005), "2,000 records appended to t-0, 5–2004"),
    (e.LogStartMoved("t", 0, 97), "the log of t-0 now starts at 97"),
    (e.LeaderElected("t", 0, 2, 3), "broker 2 leads t-0, leader epoch 3"),
    (e.LeaderElected("t", 0, -1, 3), "no broker leads t-0, no replica is alive"),
    (e.BrokerStarted(1), "broker 1 started"),
    (e.BrokerStopped(1, True), "broker 1 was killed"),
    (e.BrokerStopped(1, False), "broker 1 stopped"),
    (e.TopicCreated("t", "id", 4), "topic t was created, 4 partitions"),
    (e.TopicDeleted("t", "id"), "topic t was deleted"),
    (e.PartitionsAdded("t", "id", 8), "topic t grew, 8 partitions now"),
    (e.ConfigChanged("group:g", "share.delivery.count.limit", "3"), "share.delivery.count.limit of group:g is now 3"),
    (e.ConfigChanged("group:g", "k", None), "k of group:g went back to its default"),
    (e.AclChanged("User:alice", "*", "READ", "TOPIC", "ord", "PREFIXED", True, True),
     "an access control list was added, User:alice may READ TOPIC ord…"),
    (e.AclChanged("User:*", "10.0.0.1", "ALL", "GROUP", "g", "LITERAL", False, False),
     "an access control list was removed, User:* from 10.0.0.1 may not ALL GROUP g"),
    (e.AuthorizationDenied("User:alice", "10.0.0.1", "READ", "TOPIC", "orders", "ShareFetch"),
     "User:alice from 10.0.0.1 was denied READ on TOPIC orders, asked for by ShareFetch"),
    (e.FaultInjected("consumer-4 crashed"), "consumer-4 crashed"),
    (
        e.AuthenticationFailed(1, "10.0.0.7", "PLAIN", "alice", "Invalid username or password"),
        "broker 1 refused 'alice' at 10.0.0.7, Invalid username or password",
    ),
    (
        e.AuthenticationFailed(1, "10.0.0.7", "", "", "it does not speak TLS"),
        "broker 1 refused 10.0.0.7, it does not speak TLS",
    ),
    (e.MemberJoined("g", "m", "c", ("t", "u")), "consumer-2 joined, subscribed to t, u"),
    (e.MemberLeft("g", "m", "left"), "consumer-2 left the group"),
    (e.MemberLeft("g", "m", "session expired"), "consumer-2 left the group, session expired"),
    (e.MemberReconciled("g", "m", 5, (("t", (0, 2)),)), "consumer-2 is at member epoch 5, holding t-0, t-2"),
    (e.MemberReconciled("g", "m", 5, ()), "consumer-2 is at member epoch 5, holding nothing"),
    (e.GroupEpochBumped("g", 4, "member joined"), "group epoch 4, member joined"),
    (e.TargetAssignmentComputed("g", 4, (("m", (("t", (0,)),)), ("n", ()))),
     "assignment 4 was computed, consumer-2: t-0; n: nothing"),
    (e.HeartbeatReceived("g", "m", 3, 0), "consumer-2 sent a heartbeat at member epoch 3"),
    (e.HeartbeatReceived("g", "m", 3, 25), "consumer-2 sent a heartbeat at member epoch 3, answered UNKNOWN_MEMBER_ID"),
    (e.SharePartitionsInitialized("g", "t", (0, 1)), "share-partitions of t were initialized, 0, 1"),
    (e.GroupDeleted("g"), "group g was deleted"),
    (e.TransactionChanged("x", 7, 0, "Empty", 1), "transaction x is Empty with 1 partition, producer 7 at epoch 0"),
    (e.CoordinatorLoaded("__share_group_state", 3, 12), "broker 7 loaded __share_group_state-3, 12 records"),
    (e.StateRecordWritten("g:id:0", "snapshot", 0, 0, ()), "snapshot of g:id:0 was written"),
    (e.StateLogPruned(3, 40), "state partition 3 was pruned below 40"),
    (e.DurableStateRead(*WHERE, 5, (e.Run(6, 8, 2, 1), e.Run(8, 9, 0, 1), e.Run(9, 10, 4, 5), e.Run(10, 11, 2, 1)),
                        4, 0, 0, 0), "durable now: SPSO 5, 3 acknowledged, 1 returned, 1 archived above it"),
    (e.DurableStateRead(*WHERE, 5, (), 0, 0, 0, 0), "durable now: SPSO 5"),
    (e.DurableStateRead(*WHERE, -1, (), -1, -1, -1, -1),
     "nothing durable is known of the share-partition, its start is not decided"),
    (e.RecordsHeld(*WHERE, "m", 5, 9, 1), "consumer-2 has 5–8 in hand"),
    (e.RecordsHeld(*WHERE, "m", 5, 6, 3), "consumer-2 has 5 in hand, delivery 3"),
    (e.HoldEnded(*WHERE, "m", "accept", 5, 9, 2, 1), "consumer-2 accepted 5–8"),
    (e.HoldEnded(*WHERE, "m", "release", 5, 6, 0, 1), "consumer-2 released 5"),
    (e.HoldEnded(*WHERE, "m", "lock_timeout", 5, 6, 4, 5, inferred=True),
     "the lock on 5 ran out, archived: deliveries used up, inferred"),
    (e.HoldEnded(*WHERE, "m", "lock_timeout", 5, 6, 3, 5, True),
     "the lock on 5 ran out, archiving: deliveries used up, inferred"),
    (e.HoldEnded(*WHERE, "m", "session_release", 5, 6, 0, 1, inferred=True),
     "the share session of consumer-2 released 5, inferred"),
    (e.DeliveriesUnseen(*WHERE, 5, 9, 1, 1), "5–8 was delivered before, attempt 1 passed unseen"),
    (e.MembersBypass("g", ()), "all members are connected through the observer, every delivery is seen"),
    (e.MembersBypass("g", ("m",)), "not all can be seen, consumer-2 is connected past the observer"),
    (e.ObservationDisturbed("the cluster does not answer"), "not all can be seen, the cluster does not answer"),
    (e.ObservationDisturbed(""), "all can be seen again, the observer goes on"),
    (e.RecordsDelivered("g", "m", "c", "t", 0, 5, 9, 4), "consumer-2 was given 4 records of t-0, 5–8"),
    (e.AcknowledgementsSent("g", "m", "t", 0, (0, 3, 1, 0, 0), 0), "consumer-2 acknowledged t-0: 3 accept + 1 release"),
    (e.AcknowledgementsSent("g", "m", "t", 0, (0, 1, 0, 0, 0), 121),
     "consumer-2 acknowledged t-0: 1 accept, refused with INVALID_RECORD_STATE"),
    (e.RequestSent("consumer-2", "broker 1", "ShareFetchRequest"), "consumer-2 sent ShareFetchRequest to broker 1"),
    (e.ResponseSent("broker 1", "consumer-2", "ShareFetchResponse", 0),
     "broker 1 answered consumer-2 with ShareFetchResponse"),
    (e.ResponseSent("broker 1", "consumer-2", "ShareFetchResponse", 6),
     "broker 1 answered consumer-2 with ShareFetchResponse, NOT_LEADER_OR_FOLLOWER"),
]  # fmt: skip


def name(member_id: str) -> str:
    return {"m": "consumer-2"}.get(member_id, member_id)


@pytest.mark.parametrize(("event", "text"), TEXTS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_event_has_this_text(event: e.Event, text: str) -> None:
    assert event_text(7, event, name) == text


@pytest.mark.parametrize("event", [event for event, _ in TEXTS if isinstance(event, e.RecordsChanged)], ids=str)
def test_only_members_are_named(event: e.RecordsChanged) -> None:
    """A view gives a letter to each id whose name its texts need."""
    names = {str(event.member_id): "ann"} if event.member_id else {}
    event_text(0, event, names.__getitem__)


def test_every_event_type_has_a_text() -> None:
    assert {type(event) for event, _ in TEXTS} == set(get_args(e.Event))


@pytest.mark.parametrize(
    ("member_id", "shown"), [("consumer-2", "consumer-2"), ("7xHkXApcEZuf0g0xBF6wfw", "7xHkXApc…"), ("", "")]
)
def test_a_member_without_a_client_id_is_named_by_its_shortened_id(member_id: str, shown: str) -> None:
    assert member_name(member_id) == shown


def test_ranges_counts_and_lists_as_text() -> None:
    assert [range_text(5, 6), range_text(5, 9)] == ["5", "5–8"]
    assert [count_text(1, "record"), count_text(0, "record"), count_text(1200, "record")] == [
        "1 record",
        "0 records",
        "1,200 records",
    ]
    assert [list_text("abc", 3), list_text("abcde", 3), list_text([], 3)] == ["a, b, c", "a, b, c and 2 more", ""]
