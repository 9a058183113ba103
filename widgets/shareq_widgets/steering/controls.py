"""The controls of records, consumers, brokers, state writes, the clock, offsets and logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from string import ascii_uppercase
from typing import Any, Protocol

from shareq.broker import Cluster
from shareq.model.errors import ConfigException
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.team import Feed, Policy, Team, Worker
from shareq_widgets.steering.control import BUTTON, CHOICE, SLIDER, Control, Executor, Range

RECORDS, CONSUMERS, BROKERS, STATE_WRITES, CLOCK, LOGS = (
    "records",
    "consumers",
    "brokers",
    "state writes",
    "clock",
    "offsets and logs",
)
"""The areas, in order of display; those of the configurations follow."""

POLICIES: dict[str, Policy] = {
    "accept": Policy(),
    "release some": Policy(release=0.3),
    "reject poison": Policy(poison="reject"),
    "release poison": Policy(poison="release"),
    "renew": Policy(renew=True),
}
"""The verdict policies to choose from, by label. Work times and commits are set apart."""


class Panel(Executor, Protocol):
    """What the controls act on."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def group(self) -> str: ...
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def team(self) -> Team: ...
    @property
    def feeds(self) -> dict[str, Feed]: ...
    def feed_name(self, topic: str) -> str: ...
    def members(self) -> list[str]: ...


def all_but_configs(panel: Panel) -> Iterator[Control]:
    """The controls of all areas above, in order."""
    for topic in panel.topics:
        yield from record_controls(panel, topic)
    yield add_consumer(panel)
    for worker in panel.team:
        yield from consumer_controls(panel, worker.name)
    yield from broker_controls(panel)
    yield from state_write_controls(panel)
    yield from clock_controls(panel)
    yield from log_controls(panel)


# ---- records ---------------------------------------------------------------------------------------------------------


def record_controls(panel: Panel, topic: str) -> Iterator[Control]:
    feed, name = panel.feeds[topic], panel.feed_name(topic)
    of = "" if len(panel.topics) == 1 else f" to {topic}"

    def slider(what: str, attribute: str, meaning: str, unit: str, span: Range) -> Control:
        return Control(
            panel=panel,
            name=what + of,
            area=RECORDS,
            subject=topic,
            kind=SLIDER,
            meaning=meaning,
            unit=unit,
            span=lambda: span,
            current=lambda: getattr(feed, attribute),
            line=lambda value: f"{name}.{attribute} = {value!r}",
        )

    yield Control(
        panel=panel,
        name=f"produce{of}",
        area=RECORDS,
        subject=topic,
        kind=SLIDER,
        meaning="Produces this many records now.",
        unit="records",
        momentary=True,
        span=lambda: Range(1, 1000, log=True, most=100_000),
        current=lambda: 10,
        line=lambda value: f"{name}.send({value!r})",
    )
    yield slider(
        "rate",
        "rate",
        "Records produced per second of the cluster's time.",
        "records/s",
        Range(0, 1000, log=True, whole=False, most=10_000),
    )
    yield slider("batch", "batch", "Records of a record batch.", "records", Range(1, 500, log=True, most=10_000))
    yield slider(
        "poison every", "poison_every", "Each n-th record is poison; 0: none.", "records", Range(0, 100, most=100_000)
    )
    yield slider(
        "slow every", "slow_every", "Each n-th record is slow; 0: none.", "records", Range(0, 100, most=100_000)
    )


# ---- consumers -------------------------------------------------------------------------------------------------------


def add_consumer(panel: Panel) -> Control:
    def line(label: str) -> str:
        policy = POLICIES[label]
        name = next_name(panel.team)
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


def next_name(team: Team) -> str:
    """The first name of A, B, ..., Z, A2, B2, ... that the team has not used."""
    used = {worker.name for worker in team}
    number = 1
    while True:
        for letter in ascii_uppercase:
            name = letter if number == 1 else f"{letter}{number}"
            if name not in used:
                return name
        number += 1


def consumer_controls(panel: Panel, name: str) -> Iterator[Control]:
    """The controls of one consumer; those of a closed or crashed one are not available."""

    def worker() -> Worker:
        return panel.team[name]

    def gone() -> str:
        return "" if worker().at_work else f"{name} is {worker().state}"

    def unless(*states: str) -> Callable[[], str]:
        return lambda: gone() or (f"{name} is {worker().state}" if worker().state in states else "")

    def unless_not_frozen() -> str:
        return gone() or ("" if worker().state == "frozen" else f"{name} is not frozen")

    def policy_line(**change: Any) -> str:
        return f"team[{name!r}].policy = {replace(worker().policy, **change)!r}"

    def verdict_line(label: str) -> str:
        chosen = POLICIES[label]
        return policy_line(poison=chosen.poison, release=chosen.release, renew=chosen.renew)

    def control(what: str, kind: str, meaning: str, line: Callable[[Any], str], **more: Any) -> Control:
        return Control(
            panel=panel,
            name=f"{what} {name}",
            area=CONSUMERS,
            subject=name,
            kind=kind,
            meaning=meaning,
            line=line,
            **{"refusal": gone, **more},
        )

    def span() -> Range:
        return Range(0, 120_000, log=True, most=3_600_000)

    yield control(
        "policy of",
        CHOICE,
        "How the consumer acknowledges its records.",
        verdict_line,
        options=lambda: tuple(POLICIES),
        current=lambda: policy_label(worker().policy),
    )
    yield control(
        "work time of",
        SLIDER,
        "The time that the consumer works on a record.",
        lambda ms: policy_line(work_ms=ms),
        unit="ms",
        span=span,
        current=lambda: worker().policy.work_ms,
    )
    yield control(
        "slow-record time of",
        SLIDER,
        "The time that the consumer works on a record marked as slow.",
        lambda ms: policy_line(slow_ms=ms),
        unit="ms",
        span=span,
        current=lambda: worker().policy.work_ms if worker().policy.slow_ms is None else worker().policy.slow_ms,
    )
    yield control(
        "commit of",
        CHOICE,
        "Whether acknowledgements are sent with the next poll, or after each record.",
        lambda when: policy_line(commit=when),
        options=lambda: ("poll", "record"),
        current=lambda: worker().policy.commit,
    )
    of = f"team[{name!r}]"
    yield control(
        "freeze",
        BUTTON,
        "The consumer stops as in a long pause: no poll, no heartbeat, but its connections stay open.",
        lambda _: f"cluster.freeze({of}.consumer)",
        refusal=unless("frozen"),
    )
    yield control(
        "unfreeze",
        BUTTON,
        "The frozen consumer continues with the records that it held.",
        lambda _: f"cluster.unfreeze({of}.consumer)",
        refusal=unless_not_frozen,
    )
    yield control(
        "crash",
        BUTTON,
        "The consumer's process ends without a word: its locks have to expire.",
        lambda _: f"cluster.crash({of}.consumer)",
    )
    yield control(
        "close",
        BUTTON,
        "The consumer releases its records and leaves the group.",
        lambda _: f"{of}.close()",
        refusal=unless("frozen"),
    )


def policy_label(policy: Policy) -> str | None:
    """The label of a policy by its verdicts; None for another one."""
    verdicts = policy.poison, policy.release, policy.renew
    return next((label for label, p in POLICIES.items() if (p.poison, p.release, p.renew) == verdicts), None)


# ---- brokers, state writes, the clock --------------------------------------------------------------------------------


def broker_controls(panel: Panel) -> Iterator[Control]:
    cluster = panel.cluster

    def control(verb: str, meaning: str, broker_id: int, *, alive: bool) -> Control:
        def refusal() -> str:
            is_alive = broker_id in cluster.brokers_alive
            return "" if is_alive == alive else f"broker {broker_id} is {'running' if is_alive else 'not running'}"

        return Control(
            panel=panel,
            name=f"{verb} broker {broker_id}",
            area=BROKERS,
            subject=f"broker {broker_id}",
            kind=BUTTON,
            meaning=meaning,
            refusal=refusal,
            line=lambda _: f"cluster.{verb}_broker({broker_id})",
        )

    for broker_id in sorted(cluster.image.brokers):
        yield control("kill", "The broker ends at once: connections break, its memory is lost.", broker_id, alive=True)
        yield control("stop", "The broker hands over its leadership, then ends.", broker_id, alive=True)
        yield control("start", "The broker starts again with its logs and an empty memory.", broker_id, alive=False)
    yield Control(
        panel=panel,
        name="elect preferred leaders",
        area=BROKERS,
        kind=BUTTON,
        meaning="Each partition is led by the first of its replicas that is alive.",
        line=lambda _: "cluster.elect_preferred_leaders()",
    )


def state_write_controls(panel: Panel) -> Iterator[Control]:
    cluster = panel.cluster

    def control(name: str, kind: str, meaning: str, line: Callable[[Any], str], **more: Any) -> Control:
        return Control(panel=panel, name=name, area=STATE_WRITES, kind=kind, meaning=meaning, line=line, **more)

    yield control(
        "fail state writes",
        SLIDER,
        "The next appends to the state topic fail with NOT_ENOUGH_REPLICAS.",
        lambda times: f"cluster.fail_appends({SHARE_STATE_TOPIC!r}, times={times!r})",
        unit="writes",
        momentary=True,
        span=lambda: Range(1, 20, most=1000),
        current=lambda: 1,
    )
    yield control(
        "delay state writes",
        SLIDER,
        "Each append to the state topic takes this much longer; records stay acquired meanwhile.",
        lambda ms: f"cluster.delay_appends({SHARE_STATE_TOPIC!r}, {ms!r})",
        unit="ms",
        span=lambda: Range(0, 10_000, log=True, most=3_600_000),
        current=lambda: cluster.append_delay_ms(SHARE_STATE_TOPIC),
    )
    yield control("clear faults", BUTTON, "No append fails or is delayed any more.", lambda _: "cluster.clear_faults()")


def clock_controls(panel: Panel) -> Iterator[Control]:
    cluster = panel.cluster
    virtual = cluster.loop.virtual

    def only_virtual() -> str:
        return "" if virtual else f"clock={cluster.clock!r} runs by itself"

    def control(name: str, kind: str, meaning: str, line: Callable[[Any], str], **more: Any) -> Control:
        return Control(panel=panel, name=name, area=CLOCK, kind=kind, meaning=meaning, line=line, **more)

    yield control(
        "advance",
        SLIDER,
        "Lets this much of the cluster's time pass.",
        lambda ms: f"cluster.advance({ms!r})",
        unit="ms",
        momentary=True,
        span=lambda: Range(1, 600_000, log=True, least=0, most=86_400_000),
        current=lambda: 1000,
        refusal=only_virtual,
    )
    yield control(
        "step",
        BUTTON,
        "Runs the next event, at its time.",
        lambda _: "cluster.step()",
        momentary=True,
        refusal=only_virtual,
    )
    yield control(
        "speed",
        SLIDER,
        "How fast the cluster's clock runs, compared with the wall clock.",
        lambda factor: f"cluster.change_speed({factor!r})",
        unit="x",
        span=lambda: Range(0.1, 100, log=True, whole=False, least=0.001, most=1000),
        current=lambda: None if virtual else 1.0 if cluster.clock == "wall" else float(cluster.clock),
        refusal=lambda: "a virtual clock has no speed: it moves with `advance` and `step`" if virtual else "",
    )


# ---- offsets and logs ------------------------------------------------------------------------------------------------


def log_controls(panel: Panel) -> Iterator[Control]:
    for topic in panel.topics:
        yield _reset_offsets(panel, topic)
        for partition in range(len(panel.cluster.image.topics[topic].partitions)):
            yield _delete_records(panel, topic, partition)
    yield Control(
        panel=panel,
        name="trigger retention",
        area=LOGS,
        kind=BUTTON,
        meaning="Runs retention and compaction of all logs now, instead of at the next five minutes.",
        line=lambda _: "cluster.clean_logs()",
    )


def _reset_offsets(panel: Panel, topic: str) -> Control:
    name = f"reset offsets of {topic}"

    def check(value: Any) -> Any:
        offset = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if not (offset or (isinstance(value, str) and value in ("earliest", "latest"))):
            raise ConfigException(f"{name}={value!r}: must be 'earliest', 'latest', or an offset >= 0")
        return value

    def refusal() -> str:
        members = panel.members()
        return f"the group has members: {', '.join(members)}; only an empty group can be reset" if members else ""

    return Control(
        panel=panel,
        name=name,
        area=LOGS,
        subject=topic,
        kind=CHOICE,
        meaning="Moves the share-partition start offsets of the group in all partitions of the topic.",
        momentary=True,
        options=lambda: ("earliest", "latest"),
        current=lambda: "earliest",
        checked=check,
        refusal=refusal,
        line=lambda value: f"admin.alter_share_group_offsets({panel.group!r}, {{{topic!r}: {value!r}}}).check()",
    )


def _delete_records(panel: Panel, topic: str, partition: int) -> Control:
    cluster = panel.cluster

    def span() -> Range:
        log = cluster.log(topic, partition)
        return Range(log.log_start_offset, log.log_end_offset, least=0)

    def refusal() -> str:
        log = cluster.log(topic, partition)
        return "" if log.log_start_offset < log.log_end_offset else f"{topic}-{partition} is empty"

    return Control(
        panel=panel,
        name=f"delete records of {topic}-{partition}",
        area=LOGS,
        subject=f"{topic}-{partition}",
        kind=SLIDER,
        meaning="Deletes the records below this offset, which becomes the log start.",
        unit="offset",
        momentary=True,
        span=span,
        current=lambda: cluster.log(topic, partition).log_start_offset,
        refusal=refusal,
        line=lambda offset: f"admin.delete_records({{({topic!r}, {partition}): {offset}}}).check()",
    )
