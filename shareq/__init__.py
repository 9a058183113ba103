"""shareq: see, run, break and measure Kafka share groups (KIP-932) from a notebook.

Every public name can be imported from here. Its module is loaded on first access, which keeps `import shareq` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shareq.version import __version__

if TYPE_CHECKING:
    from shareq import kafka, sim, spark
    from shareq.admin import Admin, NewTopic, UserScramCredentialDeletion, UserScramCredentialUpsertion
    from shareq.broker import Cluster
    from shareq.client import TopicPartition
    from shareq.consumer import DeserializingShareConsumer, Message, Messages, ShareConsumer
    from shareq.model.acls import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )
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
    from shareq.model.scram import ScramCredentialInfo, ScramMechanism
    from shareq.model.states import AcknowledgeType, RecordState
    from shareq.observer import Monitor, Observer, lag_plot, monitor, observe, view
    from shareq.producer import Producer
    from shareq.proxy import Tap, tap
    from shareq.trace import Journal, ledger, messages, metrics, raster
    from shareq.wire.security.listener_security import ListenerSecurity

_HOMES = {
    "AclBinding": "shareq.model.acls",
    "AclBindingFilter": "shareq.model.acls",
    "AclOperation": "shareq.model.acls",
    "AclPermissionType": "shareq.model.acls",
    "ResourcePatternType": "shareq.model.acls",
    "ResourceType": "shareq.model.acls",
    "Admin": "shareq.admin",
    "NewTopic": "shareq.admin",
    "UserScramCredentialDeletion": "shareq.admin",
    "UserScramCredentialUpsertion": "shareq.admin",
    "ScramCredentialInfo": "shareq.model.scram",
    "ScramMechanism": "shareq.model.scram",
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
    "Monitor": "shareq.observer",
    "monitor": "shareq.observer",
    "Observer": "shareq.observer",
    "observe": "shareq.observer",
    "AcknowledgeType": "shareq.model.states",
    "RecordState": "shareq.model.states",
    "Producer": "shareq.producer",
    "Tap": "shareq.proxy",
    "tap": "shareq.proxy",
    "Journal": "shareq.trace",
    "ListenerSecurity": "shareq.wire.security.listener_security",
    "lag_plot": "shareq.observer",
    "ledger": "shareq.trace",
    "messages": "shareq.trace",
    "metrics": "shareq.trace",
    "raster": "shareq.trace",
    "view": "shareq.observer",
}

__all__ = [
    "AcknowledgeType",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
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
    "ListenerSecurity",
    "Message",
    "Messages",
    "Monitor",
    "NewTopic",
    "Observer",
    "Producer",
    "RecordState",
    "ResourcePatternType",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "ShareConsumer",
    "Tap",
    "TopicPartition",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "WakeupException",
    "__version__",
    "kafka",
    "lag_plot",
    "ledger",
    "messages",
    "metrics",
    "monitor",
    "observe",
    "raster",
    "sim",
    "spark",
    "tap",
    "view",
]


_ROOMS = frozenset({"kafka", "sim", "spark"})
"""Packages with public names of their own, such as `shareq.kafka.LocalKafka`, after `import shareq` alone."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"shareq.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'shareq' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
