"""The lines that make a cluster like the one that a panel steers, as it was when the panel began."""

from __future__ import annotations

from typing import Any

from shareq.broker import Cluster

_REPLICAS = "default.replication.factor"
_MOST_REPLICAS = 3


def lines_of(cluster: Cluster) -> list[str]:
    """Lines that make the cluster, its topics and the configurations of its groups; records and members are not in
    them. The topics of a backend are there already."""
    if cluster.backend:
        return [f"cluster = Cluster(backend={cluster.backend!r}{_more(cluster)})"]
    brokers = len(cluster.image.brokers)
    lines = [f"cluster = Cluster(brokers={brokers}, seed={cluster.seed}{_more(cluster)})"]
    for name, topic in cluster.image.topics.items():
        if not name.startswith("__"):
            more = f", configs={dict(topic.configs)!r}" if topic.configs else ""
            replicas = len(topic.partitions[0].replicas)
            more += f", replication_factor={replicas}" if replicas != min(brokers, _MOST_REPLICAS) else ""
            lines.append(f"cluster.create_topic({name!r}, {len(topic.partitions)}{more})")
    for group, configs in cluster.image.group_configs.items():
        if configs:
            lines.append(f"cluster.configure_group({group!r}, {dict(configs)!r})")
    return lines


def _more(cluster: Cluster) -> str:
    """The arguments that differ from the defaults."""
    image = cluster.image
    racks = [broker.rack for _, broker in sorted(image.brokers.items())]
    config = dict(image.static_configs)
    if config.get(_REPLICAS) == min(len(racks), _MOST_REPLICAS):  # without a value of the application
        del config[_REPLICAS]
    given: dict[str, Any] = {
        "clock": None if cluster.clock == ("wall" if cluster.backend else "virtual") else cluster.clock,
        "config": config,
        "latency_ms": 0 if cluster.backend else cluster.network.latency_ms,
        "racks": racks if any(racks) and not cluster.backend else None,
    }
    return "".join(f", {name}={value!r}" for name, value in given.items() if value)
