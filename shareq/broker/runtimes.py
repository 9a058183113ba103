"""The runtime of a `Cluster`: brokers in this process, or share groups on the topics of an Apache Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shareq.broker.cluster_runtime import ClusterRuntime
from shareq.model.configs import BrokerConfig

if TYPE_CHECKING:
    from shareq.broker.backend.runtime import BackendRuntime

Config = Mapping[str, object]


def make_runtime(
    brokers: int | None,
    backend: str | None,
    config: Config,
    *,
    racks: Sequence[str | None] | None,
    latency_ms: int,
    backend_config: Config | None,
    peer_config: Config | None,
    **shared: Any,
) -> ClusterRuntime | BackendRuntime:
    """The runtime for the arguments of a `Cluster`, which have been checked."""
    if brokers is None or backend is not None:
        from shareq.broker.backend.runtime import BackendRuntime  # a cluster in memory loads no sockets

        return BackendRuntime(str(backend), config, backend_config or {}, peer_config or {}, **shared)
    broker_config = BrokerConfig({"default.replication.factor": min(3, brokers), **config})
    return ClusterRuntime(list(racks or [None] * brokers), broker_config, latency_ms=latency_ms, **shared)
