"""Staged acknowledgements in the views: the fold, the moves, the locks, and the strip and the biography of a record."""

from __future__ import annotations

from collections import Counter

from shareq.model.events import TopicCreated
from shareq.model.states import RecordEvent, RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.record_moves import RecordMoves
from shareq.trace.views.view import view
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures import states_content
from shareq_widgets.pictures.locks_content import content as locks_content
from shareq_widgets.pictures.record import RecordContent, content
from tests.leader.experiments.stage import OTHER, StagingStage, staged_batches

ORIGIN_MS = 1_000


class Staged:
    """A traced share-partition whose events are in a journal."""

    def __init__(self, stage: StagingStage) -> None:
        self.stage = stage
        self.journal = Journal(ORIGIN_MS)
        self.journal.record(ORIGIN_MS, -1, TopicCreated("t", "B" * 22, 1))
        self.step(0)

    def step(self, now_ms: int) -> None:
        """Record what has happened, and set the clock."""
        for event in self.stage.partition.take_events():
            self.journal.record(ORIGIN_MS + self.stage.now_ms, 0, event)
        self.stage.now_ms = now_ms

    def timeline(self) -> PartitionTimeline:
        timeline = PartitionTimeline(self.journal, "g", "t", 0)
        timeline.refresh()
        return timeline

    def record(self, offset: int) -> RecordContent:
        return content(instant_of(GroupHistory(self.journal, "g")), "t", 0, offset)

    def moves(self) -> list[tuple[int, int, RecordEvent, RecordState, bool]]:
        moves = RecordMoves(self.timeline()).between(0, len(self.journal)).moves
        return [(move.first, move.end, move.event, move.target, move.at_limit) for move in moves]


def staged() -> Staged:
    """0-1 accepted, 2 rejected in a transaction, 3 accepted in another one, 4 held."""
    stage = StagingStage(traced=True, limit=1)
    story = Staged(stage)
    stage.fetch("m", "0-4")
    story.step(100)
    stage.staged("m", "0-1:1,2:3")
    stage.staged("m", "3:1", OTHER)
    story.step(200)
    return story


def test_a_staged_record_is_held_and_not_complete() -> None:
    story = staged()
    timeline = story.timeline()
    state = timeline.state(len(timeline.entries))
    assert [(first, end, status.why) for first, end, status in state.runs if status.staged] == [
        (0, 2, "accept"), (2, 3, "reject"), (3, 4, "accept")
    ]  # fmt: skip
    assert (state.runs.complete, state.writes) == (0, {})
    assert story.moves() == [(0, 5, RecordEvent.ACQUIRE, RecordState.ACQUIRED, False)]
    assert "accept is staged in a transaction: it counts if that is committed, whatever its lock." in (
        story.record(0).place.why
    )
    assert story.record(0).chapters[-1].details[-1] == "its accept was staged in a transaction at 0:00.100"
    assert repr(view(story.journal, "g", "t", 0)).count("→") >= 1, "the strip draws the run as one that waits"
    rows = locks_content(instant_of(GroupHistory(story.journal, "g"))).rows
    assert Counter(row.writing for row in rows for _ in range(row.first, row.end)) == {"accept": 3, "reject": 1, "": 1}
    edges = states_content.content(instant_of(GroupHistory(story.journal, "g"))).edges
    assert not any(edge.writing for edge in edges), "no arrow: nothing happens before the transaction ends"


def test_a_commit_is_the_verdict_that_was_staged() -> None:
    story = staged()
    story.stage.commit()
    story.step(300)
    assert story.moves()[1:] == [
        (0, 2, RecordEvent.ACCEPT, RecordState.ACKNOWLEDGED, False),
        (2, 3, RecordEvent.REJECT, RecordState.ARCHIVED, False),
    ]
    timeline = story.timeline()
    assert timeline.state(len(timeline.entries)).spso == 3
    last = story.record(2)
    assert "in a transaction, which was committed" in " ".join(
        detail for chapter in last.chapters for detail in chapter.details
    )
    assert "the transaction that m acknowledged it in was committed at 0:00.200, in delivery 1" in last.place.why


def test_an_abort_returns_the_record_or_archives_it_at_the_limit() -> None:
    story = staged()
    story.stage.abort()
    story.step(250)
    story.stage.limited(5)
    story.stage.abort(OTHER)
    story.step(300)
    assert story.moves()[1:] == [
        (0, 2, RecordEvent.TXN_ABORT, RecordState.ARCHIVED, True),
        (2, 3, RecordEvent.TXN_ABORT, RecordState.ARCHIVED, True),
        (3, 4, RecordEvent.TXN_ABORT, RecordState.AVAILABLE, False),
    ]
    third = story.record(3)
    assert third.chapters[-1].title == "available again"
    assert "the transaction that m acknowledged it in was aborted at 0:00.250" in third.place.why
    ended = locks_content(instant_of(GroupHistory(story.journal, "g"))).ended
    assert {row.ended for row in ended} >= {"acknowledgement rolled back"}


def test_a_failed_write_is_shown_as_one_that_failed() -> None:
    stage = StagingStage(traced=True)
    story = Staged(stage)
    stage.fetch("m", "0-4")
    stage.fail(stage.prepare("m", "0-4:1"))
    story.step(100)
    moves = RecordMoves(story.timeline()).between(0, len(story.journal)).moves
    assert [(m.event, m.target, m.failed) for m in moves[1:]] == [(RecordEvent.ACCEPT, RecordState.ACKNOWLEDGED, True)]


def test_a_new_leader_shows_what_is_staged_without_a_holder() -> None:
    story = Staged(StagingStage(traced=True, staged=staged_batches("0-1:ACK,2:AR")))
    record = story.record(0)
    assert record.place.why.startswith("a member's accept is staged in a transaction")
    assert not locks_content(instant_of(GroupHistory(story.journal, "g"))).rows
    story.stage.commit()
    story.step(100)
    assert [move[2:4] for move in story.moves()] == [
        (RecordEvent.ACCEPT, RecordState.ACKNOWLEDGED),
        (RecordEvent.REJECT, RecordState.ARCHIVED),
    ]
