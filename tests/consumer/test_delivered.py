"""Records in hand, against a dict of offsets."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shareq.client.message import Message
from shareq.consumer.acks import Run
from shareq.consumer.delivered import InHand, PartitionInHand
from shareq.model.ids import TopicId, TopicIdPartition

KEY = TopicIdPartition(TopicId("t" * 22), 0)


def in_hand(*ranges: tuple[int, int], gaps: list[tuple[int, int]] | None = None) -> PartitionInHand:
    entry = PartitionInHand(KEY, "t", 1)
    entry.add(ranges, gaps or [], [Message("t", 0, offset) for first, end in ranges for offset in range(first, end)])
    return entry


@pytest.mark.parametrize(
    ("verdicts", "default", "runs", "rest"),
    [
        pytest.param({}, None, [], 5, id="nothing said, explicit"),
        pytest.param({}, 1, [Run(0, 3, 1), Run(5, 7, 1)], 0, id="nothing said, implicit"),
        pytest.param({1: 3}, None, [Run(1, 2, 3)], 4, id="one said, explicit"),
        pytest.param({1: 3}, 1, [Run(0, 1, 1), Run(1, 2, 3), Run(2, 3, 1), Run(5, 7, 1)], 0, id="one said, implicit"),
        pytest.param({0: 1, 1: 1, 2: 1, 5: 1, 6: 2}, None, [Run(0, 3, 1), Run(5, 6, 1), Run(6, 7, 2)], 0, id="all"),
        pytest.param({2: 1, 5: 1}, None, [Run(2, 3, 1), Run(5, 6, 1)], 3, id="edges of two ranges"),
    ],
)
def test_take(verdicts: dict[int, int], default: int | None, runs: list[Run], rest: int) -> None:
    entry = in_hand((0, 3), (5, 7))
    for offset, verdict in verdicts.items():
        assert entry.acknowledge(offset, verdict)
    assert entry.take(default) == (runs, {})
    assert entry.record_count == entry.unacknowledged == rest


def test_gaps_travel_with_the_first_acknowledgements() -> None:
    entry = in_hand((0, 2), (3, 4), gaps=[(2, 3)])
    entry.acknowledge(0, 1)
    assert entry.take(None)[0] == [Run(0, 1, 1), Run(2, 3, 0)]
    assert entry.take(1)[0] == [Run(1, 2, 1), Run(3, 4, 1)]


def test_a_gap_is_not_in_hand() -> None:
    entry = in_hand((0, 2), gaps=[(2, 3)])
    assert [entry.holds(offset) for offset in range(-1, 4)] == [False, True, True, False, False]
    assert not entry.acknowledge(2, 1)


def test_renewed_records_may_be_acknowledged_without_another_poll() -> None:
    entry = in_hand((0, 3))
    entry.acknowledge(1, 4)
    runs, renewing = entry.take(None)
    assert (runs, list(renewing)) == ([Run(1, 2, 4)], [1])
    assert not entry.acknowledge(1, 1)
    entry.renewed |= renewing
    assert entry.unacknowledged == 2
    assert entry.acknowledge(1, 1)
    assert entry.take(None)[0] == [Run(1, 2, 1)]


def test_a_run_may_reach_from_one_range_into_the_next() -> None:
    """A renewed record comes back before the range that it touches."""
    entry = in_hand((1, 4))
    entry.add([(0, 1)], (), [Message("t", 0, 0)])
    for offset in (0, 1, 2):
        entry.acknowledge(offset, 1)
    assert entry.take(None)[0] == [Run(0, 3, 1)]
    assert [offset for offset in range(5) if entry.holds(offset)] == [3]


def test_a_topic_made_anew_starts_with_empty_hands() -> None:
    hands = InHand()
    hands.partition(KEY, "t", 1).add([(0, 1)], (), [Message("t", 0, 0)])
    again = hands.partition(TopicIdPartition(TopicId("u" * 22), 0), "t", 1)
    assert again.record_count == 0
    assert hands.find("t", 0) is again


class HandsMachine(RuleBasedStateMachine):
    """Any order of deliveries, verdicts and takes: the ranges say what a dict of offsets says."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = PartitionInHand(KEY, "t", 1)
        self.oracle: dict[int, int | None] = {}
        self.next = 0

    @rule(hole=st.integers(0, 2), length=st.integers(1, 6))
    def deliver(self, hole: int, length: int) -> None:
        first = self.next + hole
        self.next = first + length
        self.entry.add([(first, self.next)], (), [Message("t", 0, offset) for offset in range(first, self.next)])
        self.oracle |= dict.fromkeys(range(first, self.next))

    @rule(back=st.integers(0, 12), verdict=st.integers(1, 3))
    def acknowledge(self, back: int, verdict: int) -> None:
        offset = self.next - back
        assert self.entry.acknowledge(offset, verdict) == (offset in self.oracle)
        if offset in self.oracle:
            self.oracle[offset] = verdict

    @rule(default=st.sampled_from([None, 1]))
    def take(self, default: int | None) -> None:
        runs, _ = self.entry.take(default)
        said = {offset: run.type for run in runs for offset in range(run.first, run.end)}
        expected = {o: v if v is not None else default for o, v in self.oracle.items()}
        assert said == {offset: verdict for offset, verdict in expected.items() if verdict is not None}
        assert runs == sorted(runs)
        self.oracle = {offset: None for offset, verdict in expected.items() if verdict is None}

    @invariant()
    def agrees(self) -> None:
        assert self.entry.record_count == len(self.oracle)
        assert self.entry.unacknowledged == sum(verdict is None for verdict in self.oracle.values())
        assert [o for o in range(self.next + 2) if self.entry.holds(o)] == sorted(self.oracle)


TestHands = HandsMachine.TestCase
