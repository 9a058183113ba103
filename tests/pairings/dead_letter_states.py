"""What the worked examples of dead-letter queues leave in the state topic: the records of Apache Kafka, as text, and
what they mean for each offset."""

from __future__ import annotations

from collections import defaultdict

from shareq.coordinator.share_state.records import StateUpdate, decode_state_record
from tests.pairings.dead_letter_scenarios import state_records
from tests.pairings.dead_letters import DeadLetterStage

WRITTEN = {
    "examples_1_to_4_reject_and_release": [
        "0 0-0/3/1 0",
        "0 0-0/4/1 1",
        "1 5-9/3/1 0",
        *(f"1 {offset}-{offset}/4/1 {offset - 4}" for offset in range(5, 10)),
        "1 1-3/0/1 4-4/3/1 5",
        "1 4-4/4/1 6",
        "1 1-2/2/2 3-3/0/2 8",
        "3 3-3/0/3 6",
        "3 3-3/0/4 6",
        "3 3-3/3/5 6",
        "3 3-3/4/5 7",
    ],
    "example_5_a_whole_batch_in_order": ["0 0-9/3/1 0", "0 0-9/4/1 10"],
    "example_6_locks_run_out_at_the_limit": ["0 0-3/0/1 0", "0 0-3/3/2 0", "0 0-3/4/2 4"],
    "example_7_a_session_ends_at_the_limit": ["0 0-3/0/1 0", "0 0-3/3/2 0", "0 0-3/4/2 4"],
    "example_16_rounds_of_a_small_queue": ["0 0-11/3/1 0", "0 0-11/4/1 12"],
}
"""By example, Kafka's records: the start offset, `first-last/state/delivery count` of each batch, and how many records
from the start offset on are complete. 3 is ARCHIVING, 4 ARCHIVED."""


def written(stage: DeadLetterStage) -> list[str]:
    """The records of the stage's group, without those that have no batches."""
    records = [decode_state_record(key or b"", value) for key, value in state_records(stage.address)]
    return [
        f"{found.start_offset} {batches} {found.delivery_complete_count}"
        for found in records
        if isinstance(found, StateUpdate) and found.key.group_id == stage.group
        if (batches := " ".join(f"{b.first_offset}-{b.last_offset}/{b[2]:d}/{b[3]}" for b in found.state_batches))
    ]


def meaning(lines: list[str]) -> tuple[dict[int, list[str]], int]:
    """The states of each offset, one after the other, and the number of records that are complete at the end: however a
    broker divides its writes."""
    ways: defaultdict[int, list[str]] = defaultdict(list)
    start, complete = 0, 0
    for line in lines:
        first, *batches, last = line.split()
        start, complete = int(first), int(last)
        for batch in batches:
            offsets, _, state = batch.partition("/")
            low, high = map(int, offsets.split("-"))
            for offset in range(low, high + 1):
                ways[offset].append(state)
    return dict(ways), start + complete
