"""One poll of several share groups: every request of a monitor, each for all groups at once.

The state topic is read from where the last poll has stopped, so the cost of a poll follows what has changed. Metadata
and configurations are read again when they are old, or when a response shows that they are. A monitor needs DESCRIBE on
the groups and topics; with READ on `__share_group_state` it knows batches and delivery counts, and without it start
offsets and lags from DescribeShareGroupOffsets. READ on the topics adds ages.
"""

from __future__ import annotations

from collections.abc import Collection

from shareq.admin.broker_routing import COORDINATOR_MOVED
from shareq.admin.core import Operation, Reply, Send
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.cluster import FindCoordinatorRequest, ListGroupsRequest, MetadataRequest, MetadataResponse
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from shareq.observer.health.group_configs import GroupConfigs
from shareq.observer.health.group_topics import GroupTopics, Summaries, take_summaries
from shareq.observer.health.heads import Heads
from shareq.observer.health.log_offsets import LogOffsets
from shareq.observer.health.partition_judge import ISOLATION
from shareq.observer.health.progress_log import ProgressLog
from shareq.observer.health.reading import GroupReading, Member, Reading
from shareq.observer.poll_result import PartitionId
from shareq.observer.state_topic_reader import read_state_topic

REFRESH_MS = 30_000
"""The age at which metadata, log starts, configurations and the list of all groups are read again."""

Described = ShareGroupDescribeResponse.DescribedGroup


class _Every:
    """Contains every group."""

    def __contains__(self, group: object) -> bool:
        return True


class FleetPoll:
    """Polls the named groups, or all share groups (None). Keeps what need not be read again."""

    def __init__(self, groups: Collection[str] | None) -> None:
        self._named = groups
        self.groups: list[str] = sorted(groups or ())
        self._coordinators: dict[str, int] = {}
        self._group_topics = GroupTopics()
        self._topics: dict[str, MetadataResponse.Topic] = {}
        self._state_topic: MetadataResponse.Topic | None = None
        self._log = ProgressLog(_Every() if groups is None else frozenset(groups))
        self._summarized: set[str] = set()
        """Groups whose durable state could not be read in the last poll."""
        self._offsets, self._heads, self._configs = LogOffsets(), Heads(), GroupConfigs()
        self._refresh_ms = 0
        self._refreshing = False

    def poll(self, now_ms: int) -> Operation[Reading]:
        reading = Reading()
        self._refreshing = now_ms >= self._refresh_ms
        if self._refreshing:
            self._refresh_ms = now_ms + REFRESH_MS
            self._offsets.refresh = self._configs.refresh = True
            self._heads.forget_denied()
            yield from self._list_groups(reading)
        reading.groups = {name: GroupReading() for name in self.groups}
        yield from self._find_coordinators(reading)
        summaries = yield from self._describe(reading)
        yield from self._fetch_metadata(reading)
        if reading.unreachable:
            self._refresh_ms = 0
            return reading
        yield from self._configs.read(reading, self._coordinators)
        yield from self._read_state(reading)
        committed = {name for name, group in reading.groups.items() if group.configs.get(ISOLATION) == "read_committed"}
        if not (yield from self._offsets.read(reading, self._group_topics.of(committed))):
            self._refresh_ms = 0
        take_summaries(reading, summaries)
        self._offsets.keep(reading)
        yield from self._heads.read(reading, {name: topic.topic_id for name, topic in self._topics.items()})
        if reading.unanswered:
            yield from self._find_any_broker(reading)
        return reading

    def _find_any_broker(self, reading: Reading) -> Operation[None]:
        """A cluster that ended during the poll is unreachable: what the poll lacks is not lost by a single broker."""
        (reply,) = yield [Send(ANY_NODE, MetadataRequest(topics=()))]
        if reply.response is None:
            self._refresh_ms = 0
            _set_unreachable(reading, reply)

    # ---- groups ------------------------------------------------------------------------------------------------------

    def _list_groups(self, reading: Reading) -> Operation[None]:
        """Find all share groups, if none is named. A broker that does not answer keeps the groups that it had."""
        if self._named is not None:
            return
        (reply,) = yield [Send(ANY_NODE, MetadataRequest(topics=()))]
        nodes = [broker.node_id for broker in reply.response.brokers] if reply.response is not None else []
        replies = yield [Send(node, ListGroupsRequest(types_filter=("share",))) for node in nodes]
        answers = [r.response for r in replies if r.response is not None and not r.response.error_code]
        found = {group.group_id for answer in answers for group in answer.groups}
        kept = set(self.groups) if len(answers) < len(nodes) or not nodes else set()
        self.groups = sorted(found | kept)
        self._group_topics.keep(self.groups)
        self._coordinators = {name: node for name, node in self._coordinators.items() if name in self.groups}
        if len(answers) < len(nodes):
            reading.trouble = reading.trouble or "a broker does not list its groups"

    def _find_coordinators(self, reading: Reading) -> Operation[None]:
        unknown = tuple(name for name in self.groups if name not in self._coordinators)
        if not unknown:
            return
        (reply,) = yield [Send(ANY_NODE, FindCoordinatorRequest(key_type=0, coordinator_keys=unknown))]
        if reply.response is None:
            for name in unknown:
                reading.groups[name].trouble = f"its coordinator: {reply.reason or reply.error.name}"
            self._metadata_is_old()
            return
        for found in reply.response.coordinators:
            if found.error_code:
                reading.groups[found.key].trouble = f"its coordinator: {found.error_code.name}"
            else:
                self._coordinators[found.key] = found.node_id

    def _describe(self, reading: Reading) -> Operation[Summaries]:
        """Describe all groups; return (start offset, lag) of those whose durable state is not read."""
        by_node: dict[int, list[str]] = {}
        for name, node in self._coordinators.items():
            if name in reading.groups:
                by_node.setdefault(node, []).append(name)
        replies = yield [
            Send(node, ShareGroupDescribeRequest(group_ids=tuple(names))) for node, names in by_node.items()
        ]
        changed: list[str] = []
        for names, reply in zip(by_node.values(), replies, strict=True):
            if reply.response is None:
                self._lose(reading, names, reply)
                continue
            changed += [each.group_id for each in reply.response.groups if self._take_group(reading, each)]
        names = sorted({*changed, *self._summarized})
        return (yield from self._group_topics.read(reading, names, self._coordinators))

    def _lose(self, reading: Reading, names: list[str], reply: Reply) -> None:
        for name in names:
            self._coordinators.pop(name, None)
            reading.groups[name].trouble = f"its coordinator does not answer: {reply.reason or reply.error.name}"
        reading.fail("the description of groups", reply)
        self._metadata_is_old()

    def _metadata_is_old(self) -> None:
        """Read the metadata in this poll, which shows whether any broker answers, and everything in the next one."""
        self._offsets.refresh = True
        self._refresh_ms = 0

    def _take_group(self, reading: Reading, found: Described) -> bool:
        """Take a description; True if the group may have other topics than before."""
        name, error = found.group_id, found.error_code
        group = reading.groups[name]
        if error is Errors.UNSUPPORTED_VERSION:
            raise KafkaException(KafkaError(error, "the cluster has its share groups switched off (share.version=0)"))
        if error is Errors.GROUP_ID_NOT_FOUND:
            group.exists = False
            self._group_topics.forget(name)
            return False
        if error:
            group.trouble = found.error_message or error.name
            if error in COORDINATOR_MOVED:
                self._coordinators.pop(name, None)
            return False
        group.exists, group.state = True, found.group_state
        group.members = tuple(_member(member) for member in found.members)
        return self._group_topics.follow(found, refreshing=self._refreshing)

    # ---- topics ------------------------------------------------------------------------------------------------------

    def _fetch_metadata(self, reading: Reading) -> Operation[None]:
        """Read the metadata of all topics if it is old, else of the new topics alone."""
        names = self._group_topics.of(self.groups)
        leaderless = any(p.leader_id < 0 for topic in self._topics.values() for p in topic.partitions)
        if self._offsets.refresh or leaderless or self._state_topic is None:
            wanted = {*names, SHARE_STATE_TOPIC}
        else:
            wanted = names - self._topics.keys()
        if wanted:
            asked = tuple(MetadataRequest.Topic(name=name) for name in sorted(wanted))
            (reply,) = yield [Send(ANY_NODE, MetadataRequest(topics=asked))]
            if reply.response is None:
                _set_unreachable(reading, reply)
                return
            self._take_metadata(reading, reply)
        for name in names & self._topics.keys():
            for p in self._topics[name].partitions:
                reading.leaders[name, p.partition_index] = p.leader_id

    def _take_metadata(self, reading: Reading, reply: Reply) -> None:
        for topic in reply.response.topics:
            if topic.error_code:
                self._topics.pop(topic.name, None)
                if topic.error_code is not Errors.UNKNOWN_TOPIC_OR_PARTITION:
                    reading.fail(f"the metadata of {topic.name}", reply, topic.error_code)
            elif topic.name == SHARE_STATE_TOPIC:
                self._state_topic = topic
            else:
                self._topics[topic.name] = topic

    # ---- durable state -----------------------------------------------------------------------------------------------

    def _read_state(self, reading: Reading) -> Operation[None]:
        """Read the state topic. The durable state of a group is known if its partitions were read to their ends."""
        keys = {name: self._keys(name) for name in self.groups}
        ended: set[int] = set()
        if self._state_topic is not None:
            self._log.set_topic(self._state_topic.topic_id, len(self._state_topic.partitions))
            wanted = {self._log.partition_of(key) for of_group in keys.values() for key in of_group.values()}
            ended = yield from read_state_topic(self._log, reading, self._state_topic, wanted)
            if ended < wanted and not reading.unauthorized:
                self._refresh_ms = 0
        self._summarized.clear()
        for name, of_group in keys.items():
            group = reading.groups[name]
            group.durable = dict.fromkeys(of_group)
            group.state_read = self._state_topic is not None and all(
                self._log.partition_of(key) in ended for key in of_group.values()
            )
            if group.state_read:
                group.durable = {at: self._log.durable_of(key) for at, key in of_group.items()}
                self._group_topics.prune(name, group)
            else:
                self._summarized.add(name)

    def _keys(self, group: str) -> dict[PartitionId, SharePartitionKey]:
        topics = [self._topics[name] for name in sorted(self._group_topics.of((group,))) if name in self._topics]
        return {
            (str(topic.name), p.partition_index): SharePartitionKey(group, topic.topic_id, p.partition_index)
            for topic in topics
            for p in topic.partitions
        }


def _set_unreachable(reading: Reading, reply: Reply) -> None:
    reading.unreachable = True
    reading.trouble = f"the cluster does not answer: {reply.reason or reply.error.name}"


def _member(member: ShareGroupDescribeResponse.Member) -> Member:
    held = frozenset((t.topic_name, p) for t in member.assignment.topic_partitions for p in t.partitions)
    return Member(member.member_id, member.client_id, member.client_host, held)
