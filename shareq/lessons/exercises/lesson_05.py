"""Lesson 05, durability: what is written, what it costs, and what can be read from it."""

from __future__ import annotations

import random
from typing import Final

from shareq.lessons.bench import Bench, settle
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.lessons.state_log import state_log, state_records
from shareq.model.states import AcknowledgeType, RecordState

EXERCISES: Final = Exercises("05")


@EXERCISES.judged_by(
    "One record",
    "Each request with acknowledgements is one record. When does a consumer send a request?",
    "Acknowledge all messages first, and commit once: settle(ann, messages).",
)
def one_record(answer: Answer) -> Passed:
    bench = Bench(10)
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    before = len(state_records(bench))
    ask(answer, ann, messages)
    written = len(state_records(bench)) - before
    if bench.view.snapshot()["spso"] != 10:
        raise NotYet(f"✗ not all ten records are accepted: {bench}")
    return check(written == 1, "ten accepts, one record", f"{written} records were written, and one would do")


@EXERCISES.judged_by(
    "Fold it",
    "Begin with an empty dict. A snapshot empties it; every record puts its batches in.",
    "for offset in range(batch.first_offset, batch.last_offset + 1): state[offset] = (...)",
    "The last record's start_offset is where the window begins: leave out what is below.",
)
def fold_it(answer: Answer) -> Passed:
    bench = Bench(*[4] * 12, config={"share.coordinator.snapshot.update.records.per.snapshot": 5})
    ann, bob, rng = bench.consumer("ann", most=4), bench.consumer("bob", most=4), random.Random(5)
    settle(ann, ann.poll(1))
    settle(bob, bob.poll(1)[2:])  # bob keeps two records, so that the window does not end up empty
    kinds = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
    for _ in range(12):
        for message in ann.poll(1):
            settle(ann, [message], rng.choices(kinds, weights=(5, 3, 1))[0])
    records = state_records(bench)
    state = ask(answer, list(records), wants=dict)
    for first, end, name, count, *_ in bench.view.snapshot()["runs"]:
        for offset in range(first, end) if name != "acquired" and count else ():
            wanted = (RecordState[name.upper()], count)
            if state.get(offset) != wanted:
                found = state.get(offset, "missing")
                raise NotYet(f"✗ offset {offset} is {found} in your state, and {wanted} in the leader's memory")
    start = records[-1].start_offset
    below = [offset for offset in state if offset < start]
    text = f"your state is that of the leader, from offset {start} on"
    return check(not below, text, f"offset {below[:1]} is below the start offset {start}")


@EXERCISES.judged_by(
    "Only snapshots",
    "How many updates may follow a snapshot?",
    "share.coordinator.snapshot.update.records.per.snapshot: no updates at all.",
)
def only_snapshots(answer: Answer) -> Passed:
    config = ask(answer, wants=dict)
    with accepted_by_brokers():
        bench = Bench(*[1] * 10, config=config)
    ann = bench.consumer("ann", most=1)
    for _ in range(10):
        settle(ann, ann.poll(1))
    updates = [record for record in state_records(bench) if record.kind == "update"]
    if updates:
        raise NotYet(f"✗ {len(updates)} of ten writes are updates")
    size, usual = _bytes_of_forty_writes(config), _bytes_of_forty_writes({})
    return Passed(
        "✓ ten writes, ten snapshots; the price: each has the states of all records in flight, so that forty writes"
        f" behind a record that is not done take {size:,} bytes, and with updates {usual:,}"
    )


def _bytes_of_forty_writes(config: dict[str, object]) -> int:
    """The size of the state topic after forty commits of which the first record of the window is no part."""
    bench = Bench(41, config=config)
    ann = bench.consumer("ann")
    for place, message in enumerate(ann.poll(1)[1:]):
        settle(ann, [message], AcknowledgeType.RELEASE if place % 2 else AcknowledgeType.ACCEPT)
    return state_log(bench).size_in_bytes


@EXERCISES.judged_by(
    "Written, and not answered",
    "Delay the appends by a few seconds, acknowledge, and wait for less than that.",
    "ann.acknowledge(message) for each message; then ann.commit_sync(1) with a delay of 3,000 ms.",
    "The write goes on without ann: let time pass, bench.cluster.advance(...), and return what commit_sync returned.",
)
def not_answered(answer: Answer) -> Passed:
    bench = Bench(1)
    result = ask(answer, bench, wants=dict)
    if bench.life(0).state != "acknowledged":
        raise NotYet(f"✗ record 0 is {bench.life(0).state}, and its accept should be durable")
    errors = [error.error.name() for error in result.values() if error is not None]
    return check(
        bool(errors), f"ann got {errors[:1]}, and her accept is durable", "ann's commit got its answer in time"
    )
