"""A learner's leader beside the oracle: the first step after which they differ, as strips of states."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from shareq.lessons.checks import NotYet
from shareq.lessons.exercise import Answer, ask
from shareq.lessons.own_leader.naive import NaiveLeader
from shareq.lessons.own_leader.record import Record
from shareq.lessons.own_leader.scripts import Script, Wait, time_after
from shareq.trace.views.palette import SYMBOLS

STATES: Final = ("available", "acquired", "acknowledged", "archived")
LAST_STEPS: Final = 8
_LABEL: Final = 13
_CELL: Final = 5


class Difference(NamedTuple):
    """Two leaders differ after `steps` steps of a script. `text`: the steps, both answers and both windows."""

    steps: int
    text: str


class Window(NamedTuple):
    """The SPSO; and from there on, by offset, the state of each record, its delivery count and its holder."""

    spso: int
    records: dict[int, tuple[str, int, str | None]]

    @classmethod
    def of(cls, leader: Any) -> Window:
        """NotYet if `spso` or `records` cannot be read."""
        spso, records = getattr(leader, "spso", None), getattr(leader, "records", None)
        if not isinstance(spso, int) or not isinstance(records, dict):
            raise NotYet(f"✗ spso is {spso!r} and records is {records!r}; they should be a whole number and a dict")
        for offset, record in records.items():
            if not isinstance(record, Record):
                raise NotYet(f"✗ records[{offset!r}] is {record!r}, and should be a Record")
            if record.state not in STATES:
                raise NotYet(
                    f"✗ records[{offset!r}].state is {record.state!r}, and should be one of {', '.join(STATES)}"
                )
        here = {offset: record for offset, record in sorted(records.items()) if offset >= spso}
        return cls(spso, {offset: (one.state, one.count, one.member) for offset, one in here.items()})


def first_difference(answer: Answer, script: Script) -> Difference | None:
    """Let the class of a learner's leader and the oracle carry out a script; None if they never differ.

    NotYet for an answer that is no such class.
    """
    settings, now_ms = script.settings, 0
    naive = NaiveLeader(settings.lock_ms, settings.limit, settings.locks)
    mine = ask(answer, settings.lock_ms, settings.limit, settings.locks)
    if not hasattr(mine, "acquire"):
        raise NotYet(f"✗ my_answer should be the class of your leader; it makes {mine!r}, which cannot acquire")
    windows = [("before", Window.of(naive))]
    for number, step in enumerate(script.steps, 1):
        now_ms = time_after(step, now_ms)
        method, arguments = step.call(naive, settings, now_ms)
        right = method(*arguments)
        try:
            method, arguments = step.call(mine, settings, now_ms)
            got = _with_tuples(ask(method, *arguments))
            window = Window.of(mine)
        except (NotYet, AttributeError) as error:
            return Difference(number, f"{_course(script, number)}\n{str(error).removeprefix('✗ ')}")
        windows[1:] = [("yours", window), ("expected", Window.of(naive))]
        answers = [] if isinstance(step, Wait) or got == right else [("yours", got), ("expected", right)]
        if answers or windows[1][1] != windows[2][1]:
            texts = [f"{label:<{_LABEL}}{answer!r}" for label, answer in answers]
            texts = ["returned", *texts, "the window"] if texts else ["the window"]
            return Difference(number, "\n".join([_course(script, number), *texts, *_strips(windows)]))
        windows = [("before", windows[2][1])]
    return None


def _course(script: Script, steps: int) -> str:
    """The last of these steps, with its number."""
    settings = script.settings
    lines = [
        f"✗ {script.title} (limit {settings.limit}, record locks {settings.locks}, end of the log {settings.log_end})"
    ]
    shown = list(enumerate(script.steps[:steps], 1))[-LAST_STEPS:]
    return "\n".join(lines + [f"  step {number}: {step}" for number, step in shown])


def _strips(windows: list[tuple[str, Window]]) -> list[str]:
    """The windows below each other, a column for each offset. A sign has the holder's letter and the delivery count."""
    offsets = sorted({offset for _, window in windows for offset in window.records})
    lines = [_line("offset", "", [str(offset) for offset in offsets])]
    for label, window in windows:
        signs = [_sign(*window.records[offset]) if offset in window.records else "" for offset in offsets]
        lines.append(_line(label, f"SPSO {window.spso}", signs))
    return lines


def _line(label: str, spso: str, signs: list[str]) -> str:
    return f"{label:<{_LABEL}}{spso:<9}{''.join(f'{sign:>{_CELL}}' for sign in signs)}".rstrip()


def _sign(state: str, count: int, member: str | None) -> str:
    """The holder's letter of an acquired record. A letter after another sign is a member that is not the holder."""
    letter = (member or "")[:1].upper()
    held = state == "acquired" and letter
    return f"{letter if held else SYMBOLS[state]}{count or ''}{'' if held else letter.lower()}"


def _with_tuples(answer: Any) -> Any:
    """The answer, with lists for pairs made tuples."""
    pairs = isinstance(answer, list) and all(isinstance(pair, list) for pair in answer)
    return [tuple(pair) for pair in answer] if pairs else answer
