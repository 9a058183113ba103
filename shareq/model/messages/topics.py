"""Administration of topics and configurations: CreateTopics (19), DeleteTopics (20), CreatePartitions (37),
ElectLeaders (43), DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44)."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.base import Request, Response, message


@message
class CreateTopicsRequest(Request):
    API_KEY: ClassVar[int] = 19

    @message
    class Assignment:
        """Replicas of one partition; the first is the preferred leader."""

        partition_index: int
        broker_ids: tuple[int, ...]

    @message
    class Topic:
        """A count of -1 requests the broker's default; with `assignments` both counts must be -1."""

        name: str
        num_partitions: int = -1
        replication_factor: int = -1
        assignments: tuple[CreateTopicsRequest.Assignment, ...] = ()
        configs: tuple[tuple[str, str | None], ...] = ()

    topics: tuple[Topic, ...]
    timeout_ms: int = 60000
    validate_only: bool = False


@message
class CreateTopicsResponse(Response):
    """`topic_config_error_code`: why counts and configurations of a created topic are not shown."""

    @message
    class Config:
        name: str
        value: str | None
        read_only: bool = False
        config_source: int = -1
        is_sensitive: bool = False

    @message
    class Topic:
        name: str
        topic_id: TopicId = ZERO_TOPIC_ID
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        topic_config_error_code: Errors = Errors.NONE
        num_partitions: int = -1
        replication_factor: int = -1
        configs: tuple[CreateTopicsResponse.Config, ...] | None = ()

    throttle_time_ms: int = 0
    topics: tuple[Topic, ...] = ()


@message
class DeleteTopicsRequest(Request):
    API_KEY: ClassVar[int] = 20

    @message
    class Topic:
        """By name, or by id where `name` is None."""

        name: str | None = None
        topic_id: TopicId = ZERO_TOPIC_ID

    topics: tuple[Topic, ...]
    timeout_ms: int = 60000


@message
class DeleteTopicsResponse(Response):
    @message
    class Topic:
        name: str | None
        topic_id: TopicId = ZERO_TOPIC_ID
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    throttle_time_ms: int = 0
    responses: tuple[Topic, ...] = ()


@message
class CreatePartitionsRequest(Request):
    """`count` is the new total; `assignments` are the replicas of each new partition, None: the broker chooses them."""

    API_KEY: ClassVar[int] = 37

    @message
    class Assignment:
        broker_ids: tuple[int, ...]

    @message
    class Topic:
        name: str
        count: int
        assignments: tuple[CreatePartitionsRequest.Assignment, ...] | None = None

    topics: tuple[Topic, ...]
    timeout_ms: int = 60000
    validate_only: bool = False


@message
class CreatePartitionsResponse(Response):
    @message
    class Topic:
        name: str
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    throttle_time_ms: int = 0
    results: tuple[Topic, ...] = ()


@message
class ElectLeadersRequest(Request):
    """`topic_partitions` None requests all."""

    API_KEY: ClassVar[int] = 43

    @message
    class TopicPartitions:
        topic: str
        partitions: tuple[int, ...]

    election_type: int = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    timeout_ms: int = 60000


@message
class ElectLeadersResponse(Response):
    @message
    class Partition:
        partition_id: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    @message
    class Topic:
        topic: str
        partition_result: tuple[ElectLeadersResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    replica_election_results: tuple[Topic, ...] = ()


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigSource(IntEnum):
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@message
class DescribeConfigsRequest(Request):
    API_KEY: ClassVar[int] = 32

    @message
    class Resource:
        """`configuration_keys` None or () requests all."""

        resource_type: int
        resource_name: str
        configuration_keys: tuple[str, ...] | None = None

    resources: tuple[Resource, ...]
    include_synonyms: bool = False
    include_documentation: bool = False


@message
class DescribeConfigsResponse(Response):
    @message
    class Synonym:
        name: str
        value: str | None
        source: int

    @message
    class Config:
        """A sensitive value is None. `synonyms` are all configurations that set the value, the one in force first."""

        name: str
        value: str | None
        read_only: bool = False
        config_source: int = ConfigSource.DEFAULT
        is_sensitive: bool = False
        synonyms: tuple[DescribeConfigsResponse.Synonym, ...] = ()
        config_type: int = ConfigType.UNKNOWN
        documentation: str | None = None

    @message
    class Result:
        resource_type: int
        resource_name: str
        configs: tuple[DescribeConfigsResponse.Config, ...] = ()
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    results: tuple[Result, ...] = ()


@message
class AlteredConfigs(Response):
    """The error of each resource."""

    @message
    class Result:
        resource_type: int
        resource_name: str
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    responses: tuple[AlteredConfigs.Result, ...] = ()


@message
class IncrementalAlterConfigsRequest(Request):
    API_KEY: ClassVar[int] = 44

    @message
    class Config:
        name: str
        config_operation: int
        value: str | None

    @message
    class Resource:
        resource_type: int
        resource_name: str
        configs: tuple[IncrementalAlterConfigsRequest.Config, ...]

    resources: tuple[Resource, ...]
    validate_only: bool = False


@message
class IncrementalAlterConfigsResponse(AlteredConfigs):
    """Whether single configurations of resources were changed."""


@message
class AlterConfigsRequest(Request):
    """Replaces all configurations of a resource. Newer clients use IncrementalAlterConfigs instead."""

    API_KEY: ClassVar[int] = 33

    @message
    class Config:
        name: str
        value: str | None

    @message
    class Resource:
        resource_type: int
        resource_name: str
        configs: tuple[AlterConfigsRequest.Config, ...]

    resources: tuple[Resource, ...]
    validate_only: bool = False


@message
class AlterConfigsResponse(AlteredConfigs):
    """Whether the configurations of resources were replaced."""
