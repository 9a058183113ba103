"""The epochs by which a share coordinator refuses a former leader of a share-partition. BEHAVIOUR.md, section 6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shareq.model.messages.base import Request
from shareq.model.messages.share_state import ReadShareGroupStateRequest, WriteShareGroupStateRequest


def stamped(request: Request, term: int) -> Request:
    """A leader's request to its persister, with leader epochs that also grow when another process leads: the backend's
    epoch + the term of the fleet. Requests of group coordinators have no leader epochs."""
    if not isinstance(request, ReadShareGroupStateRequest | WriteShareGroupStateRequest):
        return request
    found: Any = request
    changed: Request = replace(found, topics=tuple(_stamped(topic, term) for topic in found.topics))
    return changed


def _stamped(topic: Any, term: int) -> Any:
    partitions = tuple(replace(one, leader_epoch=one.leader_epoch + term) for one in topic.partitions)
    return replace(topic, partitions=partitions)
