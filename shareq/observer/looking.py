"""One look at a cluster: all the questions of an observer, each once. What fails is asked again at the next look.

An observer needs DESCRIBE on the group and the topics, and READ on `__share_group_state`; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shareq.admin.asking import COORDINATOR_MOVED
from shareq.admin.core import Ask, Operation, Reply
from shareq.coordinator.share.records import StateRecord
from shareq.coordinator.share.state import KeyState
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataResponse
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from shareq.model.messages.share_group import (
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from shareq.model.messages.topics import DescribeConfigsRequest, ResourceType
from shareq.observer.reading import list_offsets, read_state
from shareq.observer.state_log import StateLog

Place = tuple[str, int]
"""(topic, partition)."""

CONFIGS = ("share.record.lock.duration.ms", "share.delivery.count.limit", "share.partition.max.record.locks")
"""What a view needs to know of the group's configuration."""

_CALM = frozenset({Errors.GROUP_ID_NOT_FOUND, Errors.COORDINATOR_LOAD_IN_PROGRESS})
"""Answers about a group that are nobody's trouble: it is not there (yet)."""


@dataclass(slots=True)
class Look:
    """What one look saw. What was not heard of is left out, and `trouble` says why, if it should have been.

    `blind`: nobody answered. `topics`: None where a topic does not exist. `group` None: no such group, or not heard of
    (`group_heard`). `states`: None where nothing is durable. Log starts and ends: of those that are known.
    """

    trouble: str = ""
    blind: bool = False
    topics: dict[str, MetadataResponse.Topic | None] = field(default_factory=dict)
    group: ShareGroupDescribeResponse.DescribedGroup | None = None
    group_heard: bool = False
    configs: dict[str, str] = field(default_factory=dict)
    records: list[StateRecord] = field(default_factory=list)
    states: dict[Place, KeyState | None] = field(default_factory=dict)
    log_starts: dict[Place, int] = field(default_factory=dict)
    log_ends: dict[Place, int] = field(default_factory=dict)

    def fail(self, what: str, reply: Reply, error: Errors = Errors.NONE) -> None:
        """Note the first trouble: no answer, or an error in it."""
        if not self.trouble:
            silent = reply.response is None
            self.trouble = f"{what}: {(silent and reply.reason) or (error or reply.error).name}"


class Looking:
    """Looks at one group, and remembers where things are and how far the state topic has been read."""

    def __init__(self, group: str, topics: Sequence[str] | None) -> None:
        self.group = group
        self._names = None if topics is None else frozenset(topics)
        self._found: frozenset[str] = frozenset()
        self._coordinator: int | None = None
        self._log = StateLog(group)

    def look(self) -> Operation[Look]:
        look = Look()
        yield from self._find_coordinator(look)
        yield from self._ask_about_group(look)
        state_topic = yield from self._ask_metadata(look)
        yield from self._read_state(look, state_topic)
        yield from self._ask_logs(look)
        return look

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _find_coordinator(self, look: Look) -> Operation[None]:
        if self._coordinator is not None:
            return
        (reply,) = yield [Ask(ANY_NODE, FindCoordinatorRequest(key_type=0, coordinator_keys=(self.group,)))]
        found = reply.response.coordinators[0] if reply.response is not None else None
        if found is None or found.error_code:
            look.fail(f"the coordinator of {self.group}", reply, found.error_code if found else Errors.NONE)
        else:
            self._coordinator = found.node_id

    def _ask_about_group(self, look: Look) -> Operation[None]:
        resource = DescribeConfigsRequest.Resource(
            resource_type=ResourceType.GROUP, resource_name=self.group, configuration_keys=CONFIGS
        )
        asked: list[Ask] = [Ask(ANY_NODE, DescribeConfigsRequest(resources=(resource,)))]
        if self._coordinator is not None:
            asked.append(Ask(self._coordinator, ShareGroupDescribeRequest(group_ids=(self.group,))))
            if self._names is None:
                offsets = DescribeShareGroupOffsetsRequest.Group(group_id=self.group)
                asked.append(Ask(self._coordinator, DescribeShareGroupOffsetsRequest(groups=(offsets,))))
        configs, *about = yield asked
        self._learn_configs(look, configs)
        groups = [self._group_in(look, reply) for reply in about]
        if groups:
            look.group = groups[0]
        if look.group is not None:
            self._found |= {name for member in look.group.members for name in member.subscribed_topic_names}
        if groups[1:] and groups[1] is not None:
            self._found |= {topic.topic_name for topic in groups[1].topics}

    def _learn_configs(self, look: Look, reply: Reply) -> None:
        result = reply.response.results[0] if reply.response is not None else None
        if result is None or result.error_code:
            look.fail("the group's configuration", reply, result.error_code if result else Errors.NONE)
        else:
            look.configs = {c.name: c.value for c in result.configs if c.name in CONFIGS and c.value is not None}

    def _group_in(self, look: Look, reply: Reply) -> Any:
        """The group in an answer about it, None where there is none."""
        group = reply.response.groups[0] if reply.response is not None else None
        error = group.error_code if group is not None else reply.error
        if group is None or error in COORDINATOR_MOVED:
            self._coordinator = None
        if error and error not in _CALM:
            look.fail(f"the description of {self.group}", reply, error)
        look.group_heard |= group is not None and error in (Errors.NONE, Errors.GROUP_ID_NOT_FOUND)
        return None if error else group

    # ---- topics ------------------------------------------------------------------------------------------------------

    def _ask_metadata(self, look: Look) -> Operation[MetadataResponse.Topic | None]:
        """Learn of the topics; answers the state topic."""
        names = sorted((self._found if self._names is None else self._names) - {SHARE_STATE_TOPIC})
        asked = tuple(MetadataRequest.Topic(name=name) for name in (*names, SHARE_STATE_TOPIC))
        (reply,) = yield [Ask(ANY_NODE, MetadataRequest(topics=asked))]
        if reply.response is None:
            look.trouble, look.blind = f"the cluster does not answer: {reply.reason or reply.error.name}", True
            return None
        found = {topic.name: topic for topic in reply.response.topics}
        for name, topic in found.items():
            if topic.error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION:
                found[name] = None
            elif topic.error_code:
                look.fail(f"the metadata of {name}", reply, topic.error_code)
        state_topic = found.pop(SHARE_STATE_TOPIC, None)
        look.topics = {name: topic for name, topic in found.items() if topic is None or not topic.error_code}
        if state_topic is None:
            look.states = dict.fromkeys(self._places(look))
        return None if state_topic is None or state_topic.error_code else state_topic

    @staticmethod
    def _places(look: Look) -> list[Place]:
        return [(name, p.partition_index) for name, topic in look.topics.items() if topic for p in topic.partitions]

    # ---- logs --------------------------------------------------------------------------------------------------------

    def _read_state(self, look: Look, state_topic: MetadataResponse.Topic | None) -> Operation[None]:
        if state_topic is None:
            return
        self._log.begin(state_topic.topic_id, len(state_topic.partitions))
        keys = {
            place: SharePartitionKey(self.group, topic.topic_id, place[1])
            for place in self._places(look)
            if (topic := look.topics[place[0]]) is not None
        }
        wanted = {self._log.partition_of(key) for key in keys.values()}
        yield from read_state(self._log, look, state_topic, wanted)
        read = {place: key for place, key in keys.items() if self._log.is_read(self._log.partition_of(key))}
        look.states = {place: self._log.state(key) for place, key in read.items()}

    def _ask_logs(self, look: Look) -> Operation[None]:
        """Where logs start and end. After the state: no SPSO shall lie above a log end that is shown."""
        led: dict[int, dict[str, list[int]]] = {}
        for name, topic in look.topics.items():
            for partition in topic.partitions if topic else ():
                if partition.leader_id >= 0:
                    led.setdefault(partition.leader_id, {}).setdefault(name, []).append(partition.partition_index)
        for timestamp, offsets in ((EARLIEST_TIMESTAMP, look.log_starts), (LATEST_TIMESTAMP, look.log_ends)):
            replies = yield [Ask(node, list_offsets(topics.items(), timestamp)) for node, topics in led.items()]
            for reply in replies:
                if reply.response is None:
                    look.fail("the offsets of the log", reply)
                    continue
                for found in reply.response.topics:
                    offsets |= {(found.name, p.partition_index): p.offset for p in found.partitions if p.offset >= 0}
