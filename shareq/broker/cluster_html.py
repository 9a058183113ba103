"""The HTML of a cluster in a notebook: its brokers and its topics."""

from __future__ import annotations

from collections.abc import Callable

from shareq.log.memory import MemoryLog
from shareq.model.html import Html, html, strong, table
from shareq.model.ids import INTERNAL_TOPICS
from shareq.model.image import NO_LEADER, ClusterImage


def cluster_html(address: str, about: str, image: ClusterImage, log: Callable[[str, int], MemoryLog]) -> str:
    """Two tables, of brokers and of topics; internal topics are only counted."""
    led = dict.fromkeys(image.brokers, 0)
    for topic in image.topics.values():
        for partition in topic.partitions:
            if partition.leader != NO_LEADER:
                led[partition.leader] += 1
    brokers = table(
        ("broker", "address", "state", "partitions led"),
        [
            (b.broker_id, f"{b.host}:{b.port}", "alive" if b.alive else strong("down"), led[b.broker_id])
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
            records = sum(one.log_end_offset - one.log_start_offset for one in logs)
            rows.append((topic.name, len(logs), leaders + (" ..." if len(logs) > 12 else ""), records))
    internal = len(image.topics) - len(rows)
    return table(
        ("topic", "partitions", "leaders", "records"), rows, caption=f"{internal} internal topics" if internal else None
    )
