"""The KIP's worked example of durable share-partition state, step by step, and its picture of in-flight records.

The fixture has the requests of the KIP: a start offset of -1 means "not written", and a moved SPSO is written as state
batches or as a new start offset. The compared result is the state that a reader of the writes computes. As in Kafka,
the SPSO stored with an acknowledgement is the one before it, and a reader moves it past terminal records.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shareq.leader.share_partition import PreparedWrite
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from tests.leader.share_partition_stage import NAMES, SharePartitionStage, span

FIXTURE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "kip_walkthrough.json").read_text())
STEPS: list[dict[str, Any]] = FIXTURE["steps"]
CODES = {"available": "AV", "acquired": "ACQ", "acknowledged": "ACK", "archived": "AR"}


class Reader:
    """Computes the share-partition's state from its writes only."""

    def __init__(self) -> None:
        self.start = 0
        self.records: dict[int, tuple[int, int]] = {}

    def read(self, start_offset: int, batches: list[StateBatch]) -> None:
        self.start = max(self.start, start_offset)
        for first, last, state, count in batches:
            self.records |= dict.fromkeys(range(first, last + 1), (state, count))
        while self.records.get(self.start, (0, 0))[0] in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):
            self.start += 1
        self.records = {offset: stored for offset, stored in self.records.items() if offset >= self.start}

    def load(self) -> SharePartitionStage:
        text = ",".join(f"{o}:{NAMES[RecordState(state)]}{count}" for o, (state, count) in self.records.items())
        return SharePartitionStage(start=self.start, stored=text)


class Walk:
    """The share-partition, a reader of its writes, and a reader of the KIP's writes."""

    def __init__(self) -> None:
        self.stage = SharePartitionStage(start=100)
        self.ours, self.theirs = Reader(), Reader()
        self.ours.start = 100

    def write(self, write: PreparedWrite | None) -> None:
        assert write is not None
        self.ours.read(write.start_offset, list(write.state_batches))
        self.stage.ok(write)

    def initialize(self, start_offset: int) -> None:
        assert self.stage.spso == start_offset

    def fetch(self, **args: Any) -> None:
        for one in args.get("by", [args]):
            if "offsets" in one:  # offset 110 again, and the new 120 in the same fetch
                assert self.stage.fetch(one["member"], "110-119,120", most=2) == "110(2), 120(1)"
            else:
                offsets = span(one["first"], one["last"])
                assert self.stage.fetch(one["member"], offsets) in (f"{offsets}(1)", f"{offsets}(2)")

    def accept(self, member: str, first: int, last: int) -> None:
        self.write(self.stage.ack(member, f"{first}-{last}:1"))

    def release(self, member: str, first: int, last: int) -> None:
        self.write(self.stage.ack(member, f"{first}-{last}:2"))

    def lock_timeout(self, member: str, first: int, last: int) -> None:
        """Only these locks are old enough to expire: the others are renewed one millisecond before."""
        self.stage.now_ms = 29999
        assert self.stage.outcome("c1", "110:4,120:4") is None
        assert self.stage.outcome("c2", "113-118:4") is None
        self.write(self.stage.tick(30000))


def in_flight(step: dict[str, Any]) -> str:
    """The KIP's table as text, one run for each state and count."""
    runs = step["in_flight"]
    return ", ".join(f"{span(r['first'], r['last'])} {CODES[r['state']]}({r['delivery_count']})" for r in runs)


def without_members(stage: SharePartitionStage) -> str:
    """The stage's table as text: adjacent runs that differ only in their holder are one run."""
    runs: list[list[int]] = []
    for first, end, state, count in stage.partition.runs():
        if runs and runs[-1][1:] == [first, state, count]:
            runs[-1][1] = end
        else:
            runs.append([first, end, state, count])
    return ", ".join(
        f"{span(first, end - 1)} {NAMES[RecordState(state)]}({count})" for first, end, state, count in runs
    )


@pytest.mark.parametrize(
    "until", range(1, len(STEPS) + 1), ids=[f"{i}-{s['operation']}" for i, s in enumerate(STEPS, 1)]
)
def test_durable_state_after_each_step(until: int) -> None:
    walk = Walk()
    for step in STEPS[:until]:
        getattr(walk, step["operation"])(**step["args"])
        if step["write_state"] is not None:
            batches = [StateBatch(*batch.values()) for batch in step["write_state"]["state_batches"]]
            walk.theirs.read(step["write_state"]["start_offset"], batches)
    step = STEPS[until - 1]
    assert without_members(walk.stage) == in_flight(step)
    assert (walk.stage.spso, walk.stage.window_end) == (step["spso"], step["window_end"])
    assert walk.ours.start == walk.theirs.start == step["spso"]
    assert walk.ours.records == walk.theirs.records
    assert walk.ours.load().state == walk.theirs.load().state


def test_in_flight_records_of_the_kip_example() -> None:
    """The KIP's first picture. Its SPEO is 8, the last fetched offset; the picture draws it one above."""
    stage = SharePartitionStage(stored="0-1:AR,3:AV2,5:ACK,6:AR,7-8:AV0", start=0)
    example = FIXTURE["in_flight_example"]
    assert (stage.spso, stage.window_end) == (example["spso"], example["window_end"])
    assert stage.fetch("m", "2-8", most=1) == "2(1)"
    assert stage.fetch("m", "4-8", most=1, offset=4) == "4(1)"
    assert stage.state == "2 ACQ(1)@m, 3 AV(2), 4 ACQ(1)@m, 5 ACK(1), 6 AR(1), 7-8 AV(0)"
