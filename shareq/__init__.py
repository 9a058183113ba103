"""shareq: see, run, break and measure Kafka share groups (KIP-932) from a notebook.

Every public name can be imported from here. Its module is loaded on first access, which keeps `import shareq` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shareq.model.transport import register_observer, register_scheme, register_server

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shareq.admin import Admin, NewTopic
    from shareq.broker import Cluster
    from shareq.client import TopicPartition
    from shareq.consumer import DeserializingShareConsumer, Message, Messages, ShareConsumer
    from shareq.model.errors import (
        ClientFailedException,
        ConcurrentModificationException,
        ConfigException,
        Errors,
        IllegalStateException,
        KafkaError,
        KafkaException,
        WakeupException,
    )
    from shareq.model.states import AcknowledgeType, RecordState
    from shareq.observer import Observer, observe
    from shareq.producer import Producer
    from shareq.trace import Journal, lag_plot, ledger, messages, metrics, raster, view

_HOMES = {
    "Admin": "shareq.admin",
    "NewTopic": "shareq.admin",
    "Cluster": "shareq.broker",
    "TopicPartition": "shareq.client",
    "DeserializingShareConsumer": "shareq.consumer",
    "Message": "shareq.consumer",
    "Messages": "shareq.consumer",
    "ShareConsumer": "shareq.consumer",
    "ClientFailedException": "shareq.model.errors",
    "ConcurrentModificationException": "shareq.model.errors",
    "ConfigException": "shareq.model.errors",
    "Errors": "shareq.model.errors",
    "IllegalStateException": "shareq.model.errors",
    "KafkaError": "shareq.model.errors",
    "KafkaException": "shareq.model.errors",
    "WakeupException": "shareq.model.errors",
    "Observer": "shareq.observer",
    "observe": "shareq.observer",
    "AcknowledgeType": "shareq.model.states",
    "RecordState": "shareq.model.states",
    "Producer": "shareq.producer",
    "Journal": "shareq.trace",
    "lag_plot": "shareq.trace",
    "ledger": "shareq.trace",
    "messages": "shareq.trace",
    "metrics": "shareq.trace",
    "raster": "shareq.trace",
    "view": "shareq.trace",
}

__all__ = [
    "AcknowledgeType",
    "Admin",
    "ClientFailedException",
    "Cluster",
    "ConcurrentModificationException",
    "ConfigException",
    "DeserializingShareConsumer",
    "Errors",
    "IllegalStateException",
    "Journal",
    "KafkaError",
    "KafkaException",
    "Message",
    "Messages",
    "NewTopic",
    "Observer",
    "Producer",
    "RecordState",
    "ShareConsumer",
    "TopicPartition",
    "WakeupException",
    "__version__",
    "lag_plot",
    "ledger",
    "messages",
    "metrics",
    "observe",
    "raster",
    "view",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'shareq' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _serve(cluster: Any, host: str, ports: Any) -> Any:
    """Serve a cluster over TCP. The import is local, so that a program without a server loads no sockets."""
    return import_module("shareq.wire.server").Server(cluster, host, ports)


def _tcp(bootstrap_servers: str, conf: Mapping[str, Any]) -> Any:
    """The transport for clients that connect to `host:port`."""
    return import_module("shareq.wire.client").TcpTransport(bootstrap_servers, conf)


def _observe(bootstrap_servers: str, group: str, topics: list[str] | None) -> Any:
    """An observer of the cluster at an address, through the Kafka protocol only."""
    return import_module("shareq.observer").observe(bootstrap_servers, group, topics)


register_server(_serve)
register_observer(_observe)
register_scheme("", _tcp)
