"""What a writer appends again when a replaced one has hidden records of a compacted topic: a table of cases for states
of share-partitions, and random logs. BEHAVIOUR.md of the backend, 3.9."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import pytest

from shareq.broker.backend.coordinators import FENCES
from shareq.broker.backend.generations import Generations, Writer
from shareq.broker.backend.restoration import OF_RECORDS, OF_STATES, Cleanup, WholeStates
from shareq.coordinator.share_state import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.coordinator.share_state.compacted import CompactedShard
from shareq.coordinator.share_state.records import SNAPSHOT, encode_key, encode_state_record
from shareq.coordinator.share_state.state import KeyState, StateChange
from shareq.log.records import decode_key_values, encode_batch, parse_batch, restamp
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord, RecordBatch
from tests.coordinator.share_state.stage import KEY, TOPIC, batches

FENCE = FENCES[SHARE_STATE_TOPIC]
FORMER, WRITER = (7, 0), (9, 0)
OTHER = SharePartitionKey("g2", TOPIC, 3)


class Log:
    """The log of a shard: batches of the former writer, the fence of its successor, and what both append then."""

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def append(self, writer: Writer, records: Sequence[CoordinatorRecord]) -> None:
        if records:
            found = [(record.key, record.value, (), 0) for record in records]
            data = encode_batch(found, producer_id=writer[0], producer_epoch=writer[1])
            self.batches.append(parse_batch(restamp(data, self.end, 0)))

    def restored(self, cleanup: Cleanup = OF_STATES) -> list[CoordinatorRecord]:
        """What the writer appends, as `ShardLog` does."""
        generations = Generations(FENCE, cleanup.settles)
        valid = records_of(generations.valid(self.batches))
        if not generations.strays:
            return []
        found = cleanup.restoration(frozenset(generations.strays))
        for key, value in valid:
            found.take(key, value)
        return found.records()

    def compacted(self, end: int) -> Log:
        """The log when records before `end` are compacted: of each key the newest one is left, fences are gone."""
        newest = {key: at for at, key, _ in located(self.batches) if at < end}
        made = Log()
        for batch in self.batches:
            kept = [(key, value) for at, key, value in located([batch]) if at >= end or newest[key] == at]
            left = [CoordinatorRecord(*one) for one in kept if batch.base_offset >= end or one[0] != FENCE.key]
            made.append((batch.producer_id, batch.producer_epoch), left)
        return made

    def states(self) -> dict[SharePartitionKey, KeyState]:
        """The states that a coordinator reads."""
        return fold(records_of(Generations(FENCE).valid(self.batches)))


def located(found: Iterable[RecordBatch]) -> list[tuple[int, bytes, bytes | None]]:
    return [(batch.base_offset + n, key or b"", value) for batch in found for n, (_, key, value) in numbered(batch)]


def numbered(batch: RecordBatch) -> Iterable[tuple[int, Any]]:
    return enumerate(decode_key_values(batch))


def records_of(found: Iterable[RecordBatch]) -> list[tuple[bytes, bytes | None]]:
    return [(key, value) for _, key, value in located(found)]


def folded(records: Iterable[tuple[bytes, bytes | None]]) -> CompactedShard:
    shard = CompactedShard(ClusterImage)
    for offset, (key, value) in enumerate(records):
        shard.replay(offset, key, value, 0)
    return shard


def fold(records: Iterable[tuple[bytes, bytes | None]]) -> dict[SharePartitionKey, KeyState]:
    """The states. A compacted topic does not count updates."""
    return {key: replace(state, update_count=0) for key, state in folded(records).states.items()}


# ---- the table -------------------------------------------------------------------------------------------------------


def c(epoch: int, text: str, start: int = 100, key: SharePartitionKey = KEY) -> StateSnapshot:
    return StateSnapshot(key, epoch, 0, 0, start, 0, 0, batches(text))


def d(index: int, epoch: int, text: str, start: int = 100, key: SharePartitionKey = KEY) -> StateUpdate:
    return StateUpdate(key, epoch, 0, start, batches(text), -1, index)


def null(index: int = -1) -> StateTombstone:
    return StateTombstone(KEY, index)


C0 = c(0, "100-104/0/1")
D0, D1, D2 = d(0, 0, "100-101/0/2"), d(1, 0, "100-100/2/2 102-102/0/2"), d(2, 0, "102-102/2/2", 101)
C1 = c(1, "102-104/4/1", 102)
E0, E1 = d(1, 1, "103-103/0/2", 102), d(2, 1, "103-103/2/2", 102)
"""Deltas after C1: indices go on."""

STRAY = "100-109/4/9"


class Case(NamedTuple):
    """What the writers have appended, what the former one appends when it is replaced, and what the writer appends
    before it notices. `wrong`: compaction of the whole log would change the states unless the writer restores them."""

    valid: Sequence[StateRecord]
    stray: Sequence[StateRecord]
    after: Sequence[StateRecord] = ()
    wrong: bool = True


CASES = {
    "the next delta": Case([C0, D0], [d(1, 0, STRAY)]),
    "the last delta": Case([C0, D0, D1], [d(1, 0, STRAY)]),
    "a delta before others": Case([C0, D0, D1, D2], [d(0, 0, STRAY)]),
    "a delta of the checkpoint before": Case([C0, D0, C1, E0], [d(0, 0, STRAY)], wrong=False),  # its epoch is passed
    "a delta of the checkpoint before, in a used place": Case([C0, D0, C1, E0], [d(1, 0, STRAY)]),
    "the checkpoint": Case([C0, D0, D1], [c(1, STRAY)]),
    "the checkpoint with its own epoch": Case([C0, D0, D1], [c(0, STRAY)]),
    "checkpoint and delta": Case([C0, D0, D1], [c(1, STRAY), d(0, 1, STRAY)]),
    "a deletion": Case([C0, D0, D1], [null(), null(0), null(1)]),
    "the tombstone of a delta": Case([C0, D0, D1], [null(0)]),
    "a delta of a deleted state": Case([C0, D0, null(), null(0)], [d(0, 0, STRAY)], wrong=False),  # no checkpoint
    "a checkpoint of a deleted state": Case([C0, D0, null(), null(0)], [c(1, STRAY)]),
    "a state that there has not been": Case([], [c(0, STRAY), d(0, 0, STRAY)]),
    "one of two states": Case([C0, c(0, "1-1/2/1", 1, OTHER), D0, d(0, 0, "2-2/2/1", 1, OTHER)], [c(1, STRAY)]),
    "both states": Case([C0, c(0, "1-1/2/1", 1, OTHER), D0], [d(0, 0, STRAY), c(1, STRAY, 5, OTHER)]),
    "a delta whose index the writer takes": Case([C0, D0], [d(1, 0, STRAY)], [D1, D2], wrong=False),
    "a checkpoint that the writer replaces": Case([C0, D0, D1], [c(1, STRAY)], [C1, E0, E1], wrong=False),
    "a checkpoint between deltas": Case([C0, D0], [c(1, STRAY)], [D1, D2]),
    "a delta that another checkpoint replaces": Case([C0, D0, D1], [d(0, 0, STRAY)], [C1, E0], wrong=False),
}


def written(case: Case) -> Log:
    log = Log()
    log.append(FORMER, [FENCE])
    first = len(case.valid) // 2  # the writers' shares
    for number, record in enumerate(case.valid):
        if number == first:
            log.append(WRITER, [FENCE])
        log.append(FORMER if number < first else WRITER, [encode_state_record(record)])
    if not case.valid:
        log.append(WRITER, [FENCE])
    log.append(FORMER, [encode_state_record(record) for record in case.stray])
    for record in case.after:
        log.append(WRITER, [encode_state_record(record)])
    return log


def good(case: Case) -> dict[SharePartitionKey, KeyState]:
    return fold((key, value) for key, value in map(encode_state_record, [*case.valid, *case.after]))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_states_are_those_of_the_writer_whatever_is_compacted(case: Case) -> None:
    log = written(case)
    assert log.states() == good(case)
    log.append(WRITER, log.restored())
    assert log.restored() == []
    for end in range(log.end + 1):
        assert log.compacted(end).states() == good(case), f"compacted up to {end}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_without_the_restoration_compaction_changes_states(case: Case) -> None:
    log = written(case)
    assert (log.compacted(log.end).states() != good(case)) is case.wrong


@pytest.mark.parametrize("name", ["a delta before others", "the checkpoint"])
def test_the_newest_record_of_a_key_is_no_restoration_of_a_state(name: str) -> None:
    """The delta would take back those after it, and the checkpoint all deltas."""
    log = written(CASES[name])
    log.append(WRITER, log.restored(OF_RECORDS))
    assert log.states() != good(CASES[name])


def test_a_record_that_compaction_has_removed_before_cannot_be_restored() -> None:
    """So compaction leaves records for `COMPACTION_LAG_MS`, in which a writer looks for strays."""
    case = CASES["a delta before others"]
    log = written(case)
    fences = [batch for batch in log.batches if records_of([batch]) == [tuple(FENCE)]]
    late = log.compacted(log.end)
    late.batches = [*fences[-1:], *late.batches]
    late.append(WRITER, late.restored())
    assert late.states() != good(case)


def test_keys_of_other_programs_are_no_states() -> None:
    keys = frozenset({b"", b"x", b"\0\1junk", b"\0\x09later", encode_key(KEY, SNAPSHOT)})
    found = WholeStates(keys)
    for key in sorted(keys):
        found.take(key, None)
    assert {key for key, _ in found.records()} == keys


# ---- random logs -----------------------------------------------------------------------------------------------------

RUNS, STEPS = 150, 25


def test_states_outlast_strays_and_compactions_at_random(seed: int) -> None:
    for number in range(RUNS):
        one_run(Random(f"{seed} {number}"))


def one_run(rng: Random) -> None:
    """A writer that changes and deletes states, a former one that knows an earlier state of the log, restorations and
    compactions."""
    log, valid, formers = Log(), folded(()), [folded(())]
    log.append(FORMER, [FENCE])
    log.append(WRITER, [FENCE])

    def write(records: Sequence[CoordinatorRecord]) -> None:
        log.append(WRITER, records)
        for record in records:
            valid.replay(log.end, *record, 0)

    for _ in range(STEPS):
        step = rng.choice(["write", "write", "write", "delete", "stray", "remember", "restore", "compact"])
        key = rng.choice([KEY, OTHER])
        if step == "write":
            write([encode_state_record(record) for record in change(valid, key, rng)])
        elif step == "delete":
            write([encode_state_record(record) for record in valid.deletion(key)])
        elif step == "stray":
            log.append(FORMER, [encode_state_record(record) for record in change(rng.choice(formers), key, rng)])
        elif step == "remember":
            formers.append(folded(records_of(Generations(FENCE).valid(log.batches))))
        elif step == "restore":
            log.append(WRITER, log.restored())
        else:
            log.append(WRITER, log.restored())  # within the lag of compaction
            log = log.compacted(rng.randrange(log.end + 1))
            log.append(WRITER, [FENCE])
        assert log.states() == {name: replace(state, update_count=0) for name, state in valid.states.items()}


def change(shard: CompactedShard, key: SharePartitionKey, rng: Random) -> list[StateRecord]:
    if key not in shard.states:
        return [c(0, f"{rng.randrange(100, 110)}-120/0/1", key=key)]
    first = rng.randrange(100, 110)
    change = StateChange(
        0, -1, -1, batches(f"{first}-{first + rng.randrange(5)}/{rng.choice([0, 2, 4])}/{rng.randrange(1, 9)}")
    )
    return [shard.next_record(key, change, 0)]
