"""The controls of consumers: add one, its policy, and what may happen to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from shareq.team import COMMITS, LONGEST_MS, Policy
from shareq.trace.views.member_names import letter
from shareq_widgets.steering.control import BUTTON, CHOICE, SLIDER, Control, Range
from shareq_widgets.steering.panel import CONSUMERS, ControlTarget

POLICIES: dict[str, Policy] = {
    "accept": Policy(),
    "release some": Policy(release=0.3),
    "reject poison": Policy(poison="reject"),
    "release poison": Policy(poison="release"),
    "renew": Policy(renew=True),
}
"""The verdict policies to choose from, by label. Work times and commits are set apart."""


def add_consumer(panel: ControlTarget) -> Control:
    def line(label: str) -> str:
        policy = POLICIES[label]
        name = next_name(panel)
        return f"team.add({name!r})" if policy == Policy() else f"team.add({name!r}, {policy!r})"

    return Control(
        panel=panel,
        name="add consumer",
        area=CONSUMERS,
        kind=CHOICE,
        meaning="Adds a consumer with a verdict policy; it joins the group when the clock moves.",
        momentary=True,
        options=lambda: tuple(POLICIES),
        current=lambda: "accept",
        line=line,
    )


def next_name(panel: ControlTarget) -> str:
    """The letter that the next new member of the group has in the views; a later one if the team has that name."""
    seen, used = panel.seen_members(), {worker.name for worker in panel.team}
    return next(name for name in map(letter, count(len(seen) + len(panel.joining()))) if name not in used)


def consumer_controls(panel: ControlTarget, name: str) -> Iterator[Control]:
    """The controls of one consumer; those of a closed or crashed one are not available."""
    yield from _policy_controls(panel, name)
    yield from _fault_controls(panel, name)


def _control(
    panel: ControlTarget, name: str, what: str, kind: str, meaning: str, *, line: Callable[[Any], str], **more: Any
) -> Control:
    """A control of a consumer; `refusal`, where given, adds to that of a consumer that has ended."""
    refusal = more.pop("refusal", lambda: "")

    def reason() -> str:
        worker = panel.team[name]
        return str(refusal()) if worker.at_work else f"{name} is {worker.state}"

    return Control(
        panel=panel,
        name=f"{what} {name}",
        area=CONSUMERS,
        subject=name,
        kind=kind,
        meaning=meaning,
        line=line,
        refusal=reason,
        **more,
    )


def _policy_controls(panel: ControlTarget, name: str) -> Iterator[Control]:
    def policy() -> Policy:
        return panel.team[name].policy

    def line(**change: Any) -> str:
        return f"team[{name!r}].policy = {replace(policy(), **change)!r}"

    def verdict_line(label: str) -> str:
        chosen = POLICIES[label]
        return line(poison=chosen.poison, release=chosen.release, renew=chosen.renew)

    def work_time(what: str, attribute: str, meaning: str, current: Callable[[], int]) -> Control:
        return _control(
            panel,
            name,
            what,
            SLIDER,
            meaning,
            line=lambda ms: line(**{attribute: ms}),
            unit="ms",
            span=lambda: Range(0, 120_000, log=True, most=LONGEST_MS),
            current=current,
        )

    yield _control(
        panel,
        name,
        "policy of",
        CHOICE,
        "How the consumer acknowledges its records.",
        line=verdict_line,
        options=lambda: tuple(POLICIES),
        current=lambda: policy_label(policy()),
    )
    yield work_time(
        "work time of",
        "work_ms",
        "The time that the consumer works on a record; on a slow one, too, until that has a time of its own.",
        lambda: policy().work_ms,
    )
    yield work_time(
        "slow-record time of",
        "slow_ms",
        "The time that the consumer works on a record marked as slow.",
        lambda: policy().slow_time_ms,
    )
    yield _control(
        panel,
        name,
        "commit of",
        CHOICE,
        "Whether acknowledgements are sent with the next poll, or after each record.",
        line=lambda when: line(commit=when),
        options=lambda: COMMITS,
        current=lambda: policy().commit,
    )


def _fault_controls(panel: ControlTarget, name: str) -> Iterator[Control]:
    of = f"team[{name!r}]"

    def if_frozen() -> str:
        return f"{name} is frozen" if panel.team[name].state == "frozen" else ""

    def unless_frozen() -> str:
        return "" if if_frozen() else f"{name} is not frozen"

    def button(what: str, meaning: str, code: str, refusal: Callable[[], str] = lambda: "") -> Control:
        return _control(panel, name, what, BUTTON, meaning, line=lambda _: code, refusal=refusal)

    yield button(
        "freeze",
        "The consumer stops as in a long pause: no poll, no heartbeat, but its connections stay open.",
        f"cluster.freeze({of}.consumer)",
        if_frozen,
    )
    yield button(
        "unfreeze",
        "The frozen consumer continues with the records that it held.",
        f"cluster.unfreeze({of}.consumer)",
        unless_frozen,
    )
    yield button(
        "crash",
        "The consumer's process ends, and no broker gets a message: its locks have to expire.",
        f"cluster.crash({of}.consumer)",
    )
    yield button("close", "The consumer releases its records and leaves the group.", f"{of}.close()", if_frozen)


def policy_label(policy: Policy) -> str | None:
    """The label of a policy by its verdicts; None for another one."""
    verdicts = policy.poison, policy.release, policy.renew
    return next((label for label, p in POLICIES.items() if (p.poison, p.release, p.renew) == verdicts), None)
