"""One poll of a cluster: every request of an observer, each once. The next poll repeats those that failed.

An observer needs DESCRIBE on the group and the topics, and READ on `__share_group_state`; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shareq.admin.broker_routing import COORDINATOR_MOVED
from shareq.admin.core import Operation, Reply, Send
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataResponse
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from shareq.model.messages.share_group import (
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
)
from shareq.model.messages.topics import DescribeConfigsRequest, ResourceType
from shareq.observer.passed_log import PassedLog
from shareq.observer.poll_result import PartitionId, PollResult
from shareq.observer.state_topic_reader import list_offsets_request, read_state_topic

CONFIGS = (
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "errors.deadletterqueue.topic.name",
)
"""The group's configurations that a view shows."""

_GROUP_ABSENT = frozenset({Errors.GROUP_ID_NOT_FOUND, Errors.COORDINATOR_LOAD_IN_PROGRESS})
"""Errors that are no trouble: the group does not exist, or is not loaded yet."""


class ClusterPoll:
    """Polls one group, and keeps its coordinator, its topics and the position in the state topic between polls."""

    def __init__(self, group: str, topics: Sequence[str] | None) -> None:
        self.group = group
        self._topics = None if topics is None else frozenset(topics)
        self._group_topics: frozenset[str] = frozenset()
        self._coordinator: int | None = None
        self._log = PassedLog((group,))

    def poll(self) -> Operation[PollResult]:
        result = PollResult()
        yield from self._find_coordinator(result)
        yield from self._describe_group(result)
        state_topic = yield from self._fetch_metadata(result)
        yield from self._read_state(result, state_topic)
        yield from self._list_log_offsets(result)
        return result

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _find_coordinator(self, result: PollResult) -> Operation[None]:
        if self._coordinator is not None:
            return
        (reply,) = yield [Send(ANY_NODE, FindCoordinatorRequest(key_type=0, coordinator_keys=(self.group,)))]
        found = reply.response.coordinators[0] if reply.response is not None else None
        if found is None or found.error_code:
            result.fail(f"the coordinator of {self.group}", reply, found.error_code if found else Errors.NONE)
        else:
            self._coordinator = found.node_id

    def _describe_group(self, result: PollResult) -> Operation[None]:
        resource = DescribeConfigsRequest.Resource(
            resource_type=ResourceType.GROUP, resource_name=self.group, configuration_keys=CONFIGS
        )
        asked: list[Send] = [Send(ANY_NODE, DescribeConfigsRequest(resources=(resource,)))]
        if self._coordinator is not None:
            asked.append(Send(self._coordinator, ShareGroupDescribeRequest(group_ids=(self.group,))))
            if self._topics is None:
                offsets = DescribeShareGroupOffsetsRequest.Group(group_id=self.group)
                asked.append(Send(self._coordinator, DescribeShareGroupOffsetsRequest(groups=(offsets,))))
        configs, *about = yield asked
        self._take_configs(result, configs)
        groups = [self._group_in(result, reply) for reply in about]
        if groups:
            result.group = groups[0]
        if result.group is not None:
            self._group_topics |= {name for member in result.group.members for name in member.subscribed_topic_names}
        if groups[1:] and groups[1] is not None:
            self._group_topics |= {topic.topic_name for topic in groups[1].topics}

    def _take_configs(self, result: PollResult, reply: Reply) -> None:
        resource = reply.response.results[0] if reply.response is not None else None
        if resource is None or resource.error_code:
            result.fail("the group's configuration", reply, resource.error_code if resource else Errors.NONE)
        else:
            result.configs = {c.name: c.value for c in resource.configs if c.name in CONFIGS and c.value is not None}

    def _group_in(self, result: PollResult, reply: Reply) -> Any:
        """The group in a response, None if there is none."""
        group = reply.response.groups[0] if reply.response is not None else None
        error = group.error_code if group is not None else reply.error
        if group is None or error in COORDINATOR_MOVED:
            self._coordinator = None
        if error and error not in _GROUP_ABSENT:
            result.fail(f"the description of {self.group}", reply, error)
        result.group_described |= group is not None and error in (Errors.NONE, Errors.GROUP_ID_NOT_FOUND)
        return None if error else group

    # ---- topics ------------------------------------------------------------------------------------------------------

    def _fetch_metadata(self, result: PollResult) -> Operation[MetadataResponse.Topic | None]:
        """Read the metadata of the topics; return that of the state topic."""
        names = sorted((self._group_topics if self._topics is None else self._topics) - {SHARE_STATE_TOPIC})
        asked = tuple(MetadataRequest.Topic(name=name) for name in (*names, SHARE_STATE_TOPIC))
        (reply,) = yield [Send(ANY_NODE, MetadataRequest(topics=asked))]
        if reply.response is None:
            result.trouble, result.unreachable = (
                f"the cluster does not answer: {reply.reason or reply.error.name}",
                True,
            )
            return None
        found = {topic.name: topic for topic in reply.response.topics}
        for name, topic in found.items():
            if topic.error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION:
                found[name] = None
            elif topic.error_code:
                result.fail(f"the metadata of {name}", reply, topic.error_code)
        state_topic = found.pop(SHARE_STATE_TOPIC, None)
        result.topics = {name: topic for name, topic in found.items() if topic is None or not topic.error_code}
        if state_topic is None:
            result.states = dict.fromkeys(self._partitions(result))
        return None if state_topic is None or state_topic.error_code else state_topic

    @staticmethod
    def _partitions(result: PollResult) -> list[PartitionId]:
        return [(name, p.partition_index) for name, topic in result.topics.items() if topic for p in topic.partitions]

    # ---- logs --------------------------------------------------------------------------------------------------------

    def _read_state(self, result: PollResult, state_topic: MetadataResponse.Topic | None) -> Operation[None]:
        if state_topic is None:
            return
        self._log.set_topic(state_topic.topic_id, len(state_topic.partitions))
        keys = {
            at: SharePartitionKey(self.group, topic.topic_id, at[1])
            for at in self._partitions(result)
            if (topic := result.topics[at[0]]) is not None
        }
        wanted = {self._log.partition_of(key) for key in keys.values()}
        yield from read_state_topic(self._log, result, state_topic, wanted)
        read = {at: key for at, key in keys.items() if self._log.is_read(self._log.partition_of(key))}
        states = {at: self._log.state(key) for at, key in read.items()}
        # Copies: the next poll changes the states of the log, and the result may be used later.
        result.states = {at: None if state is None else replace(state) for at, state in states.items()}
        result.passed = {at: self._log.take_passed(key) for at, key in read.items()}

    def _list_log_offsets(self, result: PollResult) -> Operation[None]:
        """Read the starts and ends of logs. After the state, so that no SPSO is above a log end in the result."""
        led: dict[int, dict[str, list[int]]] = {}
        for name, topic in result.topics.items():
            for partition in topic.partitions if topic else ():
                if partition.leader_id >= 0:
                    led.setdefault(partition.leader_id, {}).setdefault(name, []).append(partition.partition_index)
        for timestamp, offsets in ((EARLIEST_TIMESTAMP, result.log_starts), (LATEST_TIMESTAMP, result.log_ends)):
            replies = yield [
                Send(node, list_offsets_request(topics.items(), timestamp)) for node, topics in led.items()
            ]
            for reply in replies:
                if reply.response is None:
                    result.fail("the offsets of the log", reply)
                    continue
                for found in reply.response.topics:
                    offsets |= {(found.name, p.partition_index): p.offset for p in found.partitions if p.offset >= 0}
