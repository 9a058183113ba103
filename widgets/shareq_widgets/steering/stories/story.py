"""A story: a cluster of its own, and steps whose actions are those of the panel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from shareq.broker import Cluster
from shareq.model.errors import IllegalStateException
from shareq_widgets.steering.steering import Steering
from shareq_widgets.steering.stories.evidence import GROUP, TOPIC, Evidence

Action = tuple[str, Any]
"""The name of a control, and its value."""

Actions = tuple[Action, ...] | Callable[[Steering], Iterable[Action]]
"""Actions that depend on the state of the cluster, such as which broker leads, are a function; it is called once, and
each action is done before the next one is asked for."""

BEGINNING: tuple[Action, ...] = (
    (f"share.auto.offset.reset of {GROUP}", "earliest"),
    ("add consumer", "accept"),
    ("add consumer", "accept"),
    ("advance", 10_000),
)
"""Two idle consumers, A and B, that have joined the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`text` says what is about to happen; `question` is for the reader, before it happens; `answer` is computed from
    the evidence after the actions."""

    text: str
    question: str
    actions: Actions
    answer: Callable[[Evidence], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A story to begin, as often as wanted: it always has the same course. `label`: its title on a button."""

    name: str
    title: str
    label: str
    about: str
    steps: tuple[Step, ...]
    beginning: tuple[Action, ...] = BEGINNING
    brokers: int = 3
    seed: int = 11

    def begin(self) -> Story:
        """A new cluster on a virtual clock with the story's beginning, before its first step."""
        cluster = Cluster(brokers=self.brokers, seed=self.seed, trace_messages=True)
        cluster.create_topic(TOPIC)
        steering = Steering(cluster, GROUP, [TOPIC])
        for name, value in self.beginning:
            steering.do(name, value)
        return Story(self, steering)


class Story:
    """A story in progress. Show `text` and `question`, then call `next()`, then show the `answer` that it returns.

    `steering` is the panel of the story's cluster: views watch `steering.cluster`, group `steering.group`.
    """

    def __init__(self, preset: Preset, steering: Steering) -> None:
        self.preset = preset
        self.steering = steering
        self.answers: list[str] = []
        """Those of the steps done so far."""

    @property
    def count(self) -> int:
        """The number of steps."""
        return len(self.preset.steps)

    @property
    def position(self) -> int:
        """The number of steps done: 0..count."""
        return len(self.answers)

    @property
    def done(self) -> bool:
        return self.position == self.count

    @property
    def step(self) -> Step | None:
        """The step that `next` does; None after the last one."""
        return None if self.done else self.preset.steps[self.position]

    @property
    def text(self) -> str:
        """What the next step is about to do; "" after the last one."""
        return self.step.text if self.step else ""

    @property
    def question(self) -> str:
        """The question of the next step; "" after the last one."""
        return self.step.question if self.step else ""

    @property
    def answer(self) -> str:
        """The answer of the last step done; "" before the first one."""
        return self.answers[-1] if self.answers else ""

    def next(self) -> str:
        """Do the actions of the next step, and return its answer. IllegalStateException after the last step."""
        step = self.step
        if step is None:
            raise IllegalStateException(f"the story {self.preset.name!r} has ended after {self.count} steps")
        since = self.steering.cluster.journal.total
        actions = step.actions(self.steering) if callable(step.actions) else step.actions
        for name, value in actions:
            self.steering.do(name, value)
        self.answers.append(step.answer(Evidence(self.steering, since)))
        return self.answer

    def close(self) -> None:
        """Close the story's cluster."""
        self.steering.cluster.close()

    def __repr__(self) -> str:
        return f"{self.preset.title}: step {self.position} of {self.count}"
