"""The state topic for readers on a port of this process: it has Kafka's name there, and the states of the groups that
are served there. Kafka's own topic of this name has those of Kafka's share groups. BEHAVIOUR.md, 5.6."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from shareq.broker.backend.topics import IN_BACKEND
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ListOffsetsRequest
from shareq.model.messages.describe import DescribeTopicPartitionsRequest
from shareq.model.messages.fetch import OffsetForLeaderEpochRequest

M = TypeVar("M", Request, Response)

OURS = IN_BACKEND[SHARE_STATE_TOPIC]
"""Its name in the backend."""

_NAMES: Mapping[type[Request], str] = {
    MetadataRequest: "name",
    ListOffsetsRequest: "name",
    OffsetForLeaderEpochRequest: "topic",
    DescribeTopicPartitionsRequest: "name",
}
"""The requests of readers that name topics, and the field of the name in request and response. Fetch has ids."""


def asked(request: Request) -> Request:
    """The same request with the topic's name in the backend."""
    field, found = _NAMES.get(type(request), ""), getattr(request, "topics", None)
    if not field or not found or SHARE_STATE_TOPIC not in _named(found, field):
        return request
    return _with_topics(request, [_renamed(one, field, SHARE_STATE_TOPIC, OURS) for one in found])


def answered(request: Request, response: Response) -> Response:
    """The response to a client's request with Kafka's name, unless the client has used the other one. A list of all
    topics does not have Kafka's own topic."""
    field, topics = _NAMES.get(type(request), ""), getattr(request, "topics", None) or ()
    if not field or OURS in _named(topics, field):
        return response
    found = getattr(response, "topics", ())
    kept = [one for one in found if topics or getattr(one, field) != SHARE_STATE_TOPIC]
    if len(kept) == len(found) and OURS not in _named(kept, field):
        return response
    return _with_topics(response, [_renamed(one, field, OURS, SHARE_STATE_TOPIC) for one in kept])


def _with_topics(message: M, topics: Iterable[Any]) -> M:
    changed: Any = message
    made: M = replace(changed, topics=tuple(topics))
    return made


def _named(topics: Iterable[Any], field: str) -> list[str | None]:
    return [getattr(one, field) for one in topics]


def _renamed(topic: Any, field: str, old: str, new: str) -> Any:
    if getattr(topic, field) != old:
        return topic
    internal = {"is_internal": True} if new == SHARE_STATE_TOPIC and hasattr(topic, "is_internal") else {}
    return replace(topic, **{field: new}, **internal)
