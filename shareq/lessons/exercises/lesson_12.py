"""Lesson 12, the control room: stories that take another course, by one configuration."""

from __future__ import annotations

from typing import Final

from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.lessons.life import life
from shareq.model.states import RecordEvent
from shareq.trace import view
from shareq_widgets.steering import STORIES

EXERCISES: Final = Exercises("12")

SOON_S: Final = 20
FAR: Final = 150


@EXERCISES.judged_by(
    "Sooner",
    "Two clocks run: the lock's and the session's. Which of them frees the records?",
    "share.record.lock.duration.ms is 30,000. The brokers allow no less than 15,000.",
)
def sooner(answer: Answer) -> Passed:
    story = STORIES["crashed consumer"].begin()
    cluster = story.steering.cluster
    ask(answer, cluster)
    while not story.done:
        story.next()
    moments = life(cluster, "crew", "jobs", 0, 0).moments
    [acquired, again] = [moment.time_ms for moment in moments if moment.event == RecordEvent.ACQUIRE][:2]
    waited_s = (again - acquired) / 1000
    return check(
        waited_s <= SOON_S,
        f"B has record 0 after {waited_s:g} s",
        f"B gets record 0 after {waited_s:g} s, and {SOON_S} are allowed",
    )


@EXERCISES.judged_by(
    "Go on, in spite of A",
    "Why is B idle? Look at the SPSO, the SPEO, and the distance between them.",
    "share.partition.max.record.locks is 100. It may be changed while the group works.",
)
def go_on(answer: Answer) -> Passed:
    story = STORIES["window full"].begin()
    story.next()
    cluster = story.steering.cluster
    ask(answer, cluster)
    cluster.advance(2_000)
    snapshot = view(cluster, "crew", "jobs").snapshot()
    if life(cluster, "crew", "jobs", 0, 0).holders != ["A"] or snapshot["spso"]:
        raise NotYet("✗ A no longer keeps its first record, and it should")
    last = snapshot["window_end"] - 1
    return check(last >= FAR, f"B has gone on to record {last}", f"B has gone on to record {last}, and should to {FAR}")
