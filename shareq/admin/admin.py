"""Administration of topics, share groups and configurations: blocking calls around `AdminCore`.

Names are Kafka's, in snake case. Errors of single items are values in the results (`check()` raises the first);
KafkaException means that the call as a whole failed. `timeout` is in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from shareq.admin import cluster, configs, dead_letters, features, groups, offsets, topics
from shareq.admin.arguments import (
    LEAST_TIMESTAMP,
    PartitionLike,
    by_topic,
    changes_of,
    group_filters,
    kind_of,
    name_of,
    names_of,
    new_topics_of,
    offsets_before,
    partition_of,
    replicas_of,
    spans_of,
)
from shareq.admin.broker_routing import PartitionKey
from shareq.admin.browse import Browse, browsed, page_from
from shareq.admin.configs import ConfigChange
from shareq.admin.dead_letters import EVERY_LETTER, DeadLetter, DeadLetterQueue, LetterFilter, Redriven
from shareq.admin.offsets import OffsetSpec, timestamp_of
from shareq.admin.record_reader import PartitionBatches, RecordReader, Span
from shareq.admin.results import (
    AlteredOffset,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    DeletedRecords,
    Done,
    GroupListings,
    Lag,
    OffsetInfo,
    Reassignment,
    Results,
    ShareGroupDescription,
    TopicDescription,
)
from shareq.admin.topics import NewTopic
from shareq.admin.user_calls import UserCalls
from shareq.client.arguments import INT32_MAX, INT64_MAX, mapping, text, whole
from shareq.client.topic_partition import TopicPartition
from shareq.model.messages.features import UpgradeType
from shareq.model.messages.share_browse import FROM_SPSO
from shareq.model.states import IsolationLevel


class Admin(UserCalls):
    """Manages the topics, groups and configurations of a cluster. `conf` needs `bootstrap.servers`; it may be a dict,
    keyword arguments, or both. Every `timeout` is in seconds.
    """

    def describe_cluster(self, *, timeout: float = 60) -> ClusterDescription:
        """The cluster's id, its controller and its brokers with their addresses. `timeout` in seconds."""
        return self._do(cluster.describe_cluster(self._routing), timeout)

    # ---- topics ------------------------------------------------------------------------------------------------------

    def create_topics(
        self, new_topics: Iterable[NewTopic | str], *, validate_only: bool = False, timeout: float = 60
    ) -> Results[str, CreatedTopic]:
        """Create topics; a name alone means a topic with the broker's defaults.

        Returns when all brokers have the topics in their metadata, so that the next call of any client finds them.
        """
        wanted = new_topics_of(new_topics)
        return self._do(topics.create_topics(self._routing, wanted, validate_only=validate_only), timeout)

    def delete_topics(self, names: Iterable[str], *, timeout: float = 60) -> Results[str, Done]:
        """Delete topics. The `error` of a result is None or, say, UNKNOWN_TOPIC_OR_PARTITION; `timeout` in seconds."""
        return self._do(topics.delete_topics(self._routing, names_of("topic", names)), timeout)

    def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        replica_assignments: Mapping[str, Sequence[Sequence[int]]] = MappingProxyType({}),
        validate_only: bool = False,
        timeout: float = 60,
    ) -> Results[str, Done]:
        """Add partitions to topics: {topic: new partition count}. `replica_assignments`: the brokers of the replicas of
        each new partition, by topic; without them the brokers choose."""
        requested = {
            name_of("topic", topic): whole(f"the partition count of {topic!r}", count, -1, INT32_MAX)
            for topic, count in mapping("counts", counts).items()
        }
        assigned = {
            name_of("topic", topic): replicas_of(topic, replicas)
            for topic, replicas in mapping("replica_assignments", replica_assignments).items()
        }
        return self._do(
            topics.create_partitions(self._routing, requested, assigned, validate_only=validate_only), timeout
        )

    def describe_topics(self, names: Iterable[str], *, timeout: float = 60) -> Results[str, TopicDescription]:
        """Describe topics by name: id and partitions with leader, replicas, ISR. `timeout` in seconds."""
        return self._do(topics.describe_topics(self._routing, names_of("topic", names)), timeout)

    def describe_partitions(
        self, names: Iterable[str], *, page_size: int = 2000, timeout: float = 60
    ) -> Results[str, TopicDescription]:
        """Describe topics by name, with the replicas that may become leaders (`elr`). A response has at most
        `page_size` partitions. KafkaException (UNSUPPORTED_VERSION): the brokers are older than Kafka 3.8."""
        limit = whole("page_size", page_size, 1, INT32_MAX)
        return self._do(topics.describe_partitions(self._routing, names_of("topic", names), limit), timeout)

    def list_partition_reassignments(
        self, partitions: Iterable[PartitionLike] | None = None, *, timeout: float = 60
    ) -> Results[TopicPartition, Reassignment]:
        """The partitions whose replicas move, of the given ones or of all."""
        places = None if partitions is None else by_topic(partitions)
        return self._do(topics.list_reassignments(self._routing, places), timeout)

    def list_topics(self, *, timeout: float = 60) -> Results[str, TopicDescription]:
        """All topics, including internal ones."""
        return self._do(topics.describe_topics(self._routing, None), timeout)

    def list_offsets(
        self,
        specs: Mapping[PartitionLike, str | int | Any],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float = 60,
    ) -> Results[TopicPartition, OffsetInfo]:
        """Log offsets by partition; a spec is "earliest", "latest", a datetime, or a timestamp in ms."""
        requested: dict[PartitionKey, int] = {}
        for place, spec in mapping("specs", specs).items():
            timestamp = timestamp_of(spec)
            if timestamp is None:
                timestamp = whole(f"the timestamp of {place!r}", spec, LEAST_TIMESTAMP, INT64_MAX)
            requested[partition_of(place)] = timestamp
        level = whole("isolation_level", isolation_level, min(IsolationLevel), max(IsolationLevel))
        return self._do(topics.list_offsets(self._routing, requested, level), timeout)

    def delete_records(
        self, before: Mapping[PartitionLike, int], *, timeout: float = 60
    ) -> Results[TopicPartition, DeletedRecords]:
        """Delete all records below an offset; -1 deletes all records."""
        return self._do(topics.delete_records(self._routing, offsets_before(before)), timeout)

    def read_batches(
        self, spans: Mapping[PartitionLike, Sequence[Span]], *, timeout: float = 60
    ) -> Iterator[PartitionBatches]:
        """The record batches with offsets of ranges [first, end), as they are in the logs: markers included, and those
        of open and aborted transactions. Each partition's are in order; the ranges of one ascend and do not overlap.

        What is not in a log any more, or not yet, is left out. `timeout` is that of each round of requests. Raises
        KafkaException for a partition that cannot be read.
        """
        reader = RecordReader(self._routing, spans_of(spans))
        return self._rounds(reader, timeout)

    def _rounds(self, reader: RecordReader, timeout: float) -> Iterator[PartitionBatches]:
        while not reader.done:
            yield from self._do(reader.read(), timeout)

    # ---- dead-letter queues ------------------------------------------------------------------------------------------

    def list_dead_letter_queues(self, *, timeout: float = 60) -> Results[str, DeadLetterQueue]:
        """The dead-letter queues by group, as the groups' configurations name them. A topic that does not exist is an
        error of its row."""
        return self._do(dead_letters.list_queues(self._routing), timeout)

    def dead_letter_queue(self, group_id: str, *, timeout: float = 60) -> str:
        """The topic that a group names as its dead-letter queue. KafkaException (RESOURCE_NOT_FOUND): it names none."""
        name = name_of("group", group_id)
        queue = self._do(dead_letters.queue_of(self._routing, name), timeout)
        if not queue:
            raise dead_letters.no_queue(name)
        return queue

    def read_dead_letters(
        self, group_id: str, letters: LetterFilter = EVERY_LETTER, *, queue: str = "", timeout: float = 60
    ) -> Iterator[DeadLetter]:
        """The letters of a group, those of each partition of the queue in order. `queue`: a topic that the group does
        not name any more. Records of other groups, and records that are no letters, are left out."""
        name = name_of("group", group_id)
        topic = queue or self.dead_letter_queue(name, timeout=timeout)
        described = self.describe_topics([topic], timeout=timeout).check()[topic]
        whole_log = [(0, INT64_MAX)]
        batches = self.read_batches({(topic, p.partition): whole_log for p in described.partitions}, timeout=timeout)
        for read in batches:
            for record in read.records(whole_log):
                letter = dead_letters.dead_letter(topic, read.partition, record)
                if letter is not None and letter.group_id == name and letters.accepts(letter):
                    yield letter

    def redrive_dead_letters(
        self,
        group_id: str,
        letters: LetterFilter = EVERY_LETTER,
        *,
        to: str = "",
        queue: str = "",
        validate_only: bool = False,
        progress: Callable[[int], object] | None = None,
        timeout: float = 60,
    ) -> Redriven:
        """Write the records of a group's letters back to their topics, or to the topic `to`: each of them once, however
        often this is called, and whenever it is killed.

        `queue`: a topic that the group does not name any more. `validate_only`: find what would be redriven, and write
        nothing. `progress` is called with numbers of records of the queue that have been dealt with; `timeout` is that
        of each step. Raises KafkaException for a failure, for which the open transaction is aborted; ConfigException if
        the target is the queue.
        """
        from shareq.admin.redrive.run import redrive  # at its use: the producer

        if not isinstance(letters, LetterFilter):
            raise TypeError(f"letters must be a LetterFilter, not {type(letters).__name__}")
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be callable, not {type(progress).__name__}")
        return redrive(
            self,
            self._conf,
            name_of("group", group_id),
            letters,
            to=text("to", to, empty=True),
            queue=text("queue", queue, empty=True),
            validate_only=validate_only,
            progress=progress,
            timeout=timeout,
        )

    # ---- groups ------------------------------------------------------------------------------------------------------

    def list_groups(
        self, types: Iterable[str] = (), states: Iterable[str] = (), *, timeout: float = 60
    ) -> GroupListings:
        """The groups of the cluster, optionally only those of some types ("share") or states ("Empty", "Stable");
        ValueError for a name of which Kafka has no type or state.

        If some brokers do not answer in time: the groups of the others, and the errors in `.errors`, by broker.
        """
        kinds, phases = group_filters(types, states)
        return self._do(groups.list_groups(self._routing, kinds, phases), timeout)

    def describe_share_groups(
        self, group_ids: Iterable[str], *, timeout: float = 60
    ) -> Results[str, ShareGroupDescription]:
        """Describe share groups by id: state, epochs, members and their assignments. `timeout` in seconds."""
        return self._do(groups.describe_share_groups(self._routing, names_of("group", group_ids)), timeout)

    def delete_share_groups(self, group_ids: Iterable[str], *, timeout: float = 60) -> Results[str, Done]:
        """Delete groups and their offsets. Errors by group: NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND."""
        return self._do(groups.delete_share_groups(self._routing, names_of("group", group_ids)), timeout)

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[PartitionLike] | None = None, *, timeout: float = 60
    ) -> Lag:
        """Start offset and lag of the given partitions, or of all of the group; empty for an unknown group."""
        places = None if partitions is None else by_topic(partitions)
        return self._do(offsets.list_share_group_offsets(self._routing, name_of("group", group_id), places), timeout)

    def lag(self, group_id: str, *, timeout: float = 60) -> Lag:
        """The number of records that the group has yet to deliver: by partition, and `.total`."""
        return self.list_share_group_offsets(group_id, timeout=timeout)

    def browse(
        self,
        group_id: str,
        topic: str,
        partition: int,
        *,
        from_offset: int = FROM_SPSO,
        page_size: int = 500,
        timeout: float = 60,
    ) -> Browse:
        """Look at the records of a share-partition, without acquiring them: their states, delivery counts and holders,
        and why one cannot be acquired now. An experiment of shareq's brokers.

            for record in admin.browse("g", "orders", 0):
                print(record.offset, record.state, record.member_id, record.value)

        `from_offset`: an offset, or -1 for the share-partition start offset (SPSO). The first page is requested at
        once, later ones as the iteration gets to them; each has at most `page_size` offsets, and `timeout` is that of
        one. KafkaException: GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE, or UNSUPPORTED_VERSION
        of brokers without experiments.
        """
        group, place = name_of("group", group_id), partition_of((topic, partition))
        first = whole("from_offset", from_offset, FROM_SPSO, INT64_MAX)
        most = whole("page_size", page_size, 1, INT32_MAX)
        return browsed(
            group, place, first, lambda at: self._do(page_from(self._routing, group, place, at, most), timeout)
        )

    def alter_share_group_offsets(
        self, group_id: str, specs: Mapping[PartitionLike | str, OffsetSpec], *, timeout: float = 60
    ) -> Results[TopicPartition, AlteredOffset]:
        """Set the start offset of partitions or of whole topics: an offset, "earliest", "latest" or a datetime.

        A group that does not exist is created. Raises KafkaException with NON_EMPTY_GROUP if the group has members.
        """
        requested: dict[tuple[str, int | None], OffsetSpec] = {}
        for place, spec in mapping("specs", specs).items():
            if timestamp_of(spec) is None:
                spec = whole(f"the offset of {place!r}", spec, -INT64_MAX, INT64_MAX)
            requested[(name_of("topic", place), None) if isinstance(place, str) else partition_of(place)] = spec
        if not requested:
            raise ValueError("specs must not be empty")
        return self._do(
            offsets.alter_share_group_offsets(self._routing, name_of("group", group_id), requested), timeout
        )

    def delete_share_group_offsets(
        self, group_id: str, topic_names: Iterable[str], *, timeout: float = 60
    ) -> Results[str, Done]:
        """Delete the group's offsets of whole topics."""
        names = names_of("topic", topic_names)
        return self._do(offsets.delete_share_group_offsets(self._routing, name_of("group", group_id), names), timeout)

    # ---- configurations ----------------------------------------------------------------------------------------------

    def describe_configs(
        self, kind: str, name: str, keys: Iterable[str] | None = None, *, timeout: float = 60
    ) -> Results[str, ConfigEntry]:
        """The configuration of a "topic", a "group" (which need not exist) or a "broker" (name "": their defaults); on
        Apache Kafka also of a "broker-logger" or of "client-metrics"."""
        wanted = None if keys is None else names_of("key", keys)
        text("name", name, empty=True)
        return self._do(configs.describe_configs(self._routing, kind_of(kind), name, wanted), timeout)

    def describe_configs_of(
        self, kind: str, names: Iterable[str], keys: Iterable[str] | None = None, *, timeout: float = 60
    ) -> dict[str, Results[str, ConfigEntry]]:
        """The configurations of several topics or groups by name, with one request."""
        wanted = None if keys is None else names_of("key", keys)
        found = names_of(kind, names)
        return self._do(configs.describe_many(self._routing, kind_of(kind), found, wanted), timeout)

    def list_config_resources(self, kind: str, *, timeout: float = 60) -> list[str]:
        """The names of the topics, brokers, groups with a configuration, or of client metrics."""
        return self._do(configs.list_resources(self._routing, kind_of(kind)), timeout)

    def incremental_alter_configs(
        self,
        kind: str,
        name: str,
        changes: Mapping[str, ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float = 60,
    ) -> None:
        """Change configurations; None restores the default. Makes all changes, or none and raises KafkaException."""
        text("name", name, empty=True)
        operation = configs.incremental_alter_configs(
            self._routing, kind_of(kind), name, changes_of(changes), validate_only=validate_only
        )
        self._do(operation, timeout)

    def alter_group_configs(self, group_id: str, changes: Mapping[str, ConfigChange], *, timeout: float = 60) -> None:
        """Change configurations of a group, such as {"share.record.lock.duration.ms": 20000}."""
        self.incremental_alter_configs("group", name_of("group", group_id), changes, timeout=timeout)

    def update_features(
        self, levels: Mapping[str, int], *, downgrade: bool = False, validate_only: bool = False, timeout: float = 60
    ) -> None:
        """Set levels of features, such as {"share.version": 2}; a lower level needs `downgrade`. Sets all of them, or
        none and raises KafkaException."""
        asked = {
            text("feature", name): whole(name, level, 0, 32767) for name, level in mapping("levels", levels).items()
        }
        kind = UpgradeType.SAFE_DOWNGRADE if downgrade else UpgradeType.UPGRADE
        self._do(features.update_features(self._routing, asked, kind, validate_only=validate_only), timeout)
