"""The controls of records, brokers, state writes, the clock, offsets and logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shareq.model.errors import ConfigException
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq_widgets.steering.consumers import add_consumer, consumer_controls
from shareq_widgets.steering.control import BUTTON, CHOICE, SLIDER, Control, Range
from shareq_widgets.steering.panel import BROKERS, CLOCK, LOGS, RECORDS, STATE_WRITES, ControlTarget


def all_but_configs(panel: ControlTarget) -> Iterator[Control]:
    """The controls of all areas but the configurations, in order."""
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


def record_controls(panel: ControlTarget, topic: str) -> Iterator[Control]:
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


# ---- brokers, state writes, the clock --------------------------------------------------------------------------------

OF_BACKEND = "brokers and logs are those of the backend"


def in_memory(panel: ControlTarget, refusal: Callable[[], str] = lambda: "") -> Callable[[], str]:
    """The refusal of a control of brokers or logs, which a cluster on a backend does not have."""
    return lambda: OF_BACKEND if panel.cluster.backend else refusal()


def broker_controls(panel: ControlTarget) -> Iterator[Control]:
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
            refusal=in_memory(panel, refusal),
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
        refusal=in_memory(panel),
        line=lambda _: "cluster.elect_preferred_leaders()",
    )


def state_write_controls(panel: ControlTarget) -> Iterator[Control]:
    cluster = panel.cluster

    def control(name: str, kind: str, meaning: str, line: Callable[[Any], str], **more: Any) -> Control:
        more["refusal"] = in_memory(panel)
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


def clock_controls(panel: ControlTarget) -> Iterator[Control]:
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
        "next event",
        BUTTON,
        "Runs the cluster's next event, at its time. The player's steps move only what is shown.",
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
        refusal=lambda: "a virtual clock has no speed: it moves with `advance` and `next event`" if virtual else "",
    )


# ---- offsets and logs ------------------------------------------------------------------------------------------------


def log_controls(panel: ControlTarget) -> Iterator[Control]:
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
        refusal=in_memory(panel),
        line=lambda _: "cluster.clean_logs()",
    )


def _reset_offsets(panel: ControlTarget, topic: str) -> Control:
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


def _delete_records(panel: ControlTarget, topic: str, partition: int) -> Control:
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
