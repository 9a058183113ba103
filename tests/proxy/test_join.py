"""Heartbeats on their way and polls of the coordinator, in one journal."""

from __future__ import annotations

import pytest

from shareq.model.events import (
    Event,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    MembersBypass,
    RecordsAppended,
    TopicCreated,
)
from shareq.model.ids import TopicId
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.share_group import DescribedAssignment, ShareGroupDescribeResponse
from shareq.observer.journal_writer import JournalWriter
from shareq.observer.log_writer import LogWriter
from shareq.observer.poll_result import PollResult
from shareq.observer.timed_journal import TimedJournal
from shareq.trace import Journal

JOINED, LEFT = MemberJoined("g", "a", "anna", ("t",)), MemberLeft("g", "a", "left")
BEAT, LAST_BEAT = HeartbeatReceived("g", "a", 1, 0), HeartbeatReceived("g", "a", -1, 0)
RECONCILED = MemberReconciled("g", "a", 1, ())


class Desk:
    """The writer of a group; time in ms."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.timed = TimedJournal(self.journal)
        self.logs = LogWriter(self.timed)
        self.writer = JournalWriter(self.timed, self.logs, "g")

    def see(self, now_ms: int, *events: Event) -> None:
        for event in events:
            self.timed.advance_to(now_ms)
            self.writer.write_seen(event, now_ms)

    def poll(self, begun_ms: int, now_ms: int, *members: str, epoch: int = 1) -> None:
        described = tuple(
            ShareGroupDescribeResponse.Member(
                member_id=member, rack_id=None, member_epoch=epoch, client_id="anna" if member == "a" else "ben",
                client_host="/127.0.0.1", subscribed_topic_names=("t",),
                assignment=DescribedAssignment(),
            )
            for member in members
        )  # fmt: skip
        group = ShareGroupDescribeResponse.DescribedGroup(group_id="g", group_epoch=1, members=described)
        self.writer.write_poll(PollResult(group=group, group_described=True), now_ms, begun_ms)
        self.writer.write_bypassing()

    def members(self) -> list[Event]:
        types = (MemberJoined, MemberLeft, MemberReconciled, MembersBypass)
        return [entry.event for entry in self.journal if isinstance(entry.event, types)]


def test_a_poll_adds_nothing_to_what_a_heartbeat_has_shown() -> None:
    """BEHAVIOUR.md, 4.1, 4.3."""
    desk = Desk()
    desk.see(10, JOINED, RECONCILED, BEAT)
    desk.poll(20, 30, "a")
    assert desk.members() == [JOINED, RECONCILED, MembersBypass("g", ())]


def test_a_poll_that_began_before_a_join_does_not_remove_the_member() -> None:
    """BEHAVIOUR.md, 4.2."""
    desk = Desk()
    desk.see(10, JOINED, RECONCILED, BEAT)
    desk.poll(5, 12)
    desk.poll(20, 30, "a")
    assert desk.members() == [JOINED, RECONCILED, MembersBypass("g", ())]


def test_a_poll_that_began_before_a_leave_does_not_add_the_member() -> None:
    """BEHAVIOUR.md, 4.2."""
    desk = Desk()
    desk.see(10, JOINED, RECONCILED, BEAT)
    desk.see(20, LEFT, LAST_BEAT)
    desk.poll(15, 25, "a")
    desk.poll(30, 35)
    assert desk.members() == [JOINED, RECONCILED, LEFT, MembersBypass("g", ())]


def test_a_member_that_ends_without_a_last_heartbeat_is_removed_by_a_poll() -> None:
    desk = Desk()
    desk.see(10, JOINED, RECONCILED, BEAT)
    desk.poll(20, 30)
    assert desk.members()[2] == MemberLeft("g", "a", "not described any more")


def test_members_past_the_tap_are_named_until_they_are_gone() -> None:
    """BEHAVIOUR.md, 4.3."""
    desk = Desk()
    desk.see(10, JOINED, RECONCILED, BEAT)
    desk.poll(20, 30, "a", "b")
    desk.poll(40, 50, "a", "b")
    desk.poll(60, 70, "a")
    assert [event for event in desk.members() if isinstance(event, MembersBypass)] == [
        MembersBypass("g", ("b",)),
        MembersBypass("g", ()),
    ]


@pytest.mark.parametrize(
    ("leaders", "written"),
    [
        ([(1, 0), (2, 1)], [(1, 0), (2, 1)]),
        ([(2, 1), (1, 0)], [(2, 1)]),
        ([(1, 0), (1, 0)], [(1, 0)]),
        ([(1, 3), (-1, 3)], [(1, 3), (-1, 3)]),
    ],
)
def test_the_leader_with_the_higher_epoch_counts(
    leaders: list[tuple[int, int]], written: list[tuple[int, int]]
) -> None:
    """BEHAVIOUR.md, 4.2."""
    desk = Desk()
    changed = [desk.logs.write_leader(("t", 0), *one) for one in leaders]
    assert sum(changed) == len(written)
    assert [entry.event for entry in desk.journal] == [LeaderElected("t", 0, *one) for one in written]


def test_topics_are_written_once_for_all_groups() -> None:
    """BEHAVIOUR.md, 4.1: a second creation would reset the records of the other group."""
    desk = Desk()
    other = JournalWriter(desk.timed, desk.logs, "other")
    partition = MetadataResponse.Partition(partition_index=0, leader_id=1, leader_epoch=0)
    topic = MetadataResponse.Topic(name="t", topic_id=TopicId("i" * 22), partitions=(partition,))
    for writer in (desk.writer, other):
        writer.write_poll(PollResult(topics={"t": topic}, log_ends={("t", 0): 5}), 10)
    desk.logs.write_known_end(("t", 0), 3, 20)
    desk.logs.write_known_end(("t", 0), 7, 20)
    events = [entry.event for entry in desk.journal]
    assert [type(event) for event in events] == [TopicCreated, LeaderElected, RecordsAppended, RecordsAppended]
    assert events[2:] == [RecordsAppended("t", 0, 0, 5), RecordsAppended("t", 0, 5, 7)]


@pytest.mark.parametrize(
    ("begun_ms", "end", "later"),
    [
        pytest.param(10, 5, [(7, 9)], id="a poll that began before"),
        pytest.param(30, 5, [(5, 9)], id="a truncated log"),
        pytest.param(10, 8, [(7, 8), (8, 9)], id="a log that has grown"),
    ],
)
def test_the_end_of_a_log_moves_with_responses_and_polls(begun_ms: int, end: int, later: list[tuple[int, int]]) -> None:
    """BEHAVIOUR.md, 4.5."""
    desk = Desk()
    desk.logs.write_known_end(("t", 0), 7, 20)
    for began, ended in ((begun_ms, end), (55, 9)):
        desk.writer.write_poll(PollResult(log_ends={("t", 0): ended}), 60, began)
    assert [entry.event for entry in desk.journal] == [RecordsAppended("t", 0, *one) for one in ((0, 7), *later)]
