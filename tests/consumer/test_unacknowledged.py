"""Records in hand, against a dict of offsets."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shareq.client.message import Message
from shareq.consumer.acknowledgements import AcknowledgeRun
from shareq.consumer.unacknowledged import UnacknowledgedPartition, UnacknowledgedRecords
from shareq.model.ids import TopicId, TopicIdPartition

KEY = TopicIdPartition(TopicId("t" * 22), 0)


def in_hand(*ranges: tuple[int, int], gaps: list[tuple[int, int]] | None = None) -> UnacknowledgedPartition:
    entry = UnacknowledgedPartition(KEY, "t", 1)
    entry.add(ranges, gaps or [], [Message("t", 0, offset) for first, end in ranges for offset in range(first, end)])
    return entry


@pytest.mark.parametrize(
    ("verdicts", "default", "runs", "rest"),
    [
        pytest.param({}, None, [], 5, id="nothing said, explicit"),
        pytest.param({}, 1, [AcknowledgeRun(0, 3, 1), AcknowledgeRun(5, 7, 1)], 0, id="nothing said, implicit"),
        pytest.param({1: 3}, None, [AcknowledgeRun(1, 2, 3)], 4, id="one said, explicit"),
        pytest.param(
            {1: 3},
            1,
            [AcknowledgeRun(0, 1, 1), AcknowledgeRun(1, 2, 3), AcknowledgeRun(2, 3, 1), AcknowledgeRun(5, 7, 1)],
            0,
            id="one said, implicit",
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
def test_take(verdicts: dict[int, int], default: int | None, runs: list[AcknowledgeRun], rest: int) -> None:
    entry = in_hand((0, 3), (5, 7))
    for offset, verdict in verdicts.items():
        assert entry.acknowledge(offset, verdict)
    assert entry.take(default) == (runs, {})
    assert entry.record_count == entry.unacknowledged == rest


def test_gaps_travel_with_the_first_acknowledgements() -> None:
    entry = in_hand((0, 2), (3, 4), gaps=[(2, 3)])
    entry.acknowledge(0, 1)
    assert entry.take(None)[0] == [AcknowledgeRun(0, 1, 1), AcknowledgeRun(2, 3, 0)]
    assert entry.take(1)[0] == [AcknowledgeRun(1, 2, 1), AcknowledgeRun(3, 4, 1)]


def test_a_gap_is_not_in_hand() -> None:
    entry = in_hand((0, 2), gaps=[(2, 3)])
    assert [entry.holds(offset) for offset in range(-1, 4)] == [False, True, True, False, False]
    assert not entry.acknowledge(2, 1)


def test_renewed_records_may_be_acknowledged_without_another_poll() -> None:
    entry = in_hand((0, 3))
    entry.acknowledge(1, 4)
    runs, renewing = entry.take(None)
    assert (runs, list(renewing)) == ([AcknowledgeRun(1, 2, 4)], [1])
    assert not entry.acknowledge(1, 1)
    entry.renewed |= renewing
    assert entry.unacknowledged == 2
    assert entry.acknowledge(1, 1)
    assert entry.take(None)[0] == [AcknowledgeRun(1, 2, 1)]


def test_a_run_may_reach_from_one_range_into_the_next() -> None:
    """A renewed record is in hand again before the range that it touches."""
    entry = in_hand((1, 4))
    entry.add([(0, 1)], (), [Message("t", 0, 0)])
    for offset in (0, 1, 2):
        entry.acknowledge(offset, 1)
    assert entry.take(None)[0] == [AcknowledgeRun(0, 3, 1)]
    assert [offset for offset in range(5) if entry.holds(offset)] == [3]


@pytest.mark.parametrize(
    ("added", "held", "said"),
    [
        pytest.param((0, 3), [0, 1, 2, 5, 6], {6: 1}, id="the same range"),
        pytest.param((1, 2), [0, 1, 2, 5, 6], {0: 1, 6: 1}, id="inside a range"),
        pytest.param((2, 6), [0, 1, 2, 3, 4, 5, 6], {0: 1, 6: 1}, id="from one range into the next"),
        pytest.param((3, 5), [0, 1, 2, 3, 4, 5, 6], {0: 1, 6: 1}, id="between two ranges"),
        pytest.param((0, 9), [0, 1, 2, 3, 4, 5, 6, 7, 8], {}, id="all and more"),
    ],
)
def test_what_is_acquired_again_is_held_once_and_no_older_verdict_counts(
    added: tuple[int, int], held: list[int], said: dict[int, int]
) -> None:
    entry = in_hand((0, 3), (5, 7))
    for offset in (0, 6):
        entry.acknowledge(offset, 1)
    entry.add([added], (), [])
    assert [offset for first, end in entry.ranges for offset in range(first, end)] == held
    assert (entry.record_count, entry.verdicts) == (len(held), said)


@pytest.mark.parametrize("former", [(TopicIdPartition(TopicId("u" * 22), 0), 1), (KEY, 2)], ids=["topic", "leader"])
def test_a_topic_made_anew_or_a_new_leader_starts_with_empty_hands(former: tuple[TopicIdPartition, int]) -> None:
    hands = UnacknowledgedRecords()
    hands.partition(former[0], "t", former[1]).add([(0, 1)], (), [Message("t", 0, 0)])
    again = hands.partition(KEY, "t", 1)
    assert again.record_count == 0
    assert hands.find("t", 0) is again


def test_a_renewal_of_a_former_leader_leaves_the_new_ones_records_in_hand() -> None:
    hands = UnacknowledgedRecords()
    hands.partition(KEY, "t", 2).add([(0, 1)], (), [Message("t", 0, 0)])
    hands.renew(KEY, "t", 1, {0: Message("t", 0, 0), 1: Message("t", 0, 1)})
    assert [(entry.node, entry.ranges, entry.renewed) for entry in hands] == [(2, [(0, 1)], {})]


def test_a_renewed_record_that_compaction_removed_is_not_handed_out_again() -> None:
    entry = UnacknowledgedPartition(KEY, "t", 1)
    entry.renewed = {0: Message("t", 0, 0), 1: Message("t", 0, 1)}
    entry.add([], [(1, 2)], [])
    assert [message.offset() for message in entry.hand_out_renewed()] == [0]


def test_a_renewal_brings_no_second_copy_of_what_is_in_hand() -> None:
    hands = UnacknowledgedRecords()
    hands.partition(KEY, "t", 1).add([(0, 1)], (), [Message("t", 0, 0)])
    hands.renew(KEY, "t", 1, {0: Message("t", 0, 0), 1: Message("t", 0, 1)})
    assert [sorted(entry.renewed) for entry in hands] == [[1]]


class HandsMachine(RuleBasedStateMachine):
    """Any order of deliveries, verdicts, takes and renewals: the ranges say what dicts of offsets say."""

    def __init__(self) -> None:
        super().__init__()
        self.hands = UnacknowledgedRecords()
        self.oracle: dict[int, int | None] = {}
        self.renewed: dict[int, int | None] = {}
        self.renewing: dict[int, Message] = {}
        self.copies = 0

    @property
    def entry(self) -> UnacknowledgedPartition:
        return self.hands.partition(KEY, "t", 1)

    @rule(first=st.integers(0, 20), length=st.integers(1, 6))
    def deliver(self, first: int, length: int) -> None:
        """Any offsets: what is held, renewed or acknowledged already may be acquired again."""
        self.copies += 1
        offsets = range(first, first + length)
        messages = [Message("t", 0, offset, value=str(self.copies)) for offset in offsets]
        self.entry.add([(first, first + length)], (), messages)
        self.oracle |= dict.fromkeys(offsets)
        for offset in offsets:
            self.renewed.pop(offset, None)
            self.renewing.pop(offset, None)

    @rule(offset=st.integers(0, 27), verdict=st.integers(1, 4))
    def acknowledge(self, offset: int, verdict: int) -> None:
        known = offset in self.oracle or offset in self.renewed
        assert self.entry.acknowledge(offset, verdict) == known
        if known:
            self.renewed.pop(offset, None)
            self.oracle[offset] = verdict

    @rule(default=st.sampled_from([None, 1]))
    def take(self, default: int | None) -> None:
        runs, renewing = self.entry.take(default)
        said = {offset: run.type for run in runs for offset in range(run.first, run.end)}
        expected = {o: v if v is not None else default for o, v in self.oracle.items()}
        assert said == {offset: verdict for offset, verdict in expected.items() if verdict is not None}
        assert runs == sorted(runs)
        assert sorted(renewing) == sorted(offset for offset, verdict in expected.items() if verdict == 4)
        self.renewing |= renewing
        self.oracle = {offset: None for offset, verdict in expected.items() if verdict is None}

    @rule()
    def renew(self) -> None:
        """What was sent to be renewed is renewed."""
        self.hands.renew(KEY, "t", 1, self.renewing)
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
        assert self.entry.unacknowledged == sum(verdict is None for verdict in self.oracle.values())
        assert [offset for offset in range(28) if self.entry.holds(offset)] == sorted(self.oracle)
        assert sorted(self.entry.renewed) == sorted(self.renewed)


TestHands = HandsMachine.TestCase
