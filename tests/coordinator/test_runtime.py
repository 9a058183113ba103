"""The life of shards, and the workflows that take turns at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from shareq.coordinator.runtime import RETRY_MS, ShardRuntime
from shareq.coordinator.shard import (
    TRANSITIONS,
    ShardEvent,
    ShardState,
    UnreadableRecordError,
    coordinator_error,
)
from shareq.coordinator.turn import NO_PARTITION, Append, BackgroundTurn, Retry, Turn
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
from shareq.model.workflow import Ask, AskPersister, Pause, Reply, Workflow

CLOSED, LOADING, ACTIVE, FAILED = ShardState
ELECTED, LOADED, LOAD_FAILED, RESIGNED = ShardEvent


class Notebook:
    """A shard that keeps the values of its records, in order."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.lines: list[tuple[int, bytes]] = []

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        if value is None:
            raise UnreadableRecordError("a line is not null")
        self.lines.append((offset, value))


class Desk:
    """A runtime of notebooks, with everything that came out of it."""

    def __init__(self, *, traced: bool = False) -> None:
        self.shards: list[Notebook] = []
        self.at_first: list[Workflow[None]] = []
        self.runtime: ShardRuntime[Notebook] = ShardRuntime(
            "log", self._make, lambda partition, shard: self.at_first, traced=traced
        )
        self.effects: list[Effect] = []
        self.answers: list[tuple[str, object, int]] = []

    def _make(self, partition: int) -> Notebook:
        shard = Notebook(partition)
        self.shards.append(shard)
        return shard

    def handle(self, message: Any, now_ms: int = 0) -> list[Effect]:
        effects = self.runtime.handle(message, now_ms)
        self.effects += effects
        return effects

    def elect(self, partition: int = 0, epoch: int = 0) -> int:
        """Answers the id of the first read."""
        (read,) = [e for e in self.handle(ShardElected(partition, epoch)) if isinstance(e, ReadRecords)]
        assert (read.topic_partition, read.offset) == (TopicPartition("log", partition), 0)
        return read.id

    def lead(self, partition: int = 0, epoch: int = 0) -> None:
        self.handle(RecordsRead(self.elect(partition, epoch), Errors.NONE, (), 0, True))

    def work(self, name: str, *lines: str, partition: int = 0, then: Any = None) -> Workflow[object]:
        """Writes lines; the result is all lines that it saw, or an error. `then` is started when it is done."""
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
        """Takes the result of a workflow down."""
        return lambda result: self.answers.append((name, result, self.runtime.now_ms))

    def schedule(self, name: str, *lines: str, partition: int = 0, now_ms: int = 0, then: Any = None) -> None:
        self.runtime.now_ms = now_ms
        self.runtime.start(self.work(name, *lines, partition=partition, then=then), self.note(name))
        self.effects += self.runtime.take_effects()

    def schedule_background(self, name: str, *lines: str, now_ms: int = 0, errors: Iterable[Errors] = ()) -> None:
        """Background work that writes lines, once its attempts have met `errors`."""
        pending = list(errors)

        def work() -> Workflow[Errors]:
            shard = yield BackgroundTurn(0, lambda error: error)
            while True:
                assert isinstance(shard, Notebook)
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
        """Appends that have been asked for since the last look."""
        found = [effect for effect in self.effects if isinstance(effect, AppendRecords)]
        self.effects = [effect for effect in self.effects if not isinstance(effect, AppendRecords)]
        return found

    def settle(self, append: AppendRecords, error: Errors = Errors.NONE, base: int = 0, now_ms: int = 0) -> None:
        self.handle(Appended(append.id, error, base), now_ms)


# ---- the table -------------------------------------------------------------------------------------------------------

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
def test_every_state_and_event(state: ShardState, event: ShardEvent) -> None:
    assert TRANSITIONS.get((state, event)) == EXPECTED.get((state, event))


def in_state(state: ShardState) -> tuple[Desk, int]:
    """A desk whose shard 0 is in `state`, and the id of its read, if any."""
    desk = Desk()
    read = -1
    if state is not CLOSED:
        read = desk.elect()
    if state in (ACTIVE, FAILED):
        desk.handle(RecordsRead(read, Errors.NONE if state is ACTIVE else Errors.CORRUPT_MESSAGE, (), 0, True))
    return desk, read


@pytest.mark.parametrize(
    ("state", "refusal"),
    [
        pytest.param(CLOSED, Errors.NOT_COORDINATOR, id="closed"),
        pytest.param(LOADING, Errors.COORDINATOR_LOAD_IN_PROGRESS, id="loading"),
        pytest.param(ACTIVE, Errors.NONE, id="active"),
        pytest.param(FAILED, Errors.NOT_COORDINATOR, id="failed"),
    ],
)
def test_only_an_active_shard_has_turns(state: ShardState, refusal: Errors) -> None:
    desk, _ = in_state(state)
    assert (desk.runtime.state(0), desk.runtime.refusal(0)) == (state, refusal)
    desk.schedule("read")
    assert desk.answers == [("read", refusal or [], 0)]
    assert [p for p, _ in desk.runtime.active()] == ([0] if state is ACTIVE else [])
    assert (desk.runtime.shard(0) is None) == (state is not ACTIVE)


@pytest.mark.parametrize("state", ShardState)
def test_a_higher_epoch_loads_anew_and_no_other_does(state: ShardState) -> None:
    desk, _ = in_state(state)
    if state is not CLOSED:
        assert desk.handle(ShardElected(0, 0)) == []
        assert desk.runtime.state(0) is state
    desk.elect(epoch=1)
    assert desk.runtime.state(0) is LOADING


@pytest.mark.parametrize("state", ShardState)
def test_a_read_that_nobody_waits_for_changes_nothing(state: ShardState) -> None:
    desk, read = in_state(state)
    stale = read if state in (ACTIVE, FAILED) else 999
    assert desk.handle(RecordsRead(stale, Errors.NONE, [(0, b"", None)], 1, True)) == []
    assert desk.handle(Appended(998, Errors.NONE, 0)) == []
    assert desk.runtime.state(0) is state


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_loading_goes_chunk_by_chunk() -> None:
    desk = Desk(traced=True)
    read = desk.elect(partition=7)
    (following,) = desk.handle(RecordsRead(read, Errors.NONE, [(3, b"", b"a"), (4, b"", b"b")], 6, False))
    assert isinstance(following, ReadRecords)
    assert (following.topic_partition, following.offset) == (TopicPartition("log", 7), 6)
    loaded = desk.handle(RecordsRead(following.id, Errors.NONE, [(6, b"", b"c")], 7, True))
    assert loaded == [CoordinatorLoaded("log", 7, 3)]
    assert desk.shards[0].lines == [(3, b"a"), (4, b"b"), (6, b"c")]


def test_an_unreadable_record_fails_the_load_until_the_next_election() -> None:
    desk = Desk()
    desk.handle(RecordsRead(desk.elect(), Errors.NONE, [(0, b"", b"a"), (1, b"", None)], 2, True))
    assert desk.runtime.state(0) is FAILED
    desk.lead(epoch=1)
    assert desk.runtime.state(0) is ACTIVE
    assert desk.runtime.shard(0) is desk.shards[1]


def test_a_read_of_an_earlier_term_is_ignored() -> None:
    desk = Desk()
    early = desk.elect()
    late = desk.elect(epoch=1)
    desk.handle(RecordsRead(early, Errors.NONE, [(0, b"", None)], 1, True))
    assert desk.runtime.state(0) is LOADING
    desk.handle(RecordsRead(late, Errors.NONE, (), 0, True))
    assert desk.runtime.state(0) is ACTIVE


def test_what_a_loaded_shard_begins_with_runs_before_anything_else() -> None:
    desk = Desk()
    results: list[object] = []
    desk.at_first = [noted(desk.work("first", "x"), results), noted(desk.work("second"), results)]
    desk.lead()
    desk.schedule("third")
    (append,) = desk.appends()
    desk.settle(append)
    assert (results, desk.answers) == ([[], ["x"]], [("third", ["x"], 0)])


def noted(work: Workflow[object], results: list[object]) -> Workflow[None]:
    results.append((yield from work))


# ---- operations ------------------------------------------------------------------------------------------------------


def test_a_workflow_goes_on_when_its_records_are_committed_and_replayed() -> None:
    desk = Desk()
    desk.lead()
    desk.schedule("write", "a", "b")
    (append,) = desk.appends()
    assert append.topic_partition == TopicPartition("log", 0)
    assert [record.value for record in append.records] == [b"a", b"b"]
    assert desk.shards[0].lines == []
    assert desk.answers == []
    desk.settle(append, base=40, now_ms=9)
    assert desk.shards[0].lines == [(40, b"a"), (41, b"b")]
    assert desk.answers == [("write", [], 9)]
    assert desk.effects[-1] == GroupDeleted("write")


def test_a_failed_append_changes_nothing() -> None:
    desk = Desk()
    desk.lead()
    desk.schedule("write", "a")
    desk.schedule("read")
    desk.settle(desk.appends()[0], Errors.NOT_ENOUGH_REPLICAS)
    assert desk.shards[0].lines == []
    assert desk.answers == [("write", Errors.COORDINATOR_NOT_AVAILABLE, 0), ("read", [], 0)]
    assert GroupDeleted("write") not in desk.effects


def test_turns_come_one_at_a_time_in_order_and_reads_wait() -> None:
    desk = Desk()
    desk.lead()
    for name, lines in (("one", ["a"]), ("two", ["b"]), ("three", []), ("four", ["c"])):
        desk.schedule(name, *lines)
    names = []
    while appends := desk.appends():
        (append,) = appends
        names.append(append.records[0].value)
        desk.settle(append)
    assert names == [b"a", b"b", b"c"]
    assert desk.answers == [("one", [], 0), ("two", ["a"], 0), ("three", ["a", "b"], 0), ("four", ["a", "b"], 0)]


def test_shards_do_not_wait_for_each_other() -> None:
    desk = Desk()
    desk.lead(0)
    desk.lead(1)
    desk.schedule("here", "a", partition=0)
    desk.schedule("there", "b", partition=1)
    first, second = desk.appends()
    desk.settle(second)
    assert [name for name, _, _ in desk.answers] == ["there"]
    desk.settle(first)
    assert [name for name, _, _ in desk.answers] == ["there", "here"]


def test_a_workflow_may_start_another_which_waits_its_turn() -> None:
    desk = Desk()
    desk.lead()
    desk.schedule("one", "a", then=desk.work("follow-up", "c"))
    desk.schedule("two", "b")
    for _ in range(3):
        (append,) = desk.appends()
        desk.settle(append)
    assert desk.answers == [("one", [], 0), ("two", ["a"], 0), ("follow-up", ["a", "b"], 0)]


# ---- time and leadership ---------------------------------------------------------------------------------------------


def test_a_slow_append_is_answered_in_time_and_settled_later() -> None:
    desk = Desk()
    desk.runtime.write_timeout_ms = 100
    desk.lead()
    desk.schedule("slow", "a", now_ms=10)
    (append,) = desk.appends()
    assert desk.runtime.wake_at_ms == 110
    assert desk.handle(Tick(), 109) == []
    desk.handle(Tick(), 110)
    assert desk.answers == [("slow", Errors.COORDINATOR_NOT_AVAILABLE, 110)]
    assert desk.runtime.wake_at_ms is None
    desk.settle(append, now_ms=200)
    assert desk.shards[0].lines == [(0, b"a")]
    assert desk.effects[-1] == GroupDeleted("slow"), "what follows the commit follows it"
    assert len(desk.answers) == 1


def test_a_turn_that_times_out_in_the_queue_never_begins() -> None:
    desk = Desk()
    desk.runtime.write_timeout_ms = 100
    desk.lead()
    desk.schedule("slow", "a", now_ms=0)
    desk.schedule("queued", "b", now_ms=50)
    desk.schedule("patient", "c", now_ms=60)
    (append,) = desk.appends()
    desk.handle(Tick(), 155)
    assert desk.runtime.wake_at_ms == 160
    desk.settle(append, now_ms=156)
    (following,) = desk.appends()
    assert [record.value for record in following.records] == [b"c"]
    assert [name for name, _, _ in desk.answers] == ["slow", "queued"]


# ---- background turns ------------------------------------------------------------------------------------------------


def test_a_background_turn_has_no_deadline() -> None:
    desk = Desk()
    desk.runtime.write_timeout_ms = 100
    desk.lead()
    desk.schedule("slow", "a", now_ms=0)
    desk.schedule_background("background", "b", now_ms=0)
    (append,) = desk.appends()
    desk.handle(Tick(), 100)
    assert desk.runtime.wake_at_ms is None
    desk.settle(append, now_ms=3_600_000)
    desk.settle(desk.appends()[0], now_ms=3_600_001)
    assert desk.shards[0].lines == [(0, b"a"), (0, b"b")]
    assert desk.answers == [("slow", Errors.COORDINATOR_NOT_AVAILABLE, 100), ("background", Errors.NONE, 3_600_001)]


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR, Errors.MESSAGE_TOO_LARGE])
def test_a_background_turn_is_taken_again_until_its_records_are_appended(error: Errors) -> None:
    desk = Desk()
    desk.lead()
    desk.schedule_background("background", "a")
    now_ms = 0
    for _ in range(3):
        desk.settle(desk.appends()[0], error, now_ms=now_ms)
        assert desk.runtime.wake_at_ms == now_ms + RETRY_MS
        desk.handle(Tick(), now_ms + RETRY_MS - 1)
        assert desk.appends() == []
        now_ms += RETRY_MS
        desk.handle(Tick(), now_ms)
    desk.settle(desk.appends()[0], now_ms=now_ms)
    assert desk.shards[0].lines == [(0, b"a")]
    assert desk.answers == [("background", Errors.NONE, now_ms)]
    assert desk.runtime.wake_at_ms is None


def test_a_background_turn_is_taken_again_without_an_append() -> None:
    desk = Desk()
    desk.lead()
    desk.schedule_background("background", errors=[Errors.CONCURRENT_TRANSACTIONS])
    assert (desk.answers, desk.runtime.wake_at_ms) == ([], RETRY_MS)
    desk.handle(Tick(), RETRY_MS)
    assert desk.answers == [("background", Errors.NONE, RETRY_MS)]


def test_other_turns_come_while_a_background_turn_waits_to_be_taken_again() -> None:
    desk = Desk()
    desk.lead()
    desk.schedule_background("background", "a")
    desk.settle(desk.appends()[0], Errors.KAFKA_STORAGE_ERROR)
    desk.schedule("client", "b", now_ms=1)
    desk.settle(desk.appends()[0], now_ms=1)
    assert desk.answers == [("client", [], 1)]


@pytest.mark.parametrize("how", [ShardResigned(0), ShardElected(0, 5)], ids=["resigned", "elected anew"])
@pytest.mark.parametrize("waits", ["in the queue", "to be repeated"])
def test_lost_leadership_ends_a_background_turn(how: ShardElected | ShardResigned, waits: str) -> None:
    desk = Desk()
    desk.lead()
    if waits == "in the queue":
        desk.schedule("slow", "x")
        desk.schedule_background("background", "a")
    else:
        desk.schedule_background("background", "a")
        desk.settle(desk.appends()[0], Errors.KAFKA_STORAGE_ERROR)
    desk.handle(how, 7)
    assert desk.answers[-1] == ("background", Errors.NOT_COORDINATOR, 7)
    assert desk.runtime.wake_at_ms is None
    desk.appends()
    desk.handle(Tick(), 10_000)
    assert desk.appends() == []


def test_an_early_tick_is_harmless() -> None:
    desk = Desk()
    assert desk.handle(Tick()) == []
    assert desk.runtime.wake_at_ms is None


@pytest.mark.parametrize("how", [ShardResigned(0), ShardElected(0, 5)], ids=["resigned", "elected anew"])
def test_lost_leadership_refuses_all_who_wait(how: ShardElected | ShardResigned) -> None:
    desk = Desk()
    desk.lead()
    desk.schedule("under way", "a")
    desk.schedule("queued")
    (append,) = desk.appends()
    desk.handle(how, 7)
    assert desk.answers == [("under way", Errors.NOT_COORDINATOR, 7), ("queued", Errors.NOT_COORDINATOR, 7)]
    assert desk.runtime.wake_at_ms is None
    desk.settle(append)
    assert desk.shards[0].lines == []
    assert len(desk.answers) == 2


def test_resigning_what_one_does_not_lead_is_harmless() -> None:
    assert Desk().handle(ShardResigned(3)) == []


def test_a_turn_without_a_topic_is_refused() -> None:
    desk = Desk()
    desk.schedule("early", partition=NO_PARTITION)
    assert desk.answers == [("early", Errors.COORDINATOR_NOT_AVAILABLE, 0)]


def test_a_workflow_that_waits_for_something_else_gives_its_turn_up() -> None:
    desk = Desk()
    desk.lead()

    def work() -> Workflow[object]:
        shard = yield Turn(0, lambda error: error)
        reply = yield Ask(3, MetadataRequest())
        return len(shard.lines), reply

    desk.runtime.start(work(), desk.note("asking"))
    (call,) = desk.runtime.take_effects()
    assert isinstance(call, Call)
    desk.schedule("write", "a")
    desk.settle(desk.appends()[0])
    desk.handle(Answer(call.id, None, Errors.NETWORK_EXCEPTION, "gone"))
    desk.handle(Answer(call.id, None, Errors.NONE))
    assert desk.answers == [("write", [], 0), ("asking", (1, Reply(None, Errors.NETWORK_EXCEPTION, "gone")), 0)]


def test_a_workflow_may_take_several_turns() -> None:
    desk = Desk()
    desk.lead()

    def work() -> Workflow[object]:
        first = yield from desk.work("one", "a")
        second = yield from desk.work("two", "b")
        return first, second

    desk.runtime.start(work(), desk.note("both"))
    desk.effects += desk.runtime.take_effects()
    desk.schedule("between")
    desk.settle(desk.appends()[0])
    desk.settle(desk.appends()[0])
    assert desk.answers == [("between", ["a"], 0), ("both", ([], ["a"]), 0)]


def test_several_workflows_of_a_request_fail_each_for_itself() -> None:
    desk = Desk()
    desk.lead(0)

    def work() -> Workflow[object]:
        return (yield [desk.work("here", partition=0), desk.work("there", partition=1)])

    desk.runtime.start(work(), desk.note("both"))
    assert desk.answers == [("both", [[], Errors.NOT_COORDINATOR], 0)]


def test_a_pause_ends_in_time_or_when_all_are_ended() -> None:
    desk = Desk()

    def work() -> Workflow[str]:
        yield Pause(100)
        yield Pause(1000)
        reply = yield AskPersister(MetadataRequest())
        return str(reply.error)

    desk.runtime.start(work(), desk.note("pausing"))
    assert desk.runtime.wake_at_ms == 100
    desk.handle(Tick(), 99)
    desk.handle(Tick(), 100)
    assert desk.runtime.wake_at_ms == 1100
    desk.runtime.end_pauses()
    assert desk.runtime.wake_at_ms is None
    (persist,) = desk.runtime.take_effects()
    assert isinstance(persist, Persist)


def test_ids_of_effects_are_unique() -> None:
    desk = Desk()
    desk.lead(0)
    desk.lead(1)
    desk.schedule("a", "a", partition=0)
    desk.schedule("b", "b", partition=1)
    ids = [effect.id for effect in desk.effects if isinstance(effect, ReadRecords | AppendRecords)]
    assert len({*ids, desk.runtime.next_id()}) == 5


@pytest.mark.parametrize("error", Errors)
def test_every_error_of_the_log_has_one_for_the_client(error: Errors) -> None:
    mapped = coordinator_error(error)
    assert mapped is error or mapped in {
        Errors.UNKNOWN_SERVER_ERROR,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    }
