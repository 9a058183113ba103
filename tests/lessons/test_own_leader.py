"""The comparison of a learner's leader with the oracle, and what its random runs meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from shareq.lessons.exercises.lesson_16 import RANDOM_RUNS
from shareq.lessons.own_leader import SCRIPTS, Record, first_difference, random_script
from shareq.lessons.own_leader.naive import NaiveLeader
from shareq.lessons.own_leader.scripts import time_after
from shareq.lessons.solutions.lesson_16 import OwnLeader


class Forgetful(OwnLeader):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        return "ok" if kind == "release" else super().acknowledge(member, offsets, kind, now_ms)


def test_the_first_difference_is_shown_as_strips() -> None:
    script = next(script for script in SCRIPTS["acknowledging"] if "comes again" in script.title)
    difference = first_difference(Forgetful, script)
    assert difference is not None
    assert difference.steps == 2
    assert difference.text.splitlines() == [
        "✗ a released record comes again, with the next count (limit 3, record locks 6, end of the log 10)",
        "  step 1: ann fetches up to 2",
        "  step 2: ann: release 0",
        "the window",
        "offset                    0    1",
        "before       SPSO 0      A1   A1",
        "yours        SPSO 0      A1   A1",
        "expected     SPSO 0      ○1   A1",
    ]


class Mute(OwnLeader):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        super().acknowledge(member, offsets, kind, now_ms)
        return ""


def test_different_answers_are_shown_before_the_windows() -> None:
    difference = first_difference(Mute, SCRIPTS["acknowledging"][0])
    assert difference is not None
    assert difference.text.splitlines()[3:6] == ["returned", "yours        ''", "expected     'ok'"]


def test_records_of_another_kind_are_named() -> None:
    class Tuples(OwnLeader):
        def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
            self.records[0] = ("acquired", 1)  # type: ignore[assignment]
            return [(0, 1)]

    difference = first_difference(Tuples, SCRIPTS["acquiring"][0])
    assert difference is not None
    assert difference.text.endswith("records[0] is ('acquired', 1), and should be a Record")


class KeepsTheMember(OwnLeader):
    def end_lock(self, record: Record, state: str) -> None:
        member = record.member
        super().end_lock(record, state)
        record.member = member


def test_a_member_that_should_have_gone_is_seen_in_the_strip() -> None:
    script = next(script for script in SCRIPTS["acknowledging"] if "comes again" in script.title)
    difference = first_difference(KeepsTheMember, script)
    assert difference is not None
    assert difference.text.splitlines()[-2:] == [
        "yours        SPSO 0     ○1a   A1",
        "expected     SPSO 0      ○1   A1",
    ]


def test_an_unknown_state_is_named() -> None:
    class OwnWords(OwnLeader):
        def end_lock(self, record: Record, state: str) -> None:
            super().end_lock(record, "accept")

    difference = first_difference(OwnWords, SCRIPTS["acknowledging"][0])
    assert difference is not None
    assert "records[0].state is 'accept', and should be one of available, acquired" in difference.text


def test_pairs_may_be_lists() -> None:
    class Lists(OwnLeader):
        def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> Any:
            return [list(pair) for pair in super().acquire(member, most, log_end, now_ms)]

    assert first_difference(Lists, SCRIPTS["acquiring"][0]) is None


def test_the_random_runs_meet_every_rule() -> None:
    """Each acknowledge type is accepted and refused, windows are full, locks end, and records are used up."""
    met: Counter[str] = Counter()
    for seed in range(RANDOM_RUNS):
        script = random_script(seed)
        leader, now_ms = NaiveLeader(script.settings.lock_ms, script.settings.limit, script.settings.locks), 0
        for step in script.steps:
            now_ms = time_after(step, now_ms)
            method, arguments = step.call(leader, script.settings, now_ms)
            before = leader.records
            answer = method(*arguments)
            after = leader.records
            met[
                f"{getattr(step, 'kind', type(step).__name__)} {answer if isinstance(answer, str) else bool(answer)}"
            ] += 1
            ended = [at for at in after if at in before and before[at].member and not after[at].member]
            met["locks ended"] += bool(ended and answer is None)
            met["used up"] += any(after[at].state == "archived" and answer is None for at in ended)
            met["full"] += leader.window_end - leader.spso == script.settings.locks
    kinds = [
        f"{kind} {answer}"
        for kind in ("accept", "release", "reject", "renew")
        for answer in ("ok", "INVALID_RECORD_STATE")
    ]
    wanted = [*kinds, "Fetch True", "Fetch False", "locks ended", "used up", "full"]
    assert {what: met[what] for what in wanted if met[what] < 20} == {}
