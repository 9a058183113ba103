"""Random requests, faults and failovers, compared with a model that stores states by offset and has no records."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from shareq.coordinator.share_state.compacted import CompactedShard
from shareq.coordinator.share_state.records import (
    NO_INDEX,
    StateRecord,
    StateSnapshot,
    StateUpdate,
    encode_state_record,
)
from shareq.coordinator.share_state.state import KeyState, StateChange, StateShard
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_state import StateBatch
from shareq.model.state_designs import StateDesign
from tests.budgets import cases
from tests.coordinator.share_state.stage import (
    TOPIC,
    Delete,
    Initialize,
    Read,
    Stage,
    Summary,
    Write,
    image,
    named,
    topic_image,
)

STEPS = cases(3_000, 8_000)
KEYS = [SharePartitionKey(group, TOPIC, partition) for group in ("a", "b") for partition in range(3)]
WEIGHTS = {Write: 60, Read: 15, Summary: 12, Initialize: 9, Delete: 4}


@dataclass
class Known:
    """One key in the model; `cells` has (count, state) by offset."""

    state_epoch: int
    start_offset: int
    count: int
    leader_epoch: int = 0
    cells: dict[int, tuple[int, int]] = field(default_factory=dict)
    leader_fence: int = 0
    state_fence: int = 0

    def runs(self) -> tuple[StateBatch, ...]:
        runs: list[StateBatch] = []
        for offset, (count, state) in sorted(self.cells.items()):
            if runs and runs[-1].last_offset == offset - 1 and runs[-1][2:] == (state, count):
                runs[-1] = runs[-1]._replace(last_offset=offset)
            else:
                runs.append(StateBatch(offset, offset, state, count))
        return tuple(runs)


class Model:
    """The expected state and responses of the share coordinator."""

    def __init__(self) -> None:
        self.known: dict[SharePartitionKey, Known] = {}

    def error(self, kind: Any, key: SharePartitionKey, fields: Any) -> Errors:
        known = self.known.get(key)
        if known is None:
            return Errors.INVALID_REQUEST if kind in (Read, Write) else Errors.NONE
        if kind in (Read, Write) and fields["leader_epoch"] < known.leader_fence:
            return Errors.FENCED_LEADER_EPOCH
        if kind in (Initialize, Write) and fields["state_epoch"] < known.state_fence:
            return Errors.FENCED_STATE_EPOCH
        return Errors.NONE

    def answer(self, kind: Any, key: SharePartitionKey) -> tuple[object, ...]:
        """The expected fields of a result without error."""
        known = self.known.get(key)
        if kind is Read and known:
            return known.state_epoch, known.start_offset, known.runs()
        if kind is Summary:
            return (known.state_epoch, known.leader_epoch, known.start_offset, known.count) if known else (0, 0, -1, -1)
        return ()

    def apply(self, kind: Any, key: SharePartitionKey, fields: Any) -> None:
        """Apply a request without error."""
        known = self.known.get(key)
        if kind is Delete:
            self.known.pop(key, None)
        elif kind is Initialize:
            epoch, start = fields["state_epoch"], fields["start_offset"]
            fence = known.leader_fence if known else 0
            self.known[key] = Known(epoch, start, -1 if start == -1 else 0, leader_fence=fence, state_fence=epoch)
        elif kind is Read and known and known.leader_fence != fields["leader_epoch"]:
            known.leader_epoch = known.leader_fence = fields["leader_epoch"]
        elif kind is Write and known:
            self._write(known, fields)

    def _write(self, known: Known, fields: Any) -> None:
        start, count = fields["start_offset"], fields["delivery_complete_count"]
        if start > known.start_offset:
            known.start_offset, known.count = start, count
        elif start == known.start_offset:
            known.count = max(known.count, count)
        for first, last, state, deliveries in fields["state_batches"]:
            for offset in range(first, last + 1):
                known.cells[offset] = max(known.cells.get(offset, (0, 0)), (deliveries, state))
        known.cells = {o: cell for o, cell in known.cells.items() if o >= known.start_offset}


def fields_of(kind: Any, entry: Any) -> tuple[object, ...]:
    """The fields of a result that the model predicts."""
    if kind is Read:
        return entry.state_epoch, entry.start_offset, entry.state_batches
    if kind is Summary:
        return entry.state_epoch, entry.leader_epoch, entry.start_offset, entry.delivery_complete_count
    return ()


class Driver:
    """One run on a stage with one partition of the state topic, which holds all keys."""

    def __init__(self, rng: random.Random, *, limit: int, prunes: bool = False, compacts: bool = False) -> None:
        self.rng = rng
        self.model = Model()
        interval = 50 if prunes else 10**8
        self.stage = Stage(
            image(
                topic_image("t", TOPIC, 3),
                state_partitions=1,
                design=StateDesign.COMPACTED_TOPIC if compacts else StateDesign.STATE_TOPIC,
                snapshot_update_records_per_snapshot=limit,
                state_topic_prune_interval_ms=interval,
                cold_partition_snapshot_interval_ms=interval * 3,
                write_timeout_ms=20,
            )
        )
        self.prunes = prunes
        self.compacts = compacts
        self.epochs = 0

    def fields(self, kind: Any, key: SharePartitionKey) -> dict[str, Any]:
        rng, known = self.rng, self.model.known.get(key)
        self.epochs += rng.random() < 0.05
        leader, state = max(0, self.epochs - rng.randrange(2)), max(0, self.epochs - rng.randrange(3))
        start = known.start_offset if known else 0
        if kind is Initialize:
            return {"state_epoch": state, "start_offset": rng.choice((-1, start, start + rng.randrange(5)))}
        if kind in (Read, Summary):
            return {"leader_epoch": leader}
        if kind is Delete:
            return {}
        state_batches = []
        for _ in range(rng.randrange(4)):
            first = max(0, start + rng.randrange(-3, 25))
            state_batches.append(StateBatch(first, first + rng.randrange(8), rng.choice((0, 2, 4)), rng.randint(1, 4)))
        return {
            "state_epoch": max(state, known.state_fence if known and rng.random() < 0.9 else 0),
            "leader_epoch": max(leader, known.leader_fence if known and rng.random() < 0.9 else 0),
            "start_offset": rng.choice((-1, start - 1, start, start, start + rng.randrange(6))),
            "delivery_complete_count": rng.randint(-1, 9),
            "state_batches": tuple(state_batches),
        }

    def step(self) -> None:
        """One request with a random outcome of its append, if it has one."""
        stage, rng = self.stage, self.rng
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        key = rng.choice(KEYS)
        fields = self.fields(kind, key)
        expected = self.model.error(kind, key, fields)
        answer = self.model.answer(kind, key)
        stage.holding = True
        request_id = stage.send(named(kind, key, **fields))
        outcome = rng.choices(("commit", "fail", "late", "lost"), (85, 5, 5, 5))[0] if stage.held else "unwritten"
        committed = getattr(self, outcome)()
        stage.holding = False
        if outcome in ("commit", "unwritten") or expected:
            (topic,) = stage.answers[request_id].results
            assert topic.partitions[0].error_code is expected, (kind, key, fields)
            assert expected or fields_of(kind, topic.partitions[0]) == answer, (kind, key, fields)
        if committed and not expected:
            self.model.apply(kind, key, fields)
        if outcome == "lost":
            self.fail_over()
        stage.wait(rng.randrange(4))
        while stage.deletions:
            stage.delete_records(rng.choice((Errors.NONE, Errors.NOT_COORDINATOR)))

    # ---- outcomes of an append; True if its records are in the log ---------------------------------------------------

    def unwritten(self) -> bool:
        return False

    def commit(self) -> bool:
        self.stage.release()
        return True

    def fail(self) -> bool:
        self.stage.release(Errors.NOT_ENOUGH_REPLICAS)
        return False

    def late(self) -> bool:
        """The append times out, then succeeds or fails."""
        self.stage.wait(20)
        succeeds = self.rng.random() < 0.5
        while self.stage.held:
            self.stage.release(Errors.NONE if succeeds else Errors.NOT_ENOUGH_REPLICAS)
        return succeeds

    def lost(self) -> bool:
        """The broker fails before or after the append; the request is not answered."""
        (append,) = self.stage.held
        committed = self.rng.random() < 0.5
        if committed:
            self.stage.append(append, Errors.NONE)
        return committed

    # ---- failover ----------------------------------------------------------------------------------------------------

    def shard(self) -> StateShard:
        shard = self.stage.coordinator._runtime.shard(0)
        assert shard is not None
        return shard

    def fail_over(self) -> None:
        """Start a new coordinator. With a pruned or compacted log its fences may be lower than those of the model."""
        if self.compacts and 0 in self.stage.logs:
            self.stage.compact(0, self.rng.randrange(len(self.stage.logs[0]) + 1))
        self.stage.start()
        found = self.shard().states
        if self.prunes or self.compacts:
            assert found.keys() == self.model.known.keys()
            for key, state in found.items():
                known = self.model.known[key]
                assert state.leader_epoch <= state.leader_epoch_fence <= known.leader_fence
                known.leader_fence, known.state_fence = state.leader_epoch_fence, state.state_epoch_fence
        self.check()

    def check(self) -> None:
        """The coordinator's state equals the model's."""
        found = self.shard().states
        assert found.keys() == self.model.known.keys()
        for key, state in found.items():
            known = self.model.known[key]
            assert state.state_batches == known.runs()
            assert (state.start_offset, state.delivery_complete_count) == (known.start_offset, known.count)
            assert (state.state_epoch, state.leader_epoch) == (known.state_epoch, known.leader_epoch)
            assert (state.leader_epoch_fence, state.state_epoch_fence) == (known.leader_fence, known.state_fence)


@pytest.mark.parametrize("limit", [0, 3, 500], ids=lambda limit: f"limit {limit}")
@pytest.mark.parametrize("log", ["whole", "pruned", "compacted"])
def test_responses_and_state_equal_the_model(seed: int, log: str, limit: int) -> None:
    driver = Driver(random.Random(seed + limit), prunes=log == "pruned", compacts=log == "compacted", limit=limit)
    for _ in range(STEPS // 6):
        driver.step()
    driver.check()
    driver.fail_over()
    if log == "pruned" and limit < 500:
        assert driver.stage.starts.get(0, 0) > 0, "something was pruned"
    if log == "compacted":
        assert driver.stage.removed[0], "something was removed"


# ---- a compacted topic: few delta indices, epochs that wrap, and mutants of the rules --------------------------------


def run_with_few_indices(seed: int) -> None:
    """A run in which delta indices are used up and checkpoint epochs begin again at 0."""
    rng = random.Random(seed)
    driver = Driver(rng, compacts=True, limit=rng.choice((3, 500)))
    for key in KEYS:
        driver.stage.logs.setdefault(0, []).append(encode_state_record(StateSnapshot(key, 65_533, 0, 0, 0, 0, 0)))
        driver.model.known[key] = Known(0, 0, -1)
    driver.fail_over()
    for _ in range(300):
        driver.step()
    driver.fail_over()


def mutant(monkeypatch: pytest.MonkeyPatch, shard: type[CompactedShard]) -> None:
    """Let coordinators have this shard, with spans that begin at 2."""
    monkeypatch.setattr(shard, "first_span", 2)
    monkeypatch.setattr("shareq.coordinator.share_state.coordinator.CompactedShard", shard)


@pytest.mark.parametrize("run", range(10))
def test_few_delta_indices_and_wrapping_epochs_lose_nothing(
    seed: int, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEHAVIOUR.md 35 to 37."""
    mutant(monkeypatch, CompactedShard)
    run_with_few_indices(seed + run)


class Unguarded(CompactedShard):
    """Indices are used again without a checkpoint: compaction removes deltas that count."""

    def next_record(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> StateRecord:
        self.indices[key].used.clear()
        return super().next_record(key, change, now_ms)


class Ghosts(CompactedShard):
    """A deletion leaves the deltas, and deltas without a checkpoint make a state, as updates do on the state topic."""

    def deletion(self, key: SharePartitionKey) -> list[StateRecord]:
        return super().deletion(key)[:1]

    def _replay_update(self, record: StateUpdate) -> None:
        super()._replay_update(record._replace(delta_index=NO_INDEX))


def many_runs() -> None:
    for run in range(100):
        run_with_few_indices(run)


@pytest.mark.parametrize("shard", [Unguarded, Ghosts])
def test_the_rules_of_a_compacted_topic_are_needed(
    shard: type[CompactedShard], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEHAVIOUR.md 35, 36: these mutants lose or invent states."""
    mutant(monkeypatch, shard)
    with pytest.raises(AssertionError):
        many_runs()


def end_random_append(stage: Stage, rng: random.Random) -> None:
    """Commit or fail a random append under way."""
    error = rng.choice((Errors.NONE, Errors.NONE, Errors.NOT_ENOUGH_REPLICAS, Errors.MESSAGE_TOO_LARGE))
    stage.release(error, rng.randrange(len(stage.held)))


def test_each_concurrent_request_has_one_response_and_failover_keeps_the_state(seed: int) -> None:
    rng = random.Random(seed)
    stage = Stage(image(topic_image("t", TOPIC, 3), state_partitions=2, snapshot_update_records_per_snapshot=4))
    driver = Driver(rng, limit=4)
    stage.holding = True
    for _ in range(STEPS // 2):
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        key = rng.choice(KEYS)
        stage.send(named(kind, key, **driver.fields(kind, key)))
        event = rng.random()
        if event < 0.7 and stage.held:
            end_random_append(stage, rng)
        elif event < 0.75:
            stage.wait(rng.randrange(6000))
        elif event < 0.76:
            lost = rng.randrange(2)
            stage.held = [append for append in stage.held if append.topic_partition.partition != lost]
            stage.elect(lost)
    while stage.held:
        end_random_append(stage, rng)
    assert stage.answers.keys() == set(range(1, stage.last_id + 1))
    before = states_of(stage)
    stage.start()
    assert states_of(stage) == before


def states_of(stage: Stage) -> dict[int, dict[SharePartitionKey, KeyState]]:
    return {partition: shard.states for partition, shard in stage.coordinator._runtime.active()}
