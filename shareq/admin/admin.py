"""Administration of topics, share groups and configurations: blocking calls around `AdminCore`.

Kafka's own names in snake case. Results are plain: errors of single items are values in them (`check()` raises the
first), KafkaException is for what fails as a whole. `timeout` is in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from shareq.admin import configs, groups, offsets, topics
from shareq.admin.arguments import (
    LEAST_TIMESTAMP,
    PartitionLike,
    changes_of,
    kind_of,
    name_of,
    names_of,
    new_topics_of,
    partition_of,
)
from shareq.admin.broker_routing import BrokerRouting, PartitionKey
from shareq.admin.configs import ConfigChange
from shareq.admin.core import AdminCore, Operation
from shareq.admin.offsets import OffsetSpec, timestamp_of
from shareq.admin.results import (
    AlteredOffset,
    ConfigEntry,
    CreatedTopic,
    DeletedRecords,
    Done,
    GroupListings,
    Lag,
    OffsetInfo,
    Results,
    ShareGroupDescription,
    TopicDescription,
)
from shareq.admin.topics import NewTopic
from shareq.client.arguments import INT32_MAX, INT64_MAX, items, mapping, text, whole
from shareq.client.config import ClientConfig, merged
from shareq.client.shell import LONGEST_S, UntilClosed, perform, timeout_ms
from shareq.client.topic_partition import TopicPartition
from shareq.client.uninterrupted import uninterrupted
from shareq.model.states import IsolationLevel
from shareq.transports import transport_for

T = TypeVar("T")


class Admin(UntilClosed):
    """Manages the topics, groups and configurations of a cluster. `conf` needs `bootstrap.servers`; it may be a dict,
    keyword arguments, or both. Every `timeout` is in seconds.
    """

    _NAME = "Admin"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        config = ClientConfig(merged(conf, kwargs), (), client="admin client")
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = AdminCore(config, transport.rng())
        self._routing = BrokerRouting(self._core.backoff)
        self._connection = transport.connect(self._core, self._core.client_id)

    # ---- topics ------------------------------------------------------------------------------------------------------

    def create_topics(
        self, new_topics: Iterable[NewTopic | str], *, validate_only: bool = False, timeout: float = 60
    ) -> Results[str, CreatedTopic]:
        """Create topics; a name alone is a topic with the broker's defaults.

        Returns when every broker knows them, so that the next call of any client finds them.
        """
        wanted = new_topics_of(new_topics)
        return self._do(topics.create_topics(self._routing, wanted, validate_only=validate_only), timeout)

    def delete_topics(self, names: Iterable[str], *, timeout: float = 60) -> Results[str, Done]:
        """Delete topics. The `error` of a result is None or, say, UNKNOWN_TOPIC_OR_PARTITION; `timeout` in seconds."""
        return self._do(topics.delete_topics(self._routing, names_of("topic", names)), timeout)

    def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False, timeout: float = 60
    ) -> Results[str, Done]:
        """Grow topics: {topic: new total}."""
        asked = {
            name_of("topic", topic): whole(f"the partition count of {topic!r}", count, -1, INT32_MAX)
            for topic, count in mapping("counts", counts).items()
        }
        return self._do(topics.create_partitions(self._routing, asked, validate_only=validate_only), timeout)

    def describe_topics(self, names: Iterable[str], *, timeout: float = 60) -> Results[str, TopicDescription]:
        """Describe topics by name: id and partitions with leader, replicas, ISR. `timeout` in seconds."""
        return self._do(topics.describe_topics(self._routing, names_of("topic", names)), timeout)

    def list_topics(self, *, timeout: float = 60) -> Results[str, TopicDescription]:
        """All topics, internal ones too."""
        return self._do(topics.describe_topics(self._routing, None), timeout)

    def list_offsets(
        self,
        specs: Mapping[PartitionLike, str | int | Any],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float = 60,
    ) -> Results[TopicPartition, OffsetInfo]:
        """Offsets of the log: "earliest", "latest", a datetime, or a timestamp in ms."""
        asked: dict[PartitionKey, int] = {}
        for place, spec in mapping("specs", specs).items():
            timestamp = timestamp_of(spec)
            if timestamp is None:
                timestamp = whole(f"the timestamp of {place!r}", spec, LEAST_TIMESTAMP, INT64_MAX)
            asked[partition_of(place)] = timestamp
        level = whole("isolation_level", isolation_level, min(IsolationLevel), max(IsolationLevel))
        return self._do(topics.list_offsets(self._routing, asked, level), timeout)

    def delete_records(
        self, before: Mapping[PartitionLike, int], *, timeout: float = 60
    ) -> Results[TopicPartition, DeletedRecords]:
        """Delete all records below an offset; -1 deletes all records."""
        asked = {partition_of(place): offset for place, offset in mapping("before", before).items()}
        for place, offset in asked.items():
            if isinstance(offset, bool) or not isinstance(offset, int) or not -1 <= offset <= INT64_MAX:
                raise ValueError(f"{place[0]} [{place[1]}]: {offset!r} must be an offset of 0..{INT64_MAX}, or -1")
        return self._do(topics.delete_records(self._routing, asked), timeout)

    # ---- groups ------------------------------------------------------------------------------------------------------

    def list_groups(
        self, types: Iterable[str] = (), states: Iterable[str] = (), *, timeout: float = 60
    ) -> GroupListings:
        """The groups of the cluster, of some types ("share") or in some states ("Empty", "Stable") only.

        Where some brokers do not answer in time: the groups of the others, and `.errors` by broker.
        """
        kinds = [text("type", name) for name in items("types", types)]
        phases = [text("state", name) for name in items("states", states)]
        return self._do(groups.list_groups(self._routing, kinds, phases), timeout)

    def describe_share_groups(
        self, group_ids: Iterable[str], *, timeout: float = 60
    ) -> Results[str, ShareGroupDescription]:
        """Describe share groups by id: state, epochs, members and their assignments. `timeout` in seconds."""
        return self._do(groups.describe_share_groups(self._routing, names_of("group", group_ids)), timeout)

    def delete_share_groups(self, group_ids: Iterable[str], *, timeout: float = 60) -> Results[str, Done]:
        """Delete groups without members, with their offsets: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND otherwise."""
        return self._do(groups.delete_share_groups(self._routing, names_of("group", group_ids)), timeout)

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[PartitionLike] | None = None, *, timeout: float = 60
    ) -> Lag:
        """Start offset and lag of partitions, or of all that the group has; empty for an unknown group."""
        places: dict[str, list[int]] | None = None
        if partitions is not None:
            places = {}
            for topic, index in map(partition_of, items("partitions", partitions)):
                places.setdefault(topic, []).append(index)
        return self._do(offsets.list_share_group_offsets(self._routing, name_of("group", group_id), places), timeout)

    def lag(self, group_id: str, *, timeout: float = 60) -> Lag:
        """How many records the group has still to deliver: `.total`, and by partition."""
        return self.list_share_group_offsets(group_id, timeout=timeout)

    def alter_share_group_offsets(
        self, group_id: str, specs: Mapping[PartitionLike | str, OffsetSpec], *, timeout: float = 60
    ) -> Results[TopicPartition, AlteredOffset]:
        """Move the start of partitions, or of whole topics: an offset, "earliest", "latest" or a datetime.

        The group must be empty; a missing one is created. KafkaException (NON_EMPTY_GROUP) for the call as a whole.
        """
        asked: dict[tuple[str, int | None], OffsetSpec] = {}
        for place, spec in mapping("specs", specs).items():
            if timestamp_of(spec) is None:
                whole(f"the offset of {place!r}", spec, -INT64_MAX, INT64_MAX)
            asked[(name_of("topic", place), None) if isinstance(place, str) else partition_of(place)] = spec
        if not asked:
            raise ValueError("specs must not be empty")
        return self._do(offsets.alter_share_group_offsets(self._routing, name_of("group", group_id), asked), timeout)

    def delete_share_group_offsets(
        self, group_id: str, topic_names: Iterable[str], *, timeout: float = 60
    ) -> Results[str, Done]:
        """Delete the group's offsets of topics."""
        names = names_of("topic", topic_names)
        return self._do(offsets.delete_share_group_offsets(self._routing, name_of("group", group_id), names), timeout)

    # ---- configurations ----------------------------------------------------------------------------------------------

    def describe_configs(
        self, kind: str, name: str, keys: Iterable[str] | None = None, *, timeout: float = 60
    ) -> Results[str, ConfigEntry]:
        """The configuration of a "topic", a "group" (which need not exist) or a "broker" ("": their default)."""
        wanted = None if keys is None else names_of("key", keys)
        text("name", name, empty=True)
        return self._do(configs.describe_configs(self._routing, kind_of(kind), name, wanted), timeout)

    def incremental_alter_configs(
        self,
        kind: str,
        name: str,
        changes: Mapping[str, ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float = 60,
    ) -> None:
        """Change some keys, None bringing the default back. All of them or, with a KafkaException, none."""
        text("name", name, empty=True)
        operation = configs.incremental_alter_configs(
            self._routing, kind_of(kind), name, changes_of(changes), validate_only=validate_only
        )
        self._do(operation, timeout)

    def alter_group_configs(self, group_id: str, changes: Mapping[str, ConfigChange], *, timeout: float = 60) -> None:
        """The same for a group, such as {"share.record.lock.duration.ms": 20000}."""
        self.incremental_alter_configs("group", name_of("group", group_id), changes, timeout=timeout)

    # ---- running operations ------------------------------------------------------------------------------------------

    def _do(self, operation: Operation[T], timeout: float) -> T:
        self._check_open()
        wait_ms = timeout_ms(timeout)
        if timeout < 0:
            raise ValueError(f"timeout={timeout!r}: must not be negative")
        if wait_ms is None:
            wait_ms = LONGEST_S * 1000
        core = self._core
        with uninterrupted:
            task = perform(self._connection, core.calls, lambda now_ms: core.start(operation, wait_ms, now_ms))
            try:
                self._connection.wait(lambda: task.done, None)
            except BaseException:
                core.abandon(task)
                raise
        return task.result()

    def close(self) -> None:
        """Repeatable."""
        if not self._closed:
            self._closed = True
            self._connection.close()
