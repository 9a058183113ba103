"""The leaders that the errors of share responses name (KIP-951), for processes on a backend. BEHAVIOUR.md, 6.9."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shareq.broker.backend.processes import NODES
from shareq.model.errors import Errors
from shareq.model.messages.base import Response
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, ShareAcknowledgeResponse, ShareFetchResponse

UNKNOWN = LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
"""No leader is named: the client reads the metadata."""

_OF_LEADERS = (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH)


def without_other_processes(response: Response, node: int) -> Response:
    """The response of a node to a share fetch or acknowledgement, in which no error names a leader in another process.

    The leader epoch of a partition is the backend's, which stays when another process leads. Clients take a leader from
    an error only if its epoch is newer than theirs, and Java's since 4.4 keep the former leader otherwise.
    """
    if not isinstance(response, ShareFetchResponse | ShareAcknowledgeResponse):
        return response
    if not any(part.error_code in _OF_LEADERS for topic in response.responses for part in topic.partitions):
        return response
    slot = node // NODES
    topics = tuple(_unnamed(topic, slot) for topic in response.responses)
    endpoints = tuple(one for one in response.node_endpoints if one.node_id // NODES == slot)
    changed: Response = replace(response, responses=topics, node_endpoints=endpoints)  # type: ignore[arg-type]
    return changed


def _unnamed(topic: Any, slot: int) -> Any:
    def part(one: Any) -> Any:
        other = one.error_code in _OF_LEADERS and one.current_leader.leader_id // NODES != slot
        return replace(one, current_leader=UNKNOWN) if other else one

    return replace(topic, partitions=tuple(part(one) for one in topic.partitions))
