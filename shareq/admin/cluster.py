"""The brokers of a cluster."""

from __future__ import annotations

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import Operation
from shareq.admin.results import ClusterDescription, NodeDescription


def describe_cluster(routing: BrokerRouting) -> Operation[ClusterDescription]:
    found = yield from routing.metadata(())
    return ClusterDescription(
        cluster_id=found.cluster_id,
        controller=found.controller_id,
        nodes=tuple(
            NodeDescription(id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in sorted(found.brokers, key=lambda broker: broker.node_id)
        ),
    )
