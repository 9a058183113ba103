"""The texts of a cluster: the HTML in a notebook, with its brokers and topics, and parts of its representation."""

from __future__ import annotations

from collections.abc import Callable

from shareq.html import Html, html, strong, table
from shareq.log.memory import MemoryLog
from shareq.model.ids import INTERNAL_TOPICS
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of

IN_PROCESS = "in this process"
"""In place of the address of a broker that no server makes reachable."""


def clock_and_persister(clock: str | float, image: ClusterImage) -> str:
    """The clock, and the persister if it is not Kafka's default."""
    design = design_of(image.broker_config[PERSISTER_CLASS])
    return f"{clock} clock" + ("" if design is StateDesign.STATE_TOPIC else f", persister {design}")


def cluster_html(
    address: str, about: str, image: ClusterImage, log: Callable[[str, int], MemoryLog], *, served: bool
) -> str:
    """Two tables, of brokers and of topics; internal topics are only counted. `served`: brokers listen at their
    addresses."""
    led = dict.fromkeys(image.brokers, 0)
    for topic in image.topics.values():
        for partition in topic.partitions:
            if partition.leader != NO_LEADER:
                led[partition.leader] += 1
    brokers = table(
        ("broker", "address", "state", "partitions led"),
        [
            (
                b.broker_id,
                f"{b.host}:{b.port}" if served else IN_PROCESS,
                "alive" if b.alive else strong("down"),
                led[b.broker_id],
            )
            for b in image.brokers.values()
        ],
        caption=Html(f"{strong(address)} · {html(about)}"),
    )
    return brokers + _topics(image, log)


def _topics(image: ClusterImage, log: Callable[[str, int], MemoryLog]) -> str:
    rows = []
    for topic in image.topics.values():
        if topic.name not in INTERNAL_TOPICS:
            logs = [log(topic.name, index) for index in range(len(topic.partitions))]
            leaders = ", ".join("none" if p.leader == NO_LEADER else str(p.leader) for p in topic.partitions[:12])
            records = sum(one.high_watermark - one.log_start_offset for one in logs)
            rows.append((topic.name, len(logs), leaders + (" ..." if len(logs) > 12 else ""), records))
    internal = len(image.topics) - len(rows)
    return table(
        ("topic", "partitions", "leaders", "records"), rows, caption=f"{internal} internal topics" if internal else None
    )
