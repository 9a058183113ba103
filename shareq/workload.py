"""A workload on a queue: consumers poll in turn and acknowledge every record; incidents interrupt them.

The tour, the tutorials and the load runs use it. It calls only the public API of consumers, so it works on any cluster.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shareq.consumer import Message, ShareConsumer
from shareq.model.errors import ConfigException
from shareq.model.states import AcknowledgeType

Verdict = Callable[[Message], AcknowledgeType]
"""Returns the acknowledge type of a message: ACCEPT, RELEASE or REJECT."""


@dataclass(frozen=True, slots=True)
class Incident:
    """An action that runs once after `after` deliveries, such as the kill of a broker."""

    after: int
    happen: Callable[[], object]


@dataclass(slots=True)
class Report:
    """The result of a workload: verdicts by type, deliveries by consumer (its index in the list), number of turns."""

    verdicts: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[int] = field(default_factory=Counter)
    turns: int = 0

    @property
    def delivered(self) -> int:
        """Number of deliveries to all consumers."""
        return self.deliveries.total()

    def __repr__(self) -> str:
        counts = ", ".join(f"{name.lower()} {count:,}" for name, count in sorted(self.verdicts.items()))
        return f"{self.delivered:,} deliveries to {len(self.deliveries)} consumers: {counts}"


def failing_once(poison: Callable[[Message], bool], *, failure_rate: float, rng: random.Random) -> Verdict:
    """A verdict: REJECT for poison, RELEASE for a part of the other records at their first delivery, else ACCEPT.

    `failure_rate`: that part, 0.0..1.0; ConfigException outside.
    """
    if not 0.0 <= failure_rate <= 1.0:
        raise ConfigException(f"failure_rate={failure_rate!r}: must be 0.0..1.0")

    def judge(message: Message) -> AcknowledgeType:
        if poison(message):
            return AcknowledgeType.REJECT
        if message.delivery_count() == 1 and rng.random() < failure_rate:
            return AcknowledgeType.RELEASE
        return AcknowledgeType.ACCEPT

    return judge


def work_off(
    consumers: list[ShareConsumer],
    verdict: Verdict,
    *,
    done: Callable[[], bool],
    incidents: Iterable[Incident] = (),
    on_delivered: Callable[[int], object] = lambda _: None,
    every_round: Callable[[], object] = lambda: None,
    poll_timeout: float = 0.0,
) -> Report:
    """Let the consumers poll in turn until a whole round delivers no record and `done()` is true.

    The consumers acknowledge explicitly. Incidents happen between a poll and its acknowledgements, when a consumer
    holds the most records. An incident that crashes a consumer removes it from the list. `on_delivered(n)` is called
    after each poll, for a progress bar. `every_round` advances a virtual clock by the time of a round, in which all
    consumers work in parallel.
    """
    team = list(consumers)
    report, pending, idle = Report(), sorted(incidents, key=lambda i: i.after), 0
    while idle < len(team) or not done():
        for place, consumer in enumerate(team):
            if consumer not in consumers:
                continue
            messages = consumer.poll(poll_timeout)
            report.turns += 1
            idle = 0 if len(messages) else idle + 1
            report.deliveries[place] += len(messages)
            while pending and report.delivered >= pending[0].after:
                pending.pop(0).happen()
            if consumer in consumers:
                _judge(consumer, messages, verdict, report)
            on_delivered(len(messages))
        every_round()
    return report


def _judge(consumer: ShareConsumer, messages: Iterable[Message], verdict: Verdict, report: Report) -> None:
    counts = dict.fromkeys(AcknowledgeType, 0)
    for message in messages:
        kind = verdict(message)
        consumer.acknowledge(message, kind)
        counts[kind] += 1
    for kind, count in counts.items():
        if count:
            report.verdicts[kind.name] += count
