"""Steps of a timeline: all that one cause has changed at one instant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from random import Random
from typing import Any

import pytest

from shareq import AcknowledgeType, Cluster, Producer, ShareConsumer
from shareq.model.events import (
    Event,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    SharePartitionLoaded,
    ShareSessionClosed,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.trace import Entry, view
from shareq.trace.analysis.steps import EXPIRY, READ, Steps, cause_of
from shareq.trace.views.step_text import step_text
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, random_history

Timed = tuple[int, Event]


def acquired(member: str, first: int = 0, at_ms: int = 0) -> Timed:
    return at_ms, RecordsChanged(*WHERE, "acquire", first, first + 2, 1, 1, member, 30_000)


def changed(cause: str, member: str | None = None, at_ms: int = 0) -> Timed:
    return at_ms, RecordsChanged(*WHERE, cause, 0, 2, 0, 1, member, why="accept")


MOVED: Timed = (0, WindowMoved(*WHERE, 0, 2))
WRITE: Timed = (0, StateWritePrepared(*WHERE, 3, 0, 2, ()))
DONE: Timed = (0, StateWriteSettled(*WHERE, 3, 0))
FAILED: Timed = (0, StateWriteSettled(*WHERE, 3, 7))
LEFT: list[Timed] = [(0, ShareSessionClosed(GROUP, "m", "closed")), (0, MemberLeft(GROUP, "m", "left"))]


@pytest.mark.parametrize(
    ("timed", "ends"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([acquired("m"), acquired("m", 4), MOVED], [3], id="a poll, its runs and the window"),
        pytest.param([acquired("m"), acquired("n", 4)], [1, 2], id="polls of two members"),
        pytest.param([acquired("m"), acquired("m", 4, at_ms=1)], [1, 2], id="two polls of a member"),
        pytest.param(
            [changed("prepared", "m"), WRITE, DONE, changed("settled"), MOVED, acquired("m")], [6],
            id="a poll acknowledges and acquires",
        ),
        pytest.param(
            [changed("prepared", "m"), WRITE, DONE, changed("settled"), acquired("n")], [4, 5],
            id="released records go to another member",
        ),
        pytest.param(
            [acquired("m"), changed("prepared", "m"), WRITE, DONE, MOVED], [1, 5], id="a poll, then a commit"
        ),
        pytest.param(
            [changed("prepared", "m"), WRITE, (5, DONE[1]), changed("settled", at_ms=5)], [2, 4],
            id="a write that takes time",
        ),
        pytest.param(
            [FAILED, changed("abandoned", "m"), changed("lock_timeout"), changed("abandoned", "m")], [4],
            id="a write that fails after the lock has expired",
        ),
        pytest.param([acquired("m"), changed("lock_timeout")], [1, 2], id="another lock expires at that instant"),
        pytest.param([changed("missing"), acquired("m"), MOVED], [3], id="a fetch that passes a gap"),
        pytest.param([acquired("m"), changed("aborted")], [2], id="a fetch with an aborted transaction"),
        pytest.param(LEFT, [2], id="a member's session and membership"),
        pytest.param(
            [(0, TopicCreated("t", "id", 1)), (0, LeaderElected("t", 0, 1, 0)), (0, RecordsAppended("t", 0, 0, 5))],
            [2, 3], id="a topic with its leader, and its first records",
        ),
    ],
)  # fmt: skip
def test_a_step_is_a_cause(timed: list[Timed], ends: list[int]) -> None:
    steps = Steps([Entry(order, time_ms, 0, event) for order, (time_ms, event) in enumerate(timed)])
    assert walk(steps.after, len(timed)) == ends
    assert [steps.before(end) for end in ends] == [0, *ends][:-1]
    for count in range(len(timed)):
        assert steps.after(count) == min(end for end in ends if end > count)


def walk(after: Callable[[int], int], total: int) -> list[int]:
    """The ends of all steps."""
    ends = [0]
    while ends[-1] < total:
        ends.append(after(ends[-1]))
    return ends[1:]


def from_the_beginning(entries: list[Entry]) -> list[int]:
    """The ends of all steps, found by one pass over the entries."""
    ends, time_ms, present, settling = [], -1, None, False
    for place, entry in enumerate(entries):
        cause = cause_of(entry.event)
        follows = cause in (None, present) or (
            cause is not None and cause[0] == "acquire" and present in (READ, ("member", cause[1]))
        )
        if entry.time_ms != time_ms or not (follows or (settling and cause == EXPIRY)):
            ends += [place] if place else []
            time_ms, present, settling = entry.time_ms, cause, False
        elif cause is not None:
            present = cause
        settling = settling or isinstance(entry.event, StateWriteSettled)
    return [*ends, len(entries)]


EVENTS: list[Event] = [
    *(acquired(member)[1] for member in "mn"),
    *(changed(cause, "m")[1] for cause in ("prepared", "renew", "abandoned")),
    *(changed(cause)[1] for cause in ("lock_timeout", "lock_timeout", "settled", "missing", "aborted")),
    MOVED[1], WRITE[1], DONE[1], FAILED[1], *(event for _, event in LEFT), TopicCreated("t", "id", 1),
]  # fmt: skip


def test_the_steps_around_a_position_are_those_found_from_the_beginning(seed: int) -> None:
    draw, entries, time_ms = Random(seed), list[Entry](), 0
    steps = Steps(entries)
    for order in range(600):
        time_ms += draw.random() < 0.06
        entries.append(Entry(order, time_ms, 0, draw.choice(EVENTS)))
        if draw.random() < 0.3:
            ends = [0, *from_the_beginning(entries)]
            for count in (draw.randrange(order + 1), order, order + 1):
                assert steps.before(count) == max([end for end in ends if end < count], default=0)
                assert steps.after(count) == min([end for end in ends if end > count], default=len(entries))


def test_a_step_ends_where_a_call_of_the_leader_ends(seed: int) -> None:
    """So it never shows half of what a fetch, an acknowledgement, an expiry or a write has changed."""
    for number in range(4):
        boundaries = set()
        for journal, _ in random_history(Random(f"{seed}/{number}"), 120):
            boundaries.add(journal.total)
        watching = view(journal, GROUP, TOPIC)
        orders = range(1, watching.total() + 1)
        begun = next(order for order in orders if isinstance(watching.entry(order).event, SharePartitionLoaded))
        for end in walk(watching.next_step, watching.total()):
            joins = isinstance(watching.entry(end).event, MemberLeft | MemberJoined)
            assert end < begun or joins or watching.entry(end).order + 1 in boundaries, watching.sentence(end)


@pytest.mark.parametrize(
    ("latency_ms", "texts"),
    [
        pytest.param(
            0,
            [
                "c acquired 0–2, the window is now 0–2",
                "c accepted 0–2, the state write succeeded; the window is empty at 3",
            ],
            id="at once",
        ),
        pytest.param(
            2,
            [
                "c acquired 0–2, the window is now 0–2",
                "c accepted 0–2, state write under way",
                "0–2 became acknowledged, the state write succeeded; the window is empty at 3",
            ],
            id="with a network that takes time",
        ),
    ],
)
def test_what_a_step_says(latency_ms: int, texts: list[str]) -> None:
    ends, steps = steps_of_a_commit(latency_ms, AcknowledgeType.ACCEPT)
    assert [step["text"] for step in steps][-len(texts) :] == texts
    assert [step["first"] for step in steps] == [1, *(end + 1 for end in ends[:-1])]


def steps_of_a_commit(latency_ms: int, *verdicts: AcknowledgeType) -> tuple[list[int], list[Any]]:
    """The ends of all steps, and the steps, of a member that takes three records; the last verdict is for the rest."""
    with Cluster(seed=1, latency_ms=latency_ms) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        conf: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(conf) as producer:
            for value in "abc":
                producer.produce("t", value)
        mode = {"share.acknowledgement.mode": "explicit"}
        with ShareConsumer({**conf, **mode, "group.id": "g", "client.id": "c"}) as consumer:
            consumer.subscribe(["t"])
            for message, verdict in zip(consumer.poll(30), chain(verdicts, repeat(verdicts[-1])), strict=False):
                consumer.acknowledge(message, verdict)
            consumer.commit_sync()
            watching = view(cluster, "g", "t")
            ends = walk(watching.next_step, watching.total())
            return ends, [watching.snapshot(end)["step"] for end in ends]


def test_the_outcome_of_a_write_stands_once_in_a_step() -> None:
    _, steps = steps_of_a_commit(0, AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT)
    assert steps[-1]["text"] == "c released 0, c accepted 1–2; the state write succeeded"


def test_there_is_no_step_inside_a_step() -> None:
    journal = next(random_history(Random(1), 1))[0]
    for event in (acquired("m")[1], MOVED[1]):
        journal.record(ORIGIN_MS + 5, 0, event)
    watching = view(journal, GROUP, TOPIC)
    total = watching.total()
    step = watching.snapshot(total)["step"]
    assert step is not None
    assert step["first"] == total - 1
    assert watching.snapshot(total - 1)["step"] is None


def test_a_step_of_many_events_names_the_first() -> None:
    entries = [Entry(i, 0, 0, acquired("m", 2 * i)[1]) for i in range(5)]
    text = step_text(entries, lambda member_id: member_id)
    assert text == "m acquired 0–1, m acquired 2–3; m acquired 4–5; and 2 more events"
