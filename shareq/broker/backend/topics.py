"""The topics of this project in the backend: their names there, and their configurations. BEHAVIOUR.md, section 1."""

from __future__ import annotations

from shareq.broker.placement import internal_topic
from shareq.model.configs import BrokerConfig
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from shareq.model.messages.topics import CreateTopicsRequest

GROUP_CONFIGS_TOPIC = "shareq-group-configs"
"""One partition, compacted: key = group id, value = its configurations as a JSON object."""

IN_BACKEND = {GROUP_METADATA_TOPIC: "shareq-group-metadata", SHARE_STATE_TOPIC: "shareq-share-group-state"}
"""The topics of the coordinators. Kafka's own topics of these names belong to the backend's coordinators."""

HERE = {name: ours for ours, name in IN_BACKEND.items()}


COMPACTION_LAG_MS = 3_600_000
"""How long compaction leaves a record: a writer looks for records of a replaced one several times as often."""


def new_topic(name: str, config: BrokerConfig, brokers: int) -> CreateTopicsRequest:
    """The request that creates a topic of this project; `name` is the one in the backend."""
    if name == GROUP_CONFIGS_TOPIC:
        count, factor, configs = 1, 3, {"cleanup.policy": "compact"}
    else:
        count, factor, configs = internal_topic(HERE[name], config)
    if configs.get("cleanup.policy") == "compact":
        configs = {**configs, "min.compaction.lag.ms": str(COMPACTION_LAG_MS)}
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=count, replication_factor=min(factor, brokers), configs=tuple(configs.items())
    )
    return CreateTopicsRequest(topics=(topic,))
