"""The shard runtime: the lifecycle of shards, and the turns of workflows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from shareq.coordinator.runtime.runtime import RETRY_MS, ShardRuntime
from shareq.coordinator.runtime.shard import (
    TRANSITIONS,
    ShardEvent,
    ShardState,
    UnreadableRecordError,
    coordinator_error,
)
from shareq.coordinator.runtime.turn import NO_PARTITION, Append, BackgroundTurn, Retry, Turn
from shareq.model.actor import (
    Answer,
    Appended,
    AppendRecords,
    Call,
    Effect,
    Persist,
    ReadRecords,
    RecordsRead,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.events import CoordinatorLoaded, GroupDeleted
from shareq.model.ids import TopicPartition
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Pause, Reply, Send, SendToPersister, Workflow

CLOSED, LOADING, ACTIVE, FAILED = ShardState
ELECTED, LOADED, LOAD_FAILED, RESIGNED = ShardEvent


class LineShard:
    """A shard that stores the values of its records, in order."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.lines: list[tuple[int, bytes]] = []

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        if value is None:
            raise UnreadableRecordError("the value of a line is null")
        self.lines.append((offset, value))


class RuntimeStage:
    """A runtime of `LineShard`s; collects its effects and the results of workflows (name, result, time)."""

    def __init__(self, *, traced: bool = False) -> None:
        self.shards: list[LineShard] = []
        self.at_first: list[Workflow[None]] = []
        self.runtime: ShardRuntime[LineShard] = ShardRuntime(
            "log", self._make, lambda partition, shard: self.at_first, traced=traced
        )
        self.effects: list[Effect] = []
        self.answers: list[tuple[str, object, int]] = []

    def _make(self, partition: int) -> LineShard:
        shard = LineShard(partition)
        self.shards.append(shard)
        return shard

    def handle(self, message: Any, now_ms: int = 0) -> list[Effect]:
        effects = self.runtime.handle(message, now_ms)
        self.effects += effects
        return effects

    def elect(self, partition: int = 0, epoch: int = 0) -> int:
        """Elect a shard; returns the id of its first read."""
        (read,) = [e for e in self.handle(ShardElected(partition, epoch)) if isinstance(e, ReadRecords)]
        assert (read.topic_partition, read.offset) == (TopicPartition("log", partition), 0)
        return read.id

    def lead(self, partition: int = 0, epoch: int = 0) -> None:
        self.handle(RecordsRead(self.elect(partition, epoch), Errors.NONE, (), 0, True))

    def work(self, name: str, *lines: str, partition: int = 0, then: Any = None) -> Workflow[object]:
        """A workflow that appends lines. The result is the lines before that, or an error. `then` is started at the
        end."""
        shard = yield Turn(partition, lambda error: error)
        seen = [value.decode() for _, value in shard.lines]
        error = yield Append([CoordinatorRecord(b"", line.encode()) for line in lines])
        if error:
            return error
        if lines:
            self.runtime.effects.append(GroupDeleted(name))
        if then:
            self.runtime.start(then, self.note("follow-up"))
        return seen

    def note(self, name: str) -> Callable[[object], None]:
        """A callback that stores the result of a workflow."""
        return lambda result: self.answers.append((name, result, self.runtime.now_ms))

    def schedule(self, name: str, *lines: str, partition: int = 0, now_ms: int = 0, then: Any = None) -> None:
        self.runtime.now_ms = now_ms
        self.runtime.start(self.work(name, *lines, partition=partition, then=then), self.note(name))
        self.effects += self.runtime.take_effects()

    def schedule_background(self, name: str, *lines: str, now_ms: int = 0, errors: Iterable[Errors] = ()) -> None:
        """Start a background workflow that appends lines after failing with `errors`."""
        pending = list(errors)

        def work() -> Workflow[Errors]:
            shard = yield BackgroundTurn(0, lambda error: error)
            while True:
                assert isinstance(shard, LineShard)
                if pending:
                    error = pending.pop(0)
                else:
                    error = yield Append([CoordinatorRecord(b"", line.encode()) for line in lines])
                if not error:
                    return Errors.NONE
                shard = yield Retry()

        self.runtime.now_ms = now_ms
        self.runtime.start(work(), self.note(name))
        self.effects += self.runtime.take_effects()

    def appends(self) -> list[AppendRecords]:
        """The appends requested since the last call."""
        found = [effect for effect in self.effects if isinstance(effect, AppendRecords)]
        self.effects = [effect for effect in self.effects if not isinstance(effect, AppendRecords)]
        return found

    def settle(self, append: AppendRecords, error: Errors = Errors.NONE, base: int = 0, now_ms: int = 0) -> None:
        self.handle(Appended(append.id, error, base), now_ms)


# ---- states ----------------------------------------------------------------------------------------------------------

EXPECTED = {
    (CLOSED, ELECTED): LOADING,
    (LOADING, LOADED): ACTIVE,
    (LOADING, LOAD_FAILED): FAILED,
    (LOADING, RESIGNED): CLOSED,
    (ACTIVE, RESIGNED): CLOSED,
    (FAILED, RESIGNED): CLOSED,
}


@pytest.mark.parametrize(
    ("state", "event"), [pytest.param(*pair, id=f"{pair[0]}, {pair[1]}") for pair in product(ShardState, ShardEvent)]
)
def test_next_state_of_each_state_and_event(state: ShardState, event: ShardEvent) -> None:
    assert TRANSITIONS.get((state, event)) == EXPECTED.get((state, event))


def in_state(state: ShardState) -> tuple[RuntimeStage, int]:
    """A stage whose shard 0 is in `state`, and the id of its read; -1 if there is none."""
    stage = RuntimeStage()
    read = -1
    if state is not CLOSED:
        read = stage.elect()
    if state in (ACTIVE, FAILED):
        stage.handle(RecordsRead(read, Errors.NONE if state is ACTIVE else Errors.CORRUPT_MESSAGE, (), 0, True))
    return stage, read


@pytest.mark.parametrize(
    ("state", "refusal"),
    [
        pytest.param(CLOSED, Errors.NOT_COORDINATOR, id="closed"),
        pytest.param(LOADING, Errors.COORDINATOR_LOAD_IN_PROGRESS, id="loading"),
        pytest.param(ACTIVE, Errors.NONE, id="active"),
        pytest.param(FAILED, Errors.NOT_COORDINATOR, id="failed"),
    ],
)
def test_only_an_active_shard_serves_turns(state: ShardState, refusal: Errors) -> None:
    stage, _ = in_state(state)
    assert (stage.runtime.state(0), stage.runtime.refusal(0)) == (state, refusal)
    stage.schedule("read")
    assert stage.answers == [("read", refusal or [], 0)]
    assert [p for p, _ in stage.runtime.active()] == ([0] if state is ACTIVE else [])
    assert (stage.runtime.shard(0) is None) == (state is not ACTIVE)


@pytest.mark.parametrize("state", ShardState)
def test_only_a_higher_leader_epoch_loads_the_shard_again(state: ShardState) -> None:
    stage, _ = in_state(state)
    if state is not CLOSED:
        assert stage.handle(ShardElected(0, 0)) == []
        assert stage.runtime.state(0) is state
    stage.elect(epoch=1)
    assert stage.runtime.state(0) is LOADING


@pytest.mark.parametrize("state", ShardState)
def test_stale_reads_and_appends_are_ignored(state: ShardState) -> None:
    stage, read = in_state(state)
    stale = read if state in (ACTIVE, FAILED) else 999
    assert stage.handle(RecordsRead(stale, Errors.NONE, [(0, b"", None)], 1, True)) == []
    assert stage.handle(Appended(998, Errors.NONE, 0)) == []
    assert stage.runtime.state(0) is state


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_log_is_loaded_in_chunks() -> None:
    stage = RuntimeStage(traced=True)
    read = stage.elect(partition=7)
    (following,) = stage.handle(RecordsRead(read, Errors.NONE, [(3, b"", b"a"), (4, b"", b"b")], 6, False))
    assert isinstance(following, ReadRecords)
    assert (following.topic_partition, following.offset) == (TopicPartition("log", 7), 6)
    loaded = stage.handle(RecordsRead(following.id, Errors.NONE, [(6, b"", b"c")], 7, True))
    assert loaded == [CoordinatorLoaded("log", 7, 3)]
    assert stage.shards[0].lines == [(3, b"a"), (4, b"b"), (6, b"c")]


def test_unreadable_record_fails_the_load_until_the_next_election() -> None:
    stage = RuntimeStage()
    stage.handle(RecordsRead(stage.elect(), Errors.NONE, [(0, b"", b"a"), (1, b"", None)], 2, True))
    assert stage.runtime.state(0) is FAILED
    stage.lead(epoch=1)
    assert stage.runtime.state(0) is ACTIVE
    assert stage.runtime.shard(0) is stage.shards[1]


def test_read_of_an_earlier_leader_epoch_is_ignored() -> None:
    stage = RuntimeStage()
    early = stage.elect()
    late = stage.elect(epoch=1)
    stage.handle(RecordsRead(early, Errors.NONE, [(0, b"", None)], 1, True))
    assert stage.runtime.state(0) is LOADING
    stage.handle(RecordsRead(late, Errors.NONE, (), 0, True))
    assert stage.runtime.state(0) is ACTIVE


def test_workflows_of_on_load_run_first() -> None:
    stage = RuntimeStage()
    results: list[object] = []
    stage.at_first = [
        append_result(stage.work("first", "x"), results),
        append_result(stage.work("second"), results),
    ]
    stage.lead()
    stage.schedule("third")
    (append,) = stage.appends()
    stage.settle(append)
    assert (results, stage.answers) == ([[], ["x"]], [("third", ["x"], 0)])


def append_result(work: Workflow[object], results: list[object]) -> Workflow[None]:
    results.append((yield from work))


# ---- turns -----------------------------------------------------------------------------------------------------------


def test_workflow_resumes_after_its_records_are_committed_and_replayed() -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule("write", "a", "b")
    (append,) = stage.appends()
    assert append.topic_partition == TopicPartition("log", 0)
    assert [record.value for record in append.records] == [b"a", b"b"]
    assert stage.shards[0].lines == []
    assert stage.answers == []
    stage.settle(append, base=40, now_ms=9)
    assert stage.shards[0].lines == [(40, b"a"), (41, b"b")]
    assert stage.answers == [("write", [], 9)]
    assert stage.effects[-1] == GroupDeleted("write")


def test_failed_append_changes_nothing() -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule("write", "a")
    stage.schedule("read")
    stage.settle(stage.appends()[0], Errors.NOT_ENOUGH_REPLICAS)
    assert stage.shards[0].lines == []
    assert stage.answers == [("write", Errors.COORDINATOR_NOT_AVAILABLE, 0), ("read", [], 0)]
    assert GroupDeleted("write") not in stage.effects


def test_turns_run_one_at_a_time_in_the_order_of_requests() -> None:
    stage = RuntimeStage()
    stage.lead()
    for name, lines in (("one", ["a"]), ("two", ["b"]), ("three", []), ("four", ["c"])):
        stage.schedule(name, *lines)
    names = []
    while appends := stage.appends():
        (append,) = appends
        names.append(append.records[0].value)
        stage.settle(append)
    assert names == [b"a", b"b", b"c"]
    assert stage.answers == [("one", [], 0), ("two", ["a"], 0), ("three", ["a", "b"], 0), ("four", ["a", "b"], 0)]


def test_shards_are_independent() -> None:
    stage = RuntimeStage()
    stage.lead(0)
    stage.lead(1)
    stage.schedule("here", "a", partition=0)
    stage.schedule("there", "b", partition=1)
    first, second = stage.appends()
    stage.settle(second)
    assert [name for name, _, _ in stage.answers] == ["there"]
    stage.settle(first)
    assert [name for name, _, _ in stage.answers] == ["there", "here"]


def test_workflow_started_by_another_waits_for_its_turn() -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule("one", "a", then=stage.work("follow-up", "c"))
    stage.schedule("two", "b")
    for _ in range(3):
        (append,) = stage.appends()
        stage.settle(append)
    assert stage.answers == [("one", [], 0), ("two", ["a"], 0), ("follow-up", ["a", "b"], 0)]


# ---- time and leadership ---------------------------------------------------------------------------------------------


def test_slow_append_is_answered_at_the_deadline_and_applied_later() -> None:
    stage = RuntimeStage()
    stage.runtime.write_timeout_ms = 100
    stage.lead()
    stage.schedule("slow", "a", now_ms=10)
    (append,) = stage.appends()
    assert stage.runtime.wake_at_ms == 110
    assert stage.handle(Tick(), 109) == []
    stage.handle(Tick(), 110)
    assert stage.answers == [("slow", Errors.COORDINATOR_NOT_AVAILABLE, 110)]
    assert stage.runtime.wake_at_ms is None
    stage.settle(append, now_ms=200)
    assert stage.shards[0].lines == [(0, b"a")]
    assert stage.effects[-1] == GroupDeleted("slow"), "the code after the append runs after the commit"
    assert len(stage.answers) == 1


def test_turn_that_times_out_in_the_queue_does_not_begin() -> None:
    stage = RuntimeStage()
    stage.runtime.write_timeout_ms = 100
    stage.lead()
    stage.schedule("slow", "a", now_ms=0)
    stage.schedule("queued", "b", now_ms=50)
    stage.schedule("patient", "c", now_ms=60)
    (append,) = stage.appends()
    stage.handle(Tick(), 155)
    assert stage.runtime.wake_at_ms == 160
    stage.settle(append, now_ms=156)
    (following,) = stage.appends()
    assert [record.value for record in following.records] == [b"c"]
    assert [name for name, _, _ in stage.answers] == ["slow", "queued"]


def test_a_turn_may_have_a_time_out_of_its_own() -> None:
    stage = RuntimeStage()
    stage.runtime.write_timeout_ms = 100
    stage.lead()

    def patient() -> Workflow[object]:
        yield Turn(0, lambda error: error, 300)
        return (yield Append([CoordinatorRecord(b"", b"a")]))

    stage.runtime.start(patient(), stage.note("patient"))
    stage.schedule("queued", "b")
    assert stage.runtime.wake_at_ms == 100
    stage.handle(Tick(), 100)
    assert stage.runtime.wake_at_ms == 300
    stage.handle(Tick(), 300)
    assert stage.answers == [
        ("queued", Errors.COORDINATOR_NOT_AVAILABLE, 100),
        ("patient", Errors.COORDINATOR_NOT_AVAILABLE, 300),
    ]


# ---- background turns ------------------------------------------------------------------------------------------------


def test_background_turn_has_no_deadline() -> None:
    stage = RuntimeStage()
    stage.runtime.write_timeout_ms = 100
    stage.lead()
    stage.schedule("slow", "a", now_ms=0)
    stage.schedule_background("background", "b", now_ms=0)
    (append,) = stage.appends()
    stage.handle(Tick(), 100)
    assert stage.runtime.wake_at_ms is None
    stage.settle(append, now_ms=3_600_000)
    stage.settle(stage.appends()[0], now_ms=3_600_001)
    assert stage.shards[0].lines == [(0, b"a"), (0, b"b")]
    assert stage.answers == [("slow", Errors.COORDINATOR_NOT_AVAILABLE, 100), ("background", Errors.NONE, 3_600_001)]


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR, Errors.MESSAGE_TOO_LARGE])
def test_background_turn_is_repeated_until_its_append_succeeds(error: Errors) -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule_background("background", "a")
    now_ms = 0
    for _ in range(3):
        stage.settle(stage.appends()[0], error, now_ms=now_ms)
        assert stage.runtime.wake_at_ms == now_ms + RETRY_MS
        stage.handle(Tick(), now_ms + RETRY_MS - 1)
        assert stage.appends() == []
        now_ms += RETRY_MS
        stage.handle(Tick(), now_ms)
    stage.settle(stage.appends()[0], now_ms=now_ms)
    assert stage.shards[0].lines == [(0, b"a")]
    assert stage.answers == [("background", Errors.NONE, now_ms)]
    assert stage.runtime.wake_at_ms is None


def test_background_turn_is_repeated_without_an_append() -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule_background("background", errors=[Errors.CONCURRENT_TRANSACTIONS])
    assert (stage.answers, stage.runtime.wake_at_ms) == ([], RETRY_MS)
    stage.handle(Tick(), RETRY_MS)
    assert stage.answers == [("background", Errors.NONE, RETRY_MS)]


def test_other_turns_run_during_the_backoff_of_a_background_turn() -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule_background("background", "a")
    stage.settle(stage.appends()[0], Errors.KAFKA_STORAGE_ERROR)
    stage.schedule("client", "b", now_ms=1)
    stage.settle(stage.appends()[0], now_ms=1)
    assert stage.answers == [("client", [], 1)]


@pytest.mark.parametrize("loss", [ShardResigned(0), ShardElected(0, 5)], ids=["resigned", "re-elected"])
@pytest.mark.parametrize("waits", ["in the queue", "to be repeated"])
def test_lost_leadership_ends_a_background_turn(loss: ShardElected | ShardResigned, waits: str) -> None:
    stage = RuntimeStage()
    stage.lead()
    if waits == "in the queue":
        stage.schedule("slow", "x")
        stage.schedule_background("background", "a")
    else:
        stage.schedule_background("background", "a")
        stage.settle(stage.appends()[0], Errors.KAFKA_STORAGE_ERROR)
    stage.handle(loss, 7)
    assert stage.answers[-1] == ("background", Errors.NOT_COORDINATOR, 7)
    assert stage.runtime.wake_at_ms is None
    stage.appends()
    stage.handle(Tick(), 10_000)
    assert stage.appends() == []


def test_early_tick_has_no_effect() -> None:
    stage = RuntimeStage()
    assert stage.handle(Tick()) == []
    assert stage.runtime.wake_at_ms is None


@pytest.mark.parametrize("loss", [ShardResigned(0), ShardElected(0, 5)], ids=["resigned", "re-elected"])
def test_lost_leadership_ends_all_turns(loss: ShardElected | ShardResigned) -> None:
    stage = RuntimeStage()
    stage.lead()
    stage.schedule("under way", "a")
    stage.schedule("queued")
    (append,) = stage.appends()
    stage.handle(loss, 7)
    assert stage.answers == [("under way", Errors.NOT_COORDINATOR, 7), ("queued", Errors.NOT_COORDINATOR, 7)]
    assert stage.runtime.wake_at_ms is None
    stage.settle(append)
    assert stage.shards[0].lines == []
    assert len(stage.answers) == 2


def test_resignation_of_an_unknown_partition_has_no_effect() -> None:
    assert RuntimeStage().handle(ShardResigned(3)) == []


def test_turn_without_a_topic_is_refused() -> None:
    stage = RuntimeStage()
    stage.schedule("early", partition=NO_PARTITION)
    assert stage.answers == [("early", Errors.COORDINATOR_NOT_AVAILABLE, 0)]


def test_waiting_for_a_reply_ends_the_turn() -> None:
    stage = RuntimeStage()
    stage.lead()

    def work() -> Workflow[object]:
        shard = yield Turn(0, lambda error: error)
        reply = yield Send(3, MetadataRequest())
        return len(shard.lines), reply

    stage.runtime.start(work(), stage.note("request"))
    (call,) = stage.runtime.take_effects()
    assert isinstance(call, Call)
    stage.schedule("write", "a")
    stage.settle(stage.appends()[0])
    stage.handle(Answer(call.id, None, Errors.NETWORK_EXCEPTION, "gone"))
    stage.handle(Answer(call.id, None, Errors.NONE))
    assert stage.answers == [("write", [], 0), ("request", (1, Reply(None, Errors.NETWORK_EXCEPTION, "gone")), 0)]


def test_workflow_takes_several_turns() -> None:
    stage = RuntimeStage()
    stage.lead()

    def work() -> Workflow[object]:
        first = yield from stage.work("one", "a")
        second = yield from stage.work("two", "b")
        return first, second

    stage.runtime.start(work(), stage.note("both"))
    stage.effects += stage.runtime.take_effects()
    stage.schedule("between")
    stage.settle(stage.appends()[0])
    stage.settle(stage.appends()[0])
    assert stage.answers == [("between", ["a"], 0), ("both", ([], ["a"]), 0)]


def test_concurrent_workflows_have_separate_results() -> None:
    stage = RuntimeStage()
    stage.lead(0)

    def work() -> Workflow[object]:
        return (yield [stage.work("here", partition=0), stage.work("there", partition=1)])

    stage.runtime.start(work(), stage.note("both"))
    assert stage.answers == [("both", [[], Errors.NOT_COORDINATOR], 0)]


def test_pause_ends_after_its_duration_or_with_end_pauses() -> None:
    stage = RuntimeStage()

    def work() -> Workflow[str]:
        yield Pause(100)
        yield Pause(1000)
        reply = yield SendToPersister(MetadataRequest())
        return str(reply.error)

    stage.runtime.start(work(), stage.note("pausing"))
    assert stage.runtime.wake_at_ms == 100
    stage.handle(Tick(), 99)
    stage.handle(Tick(), 100)
    assert stage.runtime.wake_at_ms == 1100
    stage.runtime.end_pauses()
    assert stage.runtime.wake_at_ms is None
    (persist,) = stage.runtime.take_effects()
    assert isinstance(persist, Persist)


def test_ids_of_effects_are_unique() -> None:
    stage = RuntimeStage()
    stage.lead(0)
    stage.lead(1)
    stage.schedule("a", "a", partition=0)
    stage.schedule("b", "b", partition=1)
    ids = [effect.id for effect in stage.effects if isinstance(effect, ReadRecords | AppendRecords)]
    assert len({*ids, stage.runtime.next_id()}) == 5


@pytest.mark.parametrize("error", Errors)
def test_each_log_error_is_translated_for_the_client(error: Errors) -> None:
    mapped = coordinator_error(error)
    assert mapped is error or mapped in {
        Errors.UNKNOWN_SERVER_ERROR,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    }
