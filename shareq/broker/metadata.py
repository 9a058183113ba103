"""What a broker answers about the cluster: Metadata, FindCoordinator, topics and configurations. All from the image;
what changes it goes to the controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shareq.broker.controller import Controller
from shareq.broker.placement import Outcome
from shareq.coordinator.share import find_share_coordinator
from shareq.log.config import TOPIC_CONFIGS
from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS
from shareq.model.errors import Errors
from shareq.model.ids import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
)
from shareq.model.image import NO_LEADER, ClusterImage, TopicImage
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.topics import (
    AlterOperation,
    ConfigSource,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)

# ---- Metadata --------------------------------------------------------------------------------------------------------


def metadata(request: MetadataRequest, image: ClusterImage) -> MetadataResponse:
    """Brokers alive, and topics by name or id; None asks for all."""
    brokers = tuple(
        MetadataResponse.Broker(node_id=b.broker_id, host=b.host, port=b.port, rack=b.rack)
        for b in image.brokers.values()
        if b.alive
    )
    if request.topics is None:
        topics = tuple(_topic(topic) for topic in image.topics.values())
    else:
        topics = tuple(_asked_topic(asked, image) for asked in request.topics)
    return MetadataResponse(
        brokers=brokers, cluster_id=image.cluster_id, controller_id=image.controller_id, topics=topics
    )


def _asked_topic(asked: MetadataRequest.Topic, image: ClusterImage) -> MetadataResponse.Topic:
    if asked.name is None:
        topic = image.topics_by_id.get(asked.topic_id)
        missing = MetadataResponse.Topic(name=None, topic_id=asked.topic_id, error_code=Errors.UNKNOWN_TOPIC_ID)
    else:
        topic = image.topics.get(asked.name)
        error = Errors.UNKNOWN_TOPIC_OR_PARTITION
        missing = MetadataResponse.Topic(name=asked.name, topic_id=ZERO_TOPIC_ID, error_code=error)
    return missing if topic is None else _topic(topic)


def _topic(topic: TopicImage) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            MetadataResponse.Partition(
                partition_index=index,
                leader_id=p.leader,
                leader_epoch=p.leader_epoch,
                replica_nodes=p.replicas,
                isr_nodes=p.isr,
                error_code=Errors.LEADER_NOT_AVAILABLE if p.leader == NO_LEADER else Errors.NONE,
            )
            for index, p in enumerate(topic.partitions)
        ),
    )


# ---- FindCoordinator -------------------------------------------------------------------------------------------------


def find_coordinators(request: FindCoordinatorRequest, controller: Controller) -> FindCoordinatorResponse:
    """Where the coordinator of each key is. The first question creates the coordinator's topic and is answered "not
    yet".
    """
    image = controller.image
    if request.key_type == CoordinatorType.SHARE:
        found = tuple(find_share_coordinator(key, image) for key in request.coordinator_keys)
        topic = SHARE_STATE_TOPIC
    elif request.key_type in _TOPICS:
        topic = _TOPICS[request.key_type]
        found = tuple(_coordinator(key, topic, image) for key in request.coordinator_keys)
    else:
        why = f"coordinator type {request.key_type} is not served"
        return FindCoordinatorResponse(
            coordinators=tuple(
                FindCoordinatorResponse.Coordinator(key=key, error_code=Errors.INVALID_REQUEST, error_message=why)
                for key in request.coordinator_keys
            )
        )
    if topic not in image.topics:
        controller.create_internal_topic(topic)
    return FindCoordinatorResponse(coordinators=found)


_TOPICS: dict[int, str] = {
    CoordinatorType.GROUP: GROUP_METADATA_TOPIC,
    CoordinatorType.TRANSACTION: TRANSACTION_STATE_TOPIC,
}
"""Where the state of groups and of transactional ids is kept: the leader of a key's partition coordinates it."""


def _coordinator(key: str, topic: str, image: ClusterImage) -> FindCoordinatorResponse.Coordinator:
    broker = image.coordinator(topic, key)
    if broker is None:
        return FindCoordinatorResponse.Coordinator(key=key, error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse.Coordinator(key=key, node_id=broker.broker_id, host=broker.host, port=broker.port)


# ---- topics ----------------------------------------------------------------------------------------------------------


def create_topics(request: CreateTopicsRequest, controller: Controller) -> CreateTopicsResponse:
    results = []
    for asked in request.topics:
        configs = {key: value for key, value in asked.configs if value is not None}
        (error, why), topic = controller.create_topic(
            asked.name,
            asked.num_partitions,
            asked.replication_factor,
            configs,
            validate_only=request.validate_only,
        )
        results.append(
            CreateTopicsResponse.Topic(
                name=asked.name,
                topic_id=topic.topic_id if topic else ZERO_TOPIC_ID,
                error_code=error,
                error_message=why,
                num_partitions=len(topic.partitions) if topic else -1,
                replication_factor=len(topic.partitions[0].replicas) if topic else -1,
            )
        )
    return CreateTopicsResponse(topics=tuple(results))


def delete_topics(request: DeleteTopicsRequest, controller: Controller) -> DeleteTopicsResponse:
    results = []
    for asked in request.topics:
        found = controller.image.topics_by_id.get(asked.topic_id)
        name = asked.name if asked.name is not None else found.name if found else None
        if name is None:
            outcome: Outcome = (Errors.UNKNOWN_TOPIC_ID, f"no topic has the id {asked.topic_id}")
        else:
            outcome = controller.delete_topic(name)
        error, why = outcome
        results.append(
            DeleteTopicsResponse.Topic(name=name, topic_id=asked.topic_id, error_code=error, error_message=why)
        )
    return DeleteTopicsResponse(responses=tuple(results))


def create_partitions(request: CreatePartitionsRequest, controller: Controller) -> CreatePartitionsResponse:
    results = []
    for asked in request.topics:
        error, why = controller.create_partitions(asked.name, asked.count, validate_only=request.validate_only)
        results.append(CreatePartitionsResponse.Topic(name=asked.name, error_code=error, error_message=why))
    return CreatePartitionsResponse(results=tuple(results))


# ---- configurations --------------------------------------------------------------------------------------------------


def describe_configs(request: DescribeConfigsRequest, image: ClusterImage) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=tuple(_describe_resource(asked, image) for asked in request.resources))


def _describe_resource(asked: DescribeConfigsRequest.Resource, image: ClusterImage) -> DescribeConfigsResponse.Result:
    error, why = Errors.NONE, None
    configs: list[DescribeConfigsResponse.Config] = []
    if asked.resource_type == ResourceType.TOPIC:
        topic = image.topics.get(asked.resource_name)
        if topic is None:
            error, why = Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {asked.resource_name!r} does not exist"
        else:
            defaults = {key: (d.default, d.doc) for key, d in TOPIC_CONFIGS.items()}
            configs = _configs(defaults, topic.configs, ConfigSource.TOPIC)
    elif asked.resource_type == ResourceType.GROUP:
        if not asked.resource_name:
            error, why = Errors.INVALID_REQUEST, "the group id is empty"
        else:
            configs = _group_configs(asked.resource_name, image)
    elif asked.resource_type == ResourceType.BROKER:
        defaults = {key: (d.default, d.doc) for key, d in BROKER_CONFIGS.items()}
        configs = _configs(defaults, image.broker_config.overrides, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    else:
        error, why = Errors.INVALID_REQUEST, f"resource type {asked.resource_type} is not served"
    keys = asked.configuration_keys
    return DescribeConfigsResponse.Result(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=tuple(c for c in configs if not keys or c.name in keys),
        error_code=error,
        error_message=why,
    )


def _group_configs(group_id: str, image: ClusterImage) -> list[DescribeConfigsResponse.Config]:
    """A group's effective values: its own, else the broker's."""
    defaults = {}
    for key, d in GROUP_CONFIGS.items():
        defaults[key] = (image.broker_config[d.broker_key] if d.broker_key else d.default, d.doc)
    configs = _configs(defaults, image.group_configs.get(group_id, {}), ConfigSource.GROUP)
    return [
        DescribeConfigsResponse.Config(
            name=c.name, value=c.value, config_source=ConfigSource.DYNAMIC_DEFAULT_BROKER, documentation=c.documentation
        )
        if c.config_source == ConfigSource.DEFAULT and GROUP_CONFIGS[c.name].broker_key in image.broker_config.overrides
        else c
        for c in configs
    ]


def _configs(
    defaults: Mapping[str, tuple[object, str]], overrides: Mapping[str, object], source: ConfigSource
) -> list[DescribeConfigsResponse.Config]:
    return [
        DescribeConfigsResponse.Config(
            name=key,
            value=_text(overrides.get(key, default)),
            config_source=source if key in overrides else ConfigSource.DEFAULT,
            documentation=doc,
        )
        for key, (default, doc) in defaults.items()
    ]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def alter_configs(request: IncrementalAlterConfigsRequest, controller: Controller) -> IncrementalAlterConfigsResponse:
    """Set and delete overrides. No configuration of ours is a list: there is nothing to append to or subtract from."""
    results = []
    for asked in request.resources:
        error, why = _alter_resource(asked, controller)
        results.append(
            IncrementalAlterConfigsResponse.Result(
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                error_code=error,
                error_message=why,
            )
        )
    return IncrementalAlterConfigsResponse(responses=tuple(results))


def _alter_resource(asked: IncrementalAlterConfigsRequest.Resource, controller: Controller) -> Outcome:
    refused = _refuse_alterations(asked.configs)
    if refused is not None:
        return refused
    changes = {c.name: c.value if c.config_operation == AlterOperation.SET else None for c in asked.configs}
    if asked.resource_type == ResourceType.TOPIC:
        return controller.alter_topic_configs(asked.resource_name, changes)
    if asked.resource_type == ResourceType.GROUP:
        return controller.alter_group_configs(asked.resource_name, changes)
    if asked.resource_type == ResourceType.BROKER:
        return controller.alter_broker_configs(changes)
    return Errors.INVALID_REQUEST, f"resource type {asked.resource_type} is not served"


def _refuse_alterations(configs: Iterable[IncrementalAlterConfigsRequest.Config]) -> Outcome | None:
    seen: set[str] = set()
    for config in configs:
        if config.name in seen:
            return Errors.INVALID_REQUEST, f"{config.name} is altered twice in one request"
        seen.add(config.name)
        if config.config_operation not in (AlterOperation.SET, AlterOperation.DELETE):
            return Errors.INVALID_CONFIG, f"{config.name} is not a list: it can be set or deleted"
        if config.config_operation == AlterOperation.SET and config.value is None:
            return Errors.INVALID_REQUEST, f"{config.name}=None: a value is needed to set it"
    return None
