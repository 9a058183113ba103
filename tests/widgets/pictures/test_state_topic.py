"""The picture of the state topic: memory, durable state, differences, writes and losses are those of the journal."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.model.errors import Errors
from shareq.model.events import (
    DurableStateRead,
    Event,
    RecordsHeld,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateRecordWritten,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
)
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.reloads import Losses
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures.state_topic import content, draw
from shareq_widgets.pictures.state_topic_content import StateTopicContent
from shareq_widgets.svg import to_svg
from tests.broker.stage import PLACES, LedgerStage
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded
from tests.trace.test_durable_state import by_offset
from tests.widgets.pictures.layout import check_layout
from tests.widgets.pictures.test_states import START as LOADED
from tests.widgets.pictures.test_states import WINDOW, acquired, changed, settle, write

A, Q, K, R = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
WIDTHS = (320, 374, 480, 760, 1200)


def state_record(kind: str, epoch: int, start: int, *batches: tuple[int, int, int, int]) -> StateRecordWritten:
    return StateRecordWritten(f"{GROUP}:id:0", kind, epoch, start, tuple(StateBatch(*batch) for batch in batches))


INITIAL = state_record("snapshot", 0, -1)
START: list[Event] = [LOADED[0], INITIAL, *LOADED[1:]]


COMPACTED = [LOADED[0], state_record("checkpoint", 3, 10), *LOADED[1:], state_record("delta", 3, 10, (10, 11, 2, 1))]


def shown(events: list[Event], capacity: int | None = None) -> StateTopicContent:
    journal = Journal(ORIGIN_MS, capacity=capacity)
    for place, event in enumerate(events):
        journal.record(ORIGIN_MS + place, 1, event)
    return content(instant_of(GroupHistory(journal, GROUP)), TOPIC, 0)


def test_the_place_of_the_durable_state_is_named() -> None:
    topic = [TopicCreated(SHARE_STATE_TOPIC, "state", 1)]
    snapshot = [LOADED[0], state_record("snapshot", 3, 10), *LOADED[1:]]
    texts = [draw(shown(events), 760).text for events in ([*topic, *snapshot], [*topic, *COMPACTED], COMPACTED)]
    assert "durable in state topic, partition 0, " in texts[0]
    assert "durable in compacted topic, partition 0, " in texts[1]
    assert f"durable in control records of {TOPIC}-0" in texts[2]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        pytest.param([LOADED[0], state_record("snapshot", 3, 10), *LOADED[1:]], "snapshot 3", id="a snapshot"),
        pytest.param(COMPACTED, "checkpoint 3 + 1 delta", id="a checkpoint and a delta"),
    ],
)
def test_the_records_behind_the_durable_state_are_named(events: list[Event], words: str) -> None:
    assert f", {words}" in draw(shown(events), 760).text


@pytest.mark.parametrize(
    ("events", "memory", "durable"),
    [
        pytest.param([], "no leader has it in memory", "nothing is durable yet", id="nothing"),
        pytest.param(
            [*LOADED], "memory of broker 1, leader epoch 0", "nothing is durable yet", id="a persister without a state"
        ),
        pytest.param(
            START, "memory of broker 1, leader epoch 0", "the start is not decided: the first load looks it up",
            id="the start is not decided",
        ),
        pytest.param(
            [*START, SharePartitionDropped(*WHERE, "why"), state_record("tombstone", -1, -1)],
            "no leader has it in memory: why", "deleted: the last record is a tombstone", id="deleted",
        ),
        pytest.param(
            [LOADED[0], DurableStateRead(*WHERE, 3, (Run(3, 5, K, 1),), 2, 0, 1, 0), RecordsHeld(*WHERE, "m", 6, 7, 1)],
            "seen from outside, memory is not known", "", id="observed",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_in_words(events: list[Event], memory: str, durable: str) -> None:
    found = shown(events)
    assert (found.memory_words, found.durable_words) == (memory, durable)
    for width in WIDTHS:
        drawing = draw(found, width)
        check_layout(drawing)
        texts = {element.get("text") for element in drawing.elements}
        assert {memory, durable} - {""} <= texts or (found.memory is not None and {durable} - {""} <= texts)
        assert memory in drawing.text
        assert durable in drawing.text


def test_a_journal_without_the_creation_of_the_topic_knows_no_durable_state() -> None:
    assert shown([TopicCreated(TOPIC, "id", 1), INITIAL, loaded(0, 0)], capacity=1).durable_words.startswith(
        "not known"
    )


def test_an_observer_sees_the_durable_side() -> None:
    found = shown([LOADED[0], DurableStateRead(*WHERE, 3, (Run(4, 6, K, 1),), 2, 7, 1, 0)])
    assert found.memory is None
    assert [run[:4] for run in found.durable or ()] == [(4, 6, "acknowledged", 1)]
    assert draw(found, 374).find("durable 4")["title"] == "4–5 acknowledged, 1 attempt written"


def differences(found: StateTopicContent) -> list[tuple[Any, ...]]:
    return [tuple(difference) for difference in found.differences]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], [], id="an empty window"),
        pytest.param(WINDOW, [("lock", 10, 16, 1)], id="locks and first attempts"),
        pytest.param(
            [*WINDOW, *write(10, 12, K, "accept")],
            [("writing", 10, 12, 1), ("lock", 12, 16, 1)], id="a write under way",
        ),
        pytest.param(
            [*WINDOW, *write(10, 12, K, "accept"), state_record("update", 0, 10, (10, 11, K, 1))],
            [("written", 10, 12, 0), ("lock", 12, 16, 1)], id="written, not answered",
        ),
        pytest.param(
            [
                *WINDOW, *write(11, 12, K, "accept"), state_record("update", 0, 10, (11, 11, K, 1)),
                *settle(11, 12, K, "accept"),
            ],
            [("lock", 10, 11, 1), ("lock", 12, 16, 1)], id="settled",
        ),
        pytest.param([*WINDOW, changed("lock_timeout", 10, 11, A)], [("unwritten", 10, 11, 1), ("lock", 11, 16, 1)],
                     id="a time-out without a write"),
        pytest.param(
            [
                *WINDOW, changed("lock_timeout", 10, 16, A), state_record("update", 0, 10, (10, 15, A, 1)),
                *acquired(10, 12, 2),
            ],
            [("lock", 10, 12, 1)], id="one of two attempts is written",
        ),
        pytest.param([changed("acquire", 10, 12, A, 0)], [], id="never delivered"),
    ],
)  # fmt: skip
def test_differences_between_memory_and_the_state_topic(events: list[Event], expected: list[Any]) -> None:
    found = shown([*START, *events])
    assert differences(found) == expected
    words = draw(found, 760).text
    assert ("agree" in words) == (not expected)


def busy(kill: bool = True) -> Cluster:
    """A member holds ten records, of which it has accepted two; then the leader is killed."""
    cluster = Cluster(brokers=3, seed=5)
    cluster.create_topic("orders", 1)
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer(config) as producer:
        for _ in range(30):
            producer.produce("orders", b"x")
    settings = {**config, "group.id": "g", "share.acknowledgement.mode": "explicit", "max.poll.records": 10}
    settings["share.acquire.mode"] = "record_limit"
    first = ShareConsumer({**settings, "client.id": "clerk-1"})
    first.subscribe(["orders"])
    messages = first.poll(30)
    assert len(messages) == 10
    for place, message in enumerate(messages):
        if place in {4, 5}:
            first.acknowledge(message)
    first.commit_sync(5)
    if kill:
        cluster.kill_broker(cluster.image.topics["orders"].partitions[0].leader)
        second = ShareConsumer({**settings, "client.id": "clerk-2", "max.poll.records": 3})
        second.subscribe(["orders"])
        second.poll(30)
    return cluster


def at_end(cluster: Cluster, group: str = "g") -> Instant:
    return instant_of(GroupHistory(cluster, group))


def test_a_failover_loses_locks_and_attempts_and_reloads_what_was_written() -> None:
    found = content(at_end(busy()), "orders", 0)
    reload = found.reload
    assert reload is not None
    assert reload.reason == f"broker {reload.from_broker} was killed"
    assert reload.lost is not None
    assert [(lock.first, lock.end) for lock in reload.lost.locks] == [(0, 4), (6, 10)]
    assert [tuple(one) for one in reload.lost.attempts] == [(0, 4, 1, 0), (6, 10, 1, 0)]
    assert reload.loaded == {"acknowledged": 2}
    assert reload.broker_id == found.leader
    drawing = draw(found, 374)
    lines = [drawing.find(key)["text"] for key in drawing.keys(f"reload {reload.order} line")]
    assert lines == [
        f"broker {reload.from_broker} was killed; leader epoch {reload.leader_epoch}",
        "lost 8 locks: 0–3, 6–9",
        "8 attempts never written: 0–3: 1 → 0, 6–9: 1 → 0",
        "reloaded: SPSO 0, 2 acknowledged",
    ]
    assert all(line in drawing.text for line in lines)
    badge = drawing.find(f"reload {reload.order} 1 badge")
    assert badge["about"] == [f"member:{reload.lost.locks[0].member_id}"]


def test_a_leader_passes_what_is_done_above_the_durable_start() -> None:
    """The state topic and the message have start 10, the leader has SPSO 12: both are right."""
    written = state_record("update", 0, 10, (10, 11, K, 1))
    found = shown(
        [
            *START,
            written,
            SharePartitionDropped(*WHERE, "why"),
            SharePartitionLoaded(*WHERE, 12, 12, (), 1, 1, 5, 20, 30_000),
        ]
    )
    assert found.reload is not None
    assert "reloaded: SPSO 12, from start 10 with 10–11 done" in draw(found, 374).text


def test_the_first_load_is_no_failover() -> None:
    assert content(at_end(busy(kill=False)), "orders", 0).reload is None


def test_an_initialization_between_two_loads_leaves_nothing_to_compare() -> None:
    again = SharePartitionLoaded(*WHERE, 3, 3, (), 2, 1, 5, 20, 30_000)
    found = shown([*START, *WINDOW, SharePartitionDropped(*WHERE, "offsets were altered"), again])
    assert found.reload is not None
    assert (found.reload.reason, found.reload.lost) == ("offsets were altered", None)
    assert "nothing is comparable" in draw(found, 374).text


def test_a_write_that_was_durable_without_an_answer_survives() -> None:
    update = state_record("update", 0, 10, (10, 11, K, 1))
    lost = SharePartitionDropped(*WHERE, "another broker leads the partition")
    events = [*START, *WINDOW, *write(10, 12, K, "accept"), update, lost, loaded(12, 12)]
    found = shown(events)
    assert found.reload is not None
    assert found.reload.lost is not None
    assert [(lock.first, lock.end) for lock in found.reload.lost.locks] == [(12, 16)]
    assert [(w.kind, w.took_ms, w.ended) for w in found.writes] == [("update", None, True)]
    assert "durable, no answer" in draw(found, 374).text


def test_writes_have_their_time_their_record_and_their_error() -> None:
    cluster = busy(kill=False)
    cluster.fail_appends(SHARE_STATE_TOPIC, Errors.NOT_ENOUGH_REPLICAS, times=10)
    cluster.advance(120_000)
    found = content(at_end(cluster), "orders", 0)
    assert found.writes[0].kind == "update"
    failed = next(write for write in found.writes if write.error)
    assert failed.kind == ""
    drawing = draw(found, 480)
    shown = [drawing.find(f"write {write.order} id")["text"].split()[0] for write in (found.writes[0], failed)]
    assert shown == ["update", "write"], "a number in front would read like a count of updates"
    result = drawing.find(f"write {failed.order} result")
    assert (result["text"], result["style"]) == (Errors(failed.error or 0).name, "hot small")


def test_a_write_under_way_is_dashed_and_counts_its_time() -> None:
    at = instant_of(GroupHistory(journal := Journal(ORIGIN_MS), GROUP))
    for place, event in enumerate([*START, *WINDOW, *write(10, 12, K, "accept")]):
        journal.record(ORIGIN_MS + place, 1, event)
    found = content(instant_of(GroupHistory(journal, GROUP), now_ms=at.now_ms + 900), TOPIC, 0)
    order = found.writes[-1].order
    drawing = draw(found, 374)
    assert found.under_way == (0,)
    assert drawing.find(f"write {order} frame")["attributes"]["stroke-dasharray"] == "4 3"
    assert drawing.find(f"write {order} result")["text"] == f"under way, {900 - order} ms"
    assert drawing.find("memory 10 write")["attributes"]["stroke-dasharray"] == "4 3"


# ---- random clusters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", range(3))
def test_the_content_at_random_moments_follows_from_the_journal(seed: int, run: int) -> None:
    stage = LedgerStage(seed + 100 + run)
    for _ in range(80):
        stage.step()
    at, rng = at_end(stage.cluster), Random(run)
    journal = stage.cluster.journal
    for _ in range(cases(25, 340)):
        until, (topic, partition) = rng.randrange(at.until + 1), rng.choice(PLACES)
        found = content(at._replace(until=until), topic, partition)
        state = at.history.share_partition(topic, partition, until)
        memory = {o: status for first, end, status in state.runs for o in range(first, end)}
        stored = by_offset(journal, topic, partition, until) if until > 20 else {}
        if state.loaded:
            assert {o: run.state for run in found.memory or () for o in range(run.first, run.end)} == {
                offset: status.state.name.lower() for offset, status in memory.items()
            }
        expected = {
            offset
            for offset, status in memory.items()
            if state.loaded
            and (status.state is Q or (status.delivery_count, status.state) != stored.get(offset, (0, A)))
        }
        assert {o for one in found.differences for o in range(one.first, one.end)} == expected
        check_writes(journal, found, until)
        check_reload(at, found, until)
        for width in (320, 760):
            check_layout(draw(found, width))


def check_writes(journal: Journal, found: StateTopicContent, until: int) -> None:
    """Each write with its answer, paired from the beginning."""
    open_writes: dict[tuple[int, int], int] = {}
    answered: dict[int, tuple[int, int] | None] = {}
    for entry in journal.select(group="g", topic=found.topic, partition=found.partition):
        event = entry.event
        if entry.order >= until:
            break
        if isinstance(event, StateWritePrepared):
            open_writes[entry.broker_id, event.write_id] = entry.order
            answered[entry.order] = None
        elif isinstance(event, StateWriteSettled):
            order = open_writes.pop((entry.broker_id, event.write_id))
            answered[order] = entry.time_ms, event.error
    last = sorted(answered)[-len(found.writes) or len(answered) :]
    assert [sent.order for sent in found.writes] == last
    for sent in found.writes:
        answer = answered[sent.order]
        assert (sent.took_ms is None) == (answer is None)
        if answer is not None:
            assert (sent.time_ms + (sent.took_ms or 0), sent.error) == answer
        if answer is not None and not answer[1]:
            assert sent.kind


def check_reload(at: Instant, found: StateTopicContent, until: int) -> None:
    """The losses by offset: the state before the load against the runs of the load."""
    loads = at.history.journal.select(SharePartitionLoaded, group="g", topic=found.topic, partition=found.partition)
    loads = [entry for entry in loads if entry.order < until]
    assert (found.reload is not None) == (len(loads) > 1)
    if found.reload is None:
        return
    event = loads[-1].event
    assert isinstance(event, SharePartitionLoaded)
    assert (found.reload.order, found.reload.spso) == (loads[-1].order, event.spso)
    before = at.history.share_partition(found.topic, found.partition, loads[-1].order)
    after = {o: run for run in event.runs for o in range(run.first, run.end)}
    locks, attempts = set(), {}
    for first, end, status in before.runs:
        for offset in range(max(first, event.spso), end):
            run = after.get(offset)
            count = run.delivery_count if run else 0
            if (run is None or run.state == A) and count < status.delivery_count:
                attempts[offset] = status.delivery_count, count
                locks |= {(status.member_id, offset)} if status.state is Q else set()
    lost = found.reload.lost
    assert isinstance(lost, Losses)
    assert {(lock.member_id, o) for lock in lost.locks for o in range(lock.first, lock.end)} == locks
    assert {o: (one.before, one.after) for one in lost.attempts for o in range(one.first, one.end)} == attempts


@pytest.mark.parametrize("width", WIDTHS)
def test_cells_and_blocks_are_aligned_on_one_axis(width: int) -> None:
    found = content(at_end(busy()), "orders", 0)
    drawing = draw(found, width)
    check_layout(drawing)
    starts = {key: drawing.find(key)["attributes"]["d"].split("h")[0].split()[0] for key in ("memory 4", "durable 4")}
    assert len(set(starts.values())) == 1
    assert drawing.find("durable 4")["title"] == "4–5 acknowledged, 1 attempt written"
    for theme in ("light", "dark"):
        assert to_svg(drawing, theme=theme).startswith("<svg")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_window_too_wide_for_cells_has_a_block_for_each_state(width: int) -> None:
    events: list[Event] = [*START]
    for first in range(10, 4000, 4):
        events += [*acquired(first, first + 2), changed("acquire", first + 2, first + 4, A, 0)]
    drawing = draw(shown(events), width)
    check_layout(drawing)
    assert drawing.find("memory acquired")["title"] == "1,996 records acquired"
    assert drawing.find("difference lock")["title"] == "1,996 locks, never written, 1,996 attempts not written"
    assert len(drawing.elements) < 60
