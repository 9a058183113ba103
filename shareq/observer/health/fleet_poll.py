"""One poll of several share groups: every request of a monitor, each for all groups at once.

The state topic is read from where the last poll has stopped, so the cost of a poll follows what has changed. Metadata
and configurations are read again when they are old, or when a response shows that they are. A monitor needs DESCRIBE on
the groups and topics; with READ on `__share_group_state` it knows batches and delivery counts, and without it start
offsets and lags from DescribeShareGroupOffsets. READ on the topics adds ages.
"""

from __future__ import annotations

from collections.abc import Collection

from shareq.admin.broker_routing import COORDINATOR_MOVED
from shareq.admin.core import Ask, Operation, Reply
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.cluster import FindCoordinatorRequest, ListGroupsRequest, MetadataRequest, MetadataResponse
from shareq.model.messages.share_group import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from shareq.observer.health.group_configs import GroupConfigs
from shareq.observer.health.heads import Heads
from shareq.observer.health.log_offsets import LogOffsets
from shareq.observer.health.partition_judge import ISOLATION
from shareq.observer.health.progress_log import ProgressLog
from shareq.observer.health.reading import Durable, GroupReading, Member, Reading
from shareq.observer.poll_result import PartitionId
from shareq.observer.state_topic_reader import read_state_topic

REFRESH_MS = 30_000
"""The age at which metadata, log starts, configurations and the list of all groups are read again."""

OFFSETS_GROUPS = 20
"""The number of groups in one DescribeShareGroupOffsets."""

Described = ShareGroupDescribeResponse.DescribedGroup
DescribedOffsets = DescribeShareGroupOffsetsResponse.Group

Summaries = dict[str, dict[PartitionId, tuple[int, int]]]
"""Group -> share-partition -> (start offset, lag), as its coordinator names them."""


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
        self._epochs: dict[str, int] = {}
        self._topics_of: dict[str, set[str]] = {}
        """The topics of each group: subscribed ones, and those with a durable state."""
        self._subscribed: dict[str, set[str]] = {}
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
        stable = set().union(*(self._topics_of.get(name, ()) for name in committed))
        if not (yield from self._offsets.read(reading, stable)):
            self._refresh_ms = 0
        self._take_summaries(reading, summaries)
        self._offsets.keep(reading)
        yield from self._heads.read(reading, {name: topic.topic_id for name, topic in self._topics.items()})
        return reading

    # ---- groups ------------------------------------------------------------------------------------------------------

    def _list_groups(self, reading: Reading) -> Operation[None]:
        """Find all share groups, if none is named. A broker that does not answer keeps the groups that it had."""
        if self._named is not None:
            return
        (reply,) = yield [Ask(ANY_NODE, MetadataRequest(topics=()))]
        nodes = [broker.node_id for broker in reply.response.brokers] if reply.response is not None else []
        replies = yield [Ask(node, ListGroupsRequest(types_filter=("share",))) for node in nodes]
        answers = [r.response for r in replies if r.response is not None and not r.response.error_code]
        found = {group.group_id for answer in answers for group in answer.groups}
        kept = set(self.groups) if len(answers) < len(nodes) or not nodes else set()
        self.groups = sorted(found | kept)
        for of_groups in (self._coordinators, self._epochs, self._topics_of, self._subscribed):
            for name in of_groups.keys() - set(self.groups):
                del of_groups[name]
        if len(answers) < len(nodes):
            reading.trouble = reading.trouble or "a broker does not list its groups"

    def _find_coordinators(self, reading: Reading) -> Operation[None]:
        unknown = tuple(name for name in self.groups if name not in self._coordinators)
        if not unknown:
            return
        (reply,) = yield [Ask(ANY_NODE, FindCoordinatorRequest(key_type=0, coordinator_keys=unknown))]
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
            Ask(node, ShareGroupDescribeRequest(group_ids=tuple(names))) for node, names in by_node.items()
        ]
        changed: list[str] = []
        for names, reply in zip(by_node.values(), replies, strict=True):
            if reply.response is None:
                self._lose(reading, names, reply)
                continue
            changed += [each.group_id for each in reply.response.groups if self._take_group(reading, each)]
        return (yield from self._describe_offsets(reading, sorted({*changed, *self._summarized})))

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
        """Take a description; True if the group may have other topics than before. Offsets of a group without members
        can be altered at any time, with no new epoch, and a new group has its epoch before its offsets."""
        name, error = found.group_id, found.error_code
        group = reading.groups[name]
        if error is Errors.UNSUPPORTED_VERSION:
            raise KafkaException(KafkaError(error, "the cluster has its share groups switched off (share.version=0)"))
        if error is Errors.GROUP_ID_NOT_FOUND:
            group.exists = False
            self._epochs.pop(name, None)
            self._topics_of.pop(name, None)
            return False
        if error:
            group.trouble = found.error_message or error.name
            if error in COORDINATOR_MOVED:
                self._coordinators.pop(name, None)
            return False
        group.exists, group.state = True, found.group_state
        group.members = tuple(_member(member) for member in found.members)
        self._subscribed[name] = {topic for member in found.members for topic in member.subscribed_topic_names}
        self._topics_of.setdefault(name, set()).update(self._subscribed[name])
        alterable = not found.members and (self._refreshing or not self._topics_of[name])
        changed = alterable or self._epochs.get(name) != found.group_epoch
        self._epochs[name] = found.group_epoch
        return changed

    def _describe_offsets(self, reading: Reading, names: list[str]) -> Operation[Summaries]:
        """The topics of changed groups, and the summaries of their durable states.

        A broker reads the states of all their partitions for a response, so a request is for a few groups.
        """
        by_node: dict[int, list[str]] = {}
        for name in names:
            if name in self._coordinators and name in reading.groups:
                by_node.setdefault(self._coordinators[name], []).append(name)
        summaries: Summaries = {}
        for begin in range(0, max(map(len, by_node.values()), default=0), OFFSETS_GROUPS):
            parts = {node: those[begin : begin + OFFSETS_GROUPS] for node, those in by_node.items() if those[begin:]}
            asked = [
                Ask(node, DescribeShareGroupOffsetsRequest(groups=tuple(
                    DescribeShareGroupOffsetsRequest.Group(group_id=name) for name in those)))
                for node, those in parts.items()
            ]  # fmt: skip
            replies = yield asked
            for node, reply in zip(parts, replies, strict=True):
                if reply.response is None:  # too slow: the other groups of this broker follow in the next poll
                    for name in by_node.pop(node)[begin:]:
                        self._lose_offsets(reading, name, reply.reason or reply.error.name)
                    continue
                for group in reply.response.groups:
                    self._take_offsets(reading, group, summaries)
        return summaries

    def _take_offsets(self, reading: Reading, group: DescribedOffsets, summaries: Summaries) -> None:
        if group.error_code:
            self._lose_offsets(reading, group.group_id, group.error_message or group.error_code.name)
            return
        self._topics_of.setdefault(group.group_id, set()).update(topic.topic_name for topic in group.topics)
        summaries[group.group_id] = {
            (topic.topic_name, p.partition_index): (p.start_offset, p.lag)
            for topic in group.topics
            for p in topic.partitions
            if not p.error_code
        }

    def _lose_offsets(self, reading: Reading, name: str, reason: str) -> None:
        """Ask again in the next poll. Until then a group is not readable if none of its topics is known."""
        self._epochs.pop(name, None)
        if not self._topics_of.get(name):
            reading.groups[name].trouble = f"its offsets: {reason}"

    # ---- topics ------------------------------------------------------------------------------------------------------

    def _fetch_metadata(self, reading: Reading) -> Operation[None]:
        """Read the metadata of all topics if it is old, else of the new topics alone."""
        names = set().union(*(self._topics_of.get(name, ()) for name in self.groups))
        leaderless = any(p.leader_id < 0 for topic in self._topics.values() for p in topic.partitions)
        if self._offsets.refresh or leaderless or self._state_topic is None:
            wanted = {*names, SHARE_STATE_TOPIC}
        else:
            wanted = names - self._topics.keys()
        if wanted:
            asked = tuple(MetadataRequest.Topic(name=name) for name in sorted(wanted))
            (reply,) = yield [Ask(ANY_NODE, MetadataRequest(topics=asked))]
            if reply.response is None:
                reading.unreachable = True
                reading.trouble = f"the cluster does not answer: {reply.reason or reply.error.name}"
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
                self._forget_topics(name, group)
            else:
                self._summarized.add(name)

    def _forget_topics(self, name: str, group: GroupReading) -> None:
        """Forget topics that no member subscribes to and that have no durable state: their offsets were deleted."""
        kept = self._subscribed.get(name, set()) | {
            at[0] for at, durable in group.durable.items() if durable is not None
        }
        if not kept >= self._topics_of.get(name, set()):
            self._topics_of[name] &= kept
            group.durable = {at: durable for at, durable in group.durable.items() if at[0] in kept}

    def _keys(self, group: str) -> dict[PartitionId, SharePartitionKey]:
        topics = [self._topics[name] for name in sorted(self._topics_of.get(group, ())) if name in self._topics]
        return {
            (str(topic.name), p.partition_index): SharePartitionKey(group, topic.topic_id, p.partition_index)
            for topic in topics
            for p in topic.partitions
        }

    @staticmethod
    def _take_summaries(reading: Reading, summaries: Summaries) -> None:
        """The coordinator's figures, for groups without a durable state that was read. A lag of -1 is unknown."""
        for name, offsets in summaries.items():
            group = reading.groups[name]
            if group.state_read:
                continue
            for at, (start, lag) in offsets.items():
                end = reading.ends.get(at)
                if at in group.durable and end is not None and start >= 0:
                    group.durable[at] = Durable(start, max(0, end - start - lag) if lag >= 0 else 0)


def _member(member: ShareGroupDescribeResponse.Member) -> Member:
    held = frozenset((t.topic_name, p) for t in member.assignment.topic_partitions for p in t.partitions)
    return Member(member.member_id, member.client_id, member.client_host, held)
