"""How a cluster shows itself in a notebook: its brokers and its topics, as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shareq.model.html import Html, strong, table
from shareq.model.ids import INTERNAL_TOPICS
from shareq.model.image import NO_LEADER

if TYPE_CHECKING:
    from shareq.broker.cluster import Cluster


def cluster_html(cluster: Cluster) -> str:
    """Two tables; internal topics are counted, not listed."""
    image = cluster.image
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
        caption=Html(f"{strong(cluster.bootstrap_servers)} · {cluster.clock} clock, seed {cluster.seed}"),
    )
    return brokers + _topics(cluster)


def _topics(cluster: Cluster) -> str:
    rows = []
    for topic in cluster.image.topics.values():
        if topic.name not in INTERNAL_TOPICS:
            logs = [cluster.log(topic.name, index) for index in range(len(topic.partitions))]
            leaders = ", ".join("none" if p.leader == NO_LEADER else str(p.leader) for p in topic.partitions[:12])
            records = sum(log.log_end_offset - log.log_start_offset for log in logs)
            rows.append((topic.name, len(logs), leaders + (" ..." if len(logs) > 12 else ""), records))
    internal = len(cluster.image.topics) - len(rows)
    return table(
        ("topic", "partitions", "leaders", "records"), rows, caption=f"{internal} internal topics" if internal else None
    )
