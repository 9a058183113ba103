"""Lesson 17, three persisters: offsets that readers pass over, what a delta can express, indices of deltas."""

from __future__ import annotations

import random
from typing import Final

from shareq.lessons.bench import Bench, settle
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.lessons.persisters import folded
from shareq.lessons.state_log import batches_in_words
from shareq.log.records import decode
from shareq.model.messages.share_state import StateBatch
from shareq.model.state_designs import StateDesign
from shareq.model.states import IsolationLevel

EXERCISES: Final = Exercises("17")

INDICES: Final = 16


@EXERCISES.judged_by(
    "Passed over",
    "How many offsets lie between the first and the last, both included?",
    "offsets[-1] - offsets[0] + 1 offsets, of which len(offsets) are records.",
)
def passed_over(answer: Answer) -> Passed:
    bench = Bench(4, persister=StateDesign.CONTROL_RECORDS)
    ann = bench.consumer("ann")
    for size in (3, 5, 2):
        for message in ann.poll(1):
            settle(ann, [message])
        bench.produce(size)
    log = bench.cluster.log(bench.topic, 0)
    read = log.read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED)
    offsets = [record.offset for batch in read.batches for record in decode(batch)]
    for skipped in (0, 3):
        got = offsets[skipped:]
        hidden = sum(end - first for first, end in log.hidden.runs(got[0], got[-1]))
        found = ask(answer, list(got), wants=int)
        if found != hidden:
            raise NotYet(f"✗ from offset {got[0]} to {got[-1]} are {hidden} control records, and not {found}")
    return Passed("✓ a consumer can count what it does not see, and cannot tell it from what compaction removed")


@EXERCISES.judged_by(
    "Can a delta express it?",
    "A reader of the delta has the stored start and batches, and the added batches: folded(start, stored, added).",
    "The leader's state is folded(max(start, asked), stored, added). Are the two equal?",
)
def can_a_delta_express_it(answer: Answer) -> Passed:
    rng, seen = random.Random(17), set()
    for _ in range(300):
        start, stored, asked, added = _change(rng)
        reader, leader = folded(start, stored, added), folded(max(start, asked), stored, added)
        found = ask(answer, start, stored, asked, added, wants=bool)
        seen.add((asked > start, reader == leader))
        if found != (reader == leader):
            raise NotYet(
                f"✗ stored: start {start}, {batches_in_words(stored)}; written: start {asked}, "
                f"{batches_in_words(added)}. Then a reader of a delta begins at {reader[0]}, and the leader at "
                f"{leader[0]}: the answer is {reader == leader}"
            )
    return check(len(seen) == 3, "300 changes: you know which of them need a checkpoint", "too few kinds of changes")


def _change(rng: random.Random) -> tuple[int, tuple[StateBatch, ...], int, tuple[StateBatch, ...]]:
    """A state, folded, and a write to it; often the first records are done, or the start has moved."""
    start, stored = folded(100, [_batch(rng, 101 + rng.randrange(6)) for _ in range(rng.randrange(3))])
    added = tuple(_batch(rng, start + rng.choice((0, 0, 2))) for _ in range(rng.randint(1, 2)))
    return start, stored, start + rng.choice((0, 0, 1, 2, 4)), added


def _batch(rng: random.Random, first: int) -> StateBatch:
    return StateBatch(first, first + rng.randrange(3), rng.choice((0, 2, 2, 4)), 1)


@EXERCISES.judged_by(
    "Never twice",
    "The cleaner keeps the last record of each index. When may an index be written again?",
    "Not before the next checkpoint: index = last + 1, and 0 after 15; is it in used?",
    "If it is, return None: a checkpoint has all that the deltas have, and frees their indices.",
)
def never_twice(answer: Answer) -> Passed:
    rng = random.Random(17)
    truth: set[int] = set()
    log: list[tuple[int, set[int]]] = [(-1, set())]  # (index, changes): -1 is the checkpoint's key
    last, used, whole = -1, set[int](), 0
    for change in range(300):
        truth.add(change)
        if rng.random() < 0.02:
            index = None  # a checkpoint that is due for another reason
        else:
            index = ask(answer, last, set(used))
            _require_index(index, used)
            whole += index is None
        if index is None:
            log.append((-1, set(truth)))
            used.clear()
        else:
            log.append((index, {change}))
            used.add(index)
            last = index
        if rng.random() < 0.2:
            log = _cleaned(log)
        if missing := truth - _loaded(log):
            raise NotYet(f"✗ change {min(missing)} is lost: the cleaner kept only the later delta with its index")
    return Passed(f"✓ 300 changes, and a cleaner at work: none is lost; {whole} checkpoints because no index was free")


def _require_index(index: object, used: set[int]) -> None:
    if index is None and len(used) < INDICES:
        raise NotYet(f"✗ a checkpoint, although {INDICES - len(used)} of {INDICES} indices are free")
    if index is not None and index not in range(INDICES):
        raise NotYet(f"✗ {index!r} is no index: 0 to {INDICES - 1}, or None for a checkpoint")


def _cleaned(log: list[tuple[int, set[int]]]) -> list[tuple[int, set[int]]]:
    """What a cleaner leaves: the last record of each key."""
    newest = {index: place for place, (index, _) in enumerate(log)}
    return [log[place] for place in sorted(newest.values())]


def _loaded(log: list[tuple[int, set[int]]]) -> set[int]:
    """The changes that a load finds: a checkpoint replaces, a delta adds."""
    found: set[int] = set()
    for index, changes in log:
        found = set(changes) if index == -1 else found | changes
    return found
