"""Lab: write your own share-partition leader. An answer is a class, which is compared with the oracle step by step."""

from __future__ import annotations

from typing import Final

from shareq.lessons.checks import NotYet, Passed
from shareq.lessons.exercise import Answer, Exercises
from shareq.lessons.own_leader import SCRIPTS, first_difference, random_script

EXERCISES: Final = Exercises("16")

RANDOM_RUNS: Final = 200


def _scripts(answer: Answer, topic: str) -> Passed:
    for number, script in enumerate(SCRIPTS[topic]):
        if differs := first_difference(answer, script):
            passed = f"\n  {number} of {len(SCRIPTS[topic])} scripts are right before it" if number else ""
            raise NotYet(f"{differs.text}{passed}")
    return Passed("\n".join(f"✓ {script.title}" for script in SCRIPTS[topic]))


@EXERCISES.judged_by(
    "Acquiring",
    "An available record of the window comes before a new one. In this exercise no record is available again.",
    "A new record enters the window at its end: self.records[offset] = Record(). self.end is the offset after it.",
    "There is room while self.end < self.spso + self.locks and self.end < log_end.",
    'An acquired record has state "acquired", a count that is higher by one, a member, and deadline_ms.',
)
def acquiring(answer: Answer) -> Passed:
    return _scripts(answer, "acquiring")


@EXERCISES.judged_by(
    "Acknowledging",
    "First look at all offsets, then change the first one: a request that is refused has no effect.",
    "A record may be acknowledged if it is acquired, by this member. An available one has no member.",
    "After each request the SPSO passes the records at the start of the window that are acknowledged or archived.",
)
def acknowledging(answer: Answer) -> Passed:
    return _scripts(answer, "acknowledging")


@EXERCISES.judged_by(
    "Time",
    "A lock has ended if deadline_ms <= now_ms. What does a release do with a record?",
    "A renewal changes nothing but deadline_ms.",
)
def time(answer: Answer) -> Passed:
    return _scripts(answer, "time")


@EXERCISES.judged_by(
    "The window",
    "A release and a time-out archive a record whose count has reached self.limit. Write that once, for both.",
    "The room in the window is counted from the SPSO: records that are done, above it, still take room.",
    "Offsets below the SPSO are left out before anything is checked.",
)
def the_window(answer: Answer) -> Passed:
    return _scripts(answer, "the window")


@EXERCISES.judged_by(
    "Two hundred random runs",
    "The run that is shown is the shortest of those that differ. Which rule is it about?",
    "Write the run's last steps down as a script of your own, and follow your code line by line.",
)
def random_runs(answer: Answer) -> Passed:
    scripts = [random_script(seed) for seed in range(RANDOM_RUNS)]
    found = [differs for script in scripts if (differs := first_difference(answer, script))]
    if found:
        raise NotYet(f"{min(found).text}\n  {len(found)} of {RANDOM_RUNS} runs differ, this is the shortest one")
    steps = sum(len(script.steps) for script in scripts)
    return Passed(f"✓ {RANDOM_RUNS} random runs of {steps:,} steps agree with the oracle")
