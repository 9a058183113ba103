"""Unacknowledged records of a partition, compared with a dict of offsets. BEHAVIOUR.md, 27 and 28."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shareq.client.message import Message
from shareq.consumer.acknowledgements import AcknowledgeRun
from shareq.consumer.unacknowledged import UnacknowledgedPartition, UnacknowledgedRecords
from shareq.model.ids import TopicId, TopicIdPartition

KEY = TopicIdPartition(TopicId("t" * 22), 0)


def holding(*ranges: tuple[int, int], gaps: list[tuple[int, int]] | None = None) -> UnacknowledgedPartition:
    entry = UnacknowledgedPartition(KEY, "t", 1)
    entry.add(ranges, gaps or [], [Message("t", 0, offset) for first, end in ranges for offset in range(first, end)])
    return entry


@pytest.mark.parametrize(
    ("verdicts", "default", "runs", "rest"),
    [
        pytest.param({}, None, [], 5, id="none acknowledged, explicit"),
        pytest.param({}, 1, [AcknowledgeRun(0, 3, 1), AcknowledgeRun(5, 7, 1)], 0, id="none acknowledged, implicit"),
        pytest.param({1: 3}, None, [AcknowledgeRun(1, 2, 3)], 4, id="one acknowledged, explicit"),
        pytest.param(
            {1: 3},
            1,
            [AcknowledgeRun(0, 1, 1), AcknowledgeRun(1, 2, 3), AcknowledgeRun(2, 3, 1), AcknowledgeRun(5, 7, 1)],
            0,
            id="one acknowledged, implicit",
        ),
        pytest.param(
            {0: 1, 1: 1, 2: 1, 5: 1, 6: 2},
            None,
            [AcknowledgeRun(0, 3, 1), AcknowledgeRun(5, 6, 1), AcknowledgeRun(6, 7, 2)],
            0,
            id="all",
        ),
        pytest.param(
            {2: 1, 5: 1}, None, [AcknowledgeRun(2, 3, 1), AcknowledgeRun(5, 6, 1)], 3, id="edges of two ranges"
        ),
    ],
)
def test_take_returns_runs_of_acknowledged_records(
    verdicts: dict[int, int], default: int | None, runs: list[AcknowledgeRun], rest: int
) -> None:
    entry = holding((0, 3), (5, 7))
    for offset, kind in verdicts.items():
        assert entry.acknowledge(offset, kind)
    assert entry.take(default) == (runs, {})
    assert entry.record_count == entry.unacknowledged == rest


def test_gaps_are_sent_with_the_first_acknowledgements() -> None:
    entry = holding((0, 2), (3, 4), gaps=[(2, 3)])
    entry.acknowledge(0, 1)
    assert entry.take(None)[0] == [AcknowledgeRun(0, 1, 1), AcknowledgeRun(2, 3, 0)]
    assert entry.take(1)[0] == [AcknowledgeRun(1, 2, 1), AcknowledgeRun(3, 4, 1)]


def test_a_gap_is_not_held() -> None:
    entry = holding((0, 2), gaps=[(2, 3)])
    assert [entry.holds(offset) for offset in range(-1, 4)] == [False, True, True, False, False]
    assert not entry.acknowledge(2, 1)


def test_renewed_records_can_be_acknowledged_without_another_poll() -> None:
    entry = holding((0, 3))
    entry.acknowledge(1, 4)
    runs, renewing = entry.take(None)
    assert (runs, list(renewing)) == ([AcknowledgeRun(1, 2, 4)], [1])
    assert not entry.acknowledge(1, 1)
    entry.renewed |= renewing
    assert entry.unacknowledged == 2
    assert entry.acknowledge(1, 1)
    assert entry.take(None)[0] == [AcknowledgeRun(1, 2, 1)]


def test_a_run_can_span_two_ranges() -> None:
    """A renewed record is held again, adjacent to an earlier range."""
    entry = holding((1, 4))
    entry.add([(0, 1)], (), [Message("t", 0, 0)])
    for offset in (0, 1, 2):
        entry.acknowledge(offset, 1)
    assert entry.take(None)[0] == [AcknowledgeRun(0, 3, 1)]
    assert [offset for offset in range(5) if entry.holds(offset)] == [3]


@pytest.mark.parametrize(
    ("added", "held", "types"),
    [
        pytest.param((0, 3), [0, 1, 2, 5, 6], {6: 1}, id="the same range"),
        pytest.param((1, 2), [0, 1, 2, 5, 6], {0: 1, 6: 1}, id="inside a range"),
        pytest.param((2, 6), [0, 1, 2, 3, 4, 5, 6], {0: 1, 6: 1}, id="from one range into the next"),
        pytest.param((3, 5), [0, 1, 2, 3, 4, 5, 6], {0: 1, 6: 1}, id="between two ranges"),
        pytest.param((0, 9), [0, 1, 2, 3, 4, 5, 6, 7, 8], {}, id="more than all"),
    ],
)
def test_a_record_acquired_again_is_held_once_without_its_former_type(
    added: tuple[int, int], held: list[int], types: dict[int, int]
) -> None:
    entry = holding((0, 3), (5, 7))
    for offset in (0, 6):
        entry.acknowledge(offset, 1)
    entry.add([added], (), [])
    assert [offset for first, end in entry.ranges for offset in range(first, end)] == held
    assert (entry.record_count, entry.verdicts) == (len(held), types)


@pytest.mark.parametrize("former", [(TopicIdPartition(TopicId("u" * 22), 0), 1), (KEY, 2)], ids=["topic", "leader"])
def test_a_recreated_topic_or_a_new_leader_starts_without_records(former: tuple[TopicIdPartition, int]) -> None:
    unacknowledged = UnacknowledgedRecords()
    unacknowledged.partition(former[0], "t", former[1]).add([(0, 1)], (), [Message("t", 0, 0)])
    again = unacknowledged.partition(KEY, "t", 1)
    assert again.record_count == 0
    assert unacknowledged.find("t", 0) is again


def test_a_renewal_of_a_former_leader_leaves_the_records_of_the_new_one() -> None:
    unacknowledged = UnacknowledgedRecords()
    unacknowledged.partition(KEY, "t", 2).add([(0, 1)], (), [Message("t", 0, 0)])
    unacknowledged.renew(KEY, "t", 1, {0: Message("t", 0, 0), 1: Message("t", 0, 1)})
    assert [(entry.node, entry.ranges, entry.renewed) for entry in unacknowledged] == [(2, [(0, 1)], {})]


def test_a_renewed_record_removed_by_compaction_is_not_returned_again() -> None:
    entry = UnacknowledgedPartition(KEY, "t", 1)
    entry.renewed = {0: Message("t", 0, 0), 1: Message("t", 0, 1)}
    entry.add([], [(1, 2)], [])
    assert [message.offset() for message in entry.hand_out_renewed()] == [0]


def test_a_renewal_adds_no_second_copy_of_a_held_record() -> None:
    unacknowledged = UnacknowledgedRecords()
    unacknowledged.partition(KEY, "t", 1).add([(0, 1)], (), [Message("t", 0, 0)])
    unacknowledged.renew(KEY, "t", 1, {0: Message("t", 0, 0), 1: Message("t", 0, 1)})
    assert [sorted(entry.renewed) for entry in unacknowledged] == [[1]]


class UnacknowledgedMachine(RuleBasedStateMachine):
    """Random deliveries, acknowledgements, takes and renewals: the ranges agree with dicts of offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.unacknowledged = UnacknowledgedRecords()
        self.oracle: dict[int, int | None] = {}
        self.renewed: dict[int, int | None] = {}
        self.renewing: dict[int, Message] = {}
        self.copies = 0

    @property
    def entry(self) -> UnacknowledgedPartition:
        return self.unacknowledged.partition(KEY, "t", 1)

    @rule(first=st.integers(0, 20), length=st.integers(1, 6))
    def deliver(self, first: int, length: int) -> None:
        """Deliver any offsets: records that are held, renewed or acknowledged can be acquired again."""
        self.copies += 1
        offsets = range(first, first + length)
        messages = [Message("t", 0, offset, value=str(self.copies)) for offset in offsets]
        self.entry.add([(first, first + length)], (), messages)
        self.oracle |= dict.fromkeys(offsets)
        for offset in offsets:
            self.renewed.pop(offset, None)
            self.renewing.pop(offset, None)

    @rule(offset=st.integers(0, 27), kind=st.integers(1, 4))
    def acknowledge(self, offset: int, kind: int) -> None:
        known = offset in self.oracle or offset in self.renewed
        assert self.entry.acknowledge(offset, kind) == known
        if known:
            self.renewed.pop(offset, None)
            self.oracle[offset] = kind

    @rule(default=st.sampled_from([None, 1]))
    def take(self, default: int | None) -> None:
        runs, renewing = self.entry.take(default)
        types = {offset: run.type for run in runs for offset in range(run.first, run.end)}
        expected = {o: v if v is not None else default for o, v in self.oracle.items()}
        assert types == {offset: kind for offset, kind in expected.items() if kind is not None}
        assert runs == sorted(runs)
        assert sorted(renewing) == sorted(offset for offset, kind in expected.items() if kind == 4)
        self.renewing |= renewing
        self.oracle = {offset: None for offset, kind in expected.items() if kind is None}

    @rule()
    def renew(self) -> None:
        """Complete the renewals that were sent."""
        self.unacknowledged.renew(KEY, "t", 1, self.renewing)
        self.renewed |= dict.fromkeys(self.renewing)
        self.renewing = {}

    @rule()
    def poll(self) -> None:
        assert sorted(message.offset() or 0 for message in self.entry.hand_out_renewed()) == sorted(self.renewed)
        self.oracle |= self.renewed
        self.renewed = {}

    @invariant()
    def agrees(self) -> None:
        assert self.entry.record_count == len(self.oracle)
        assert self.entry.unacknowledged == sum(kind is None for kind in self.oracle.values())
        assert [offset for offset in range(28) if self.entry.holds(offset)] == sorted(self.oracle)
        assert sorted(self.entry.renewed) == sorted(self.renewed)


TestUnacknowledged = UnacknowledgedMachine.TestCase
