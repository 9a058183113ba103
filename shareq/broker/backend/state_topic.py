"""The state topic for readers on a port of this process: it has Kafka's name there, and the states of the groups that
are served there. Kafka's own topic of this name has those of Kafka's share groups. BEHAVIOUR.md, 5.6."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from shareq.broker.backend.topics import IN_BACKEND
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ListOffsetsRequest
from shareq.model.messages.describe import DescribeProducersRequest, DescribeTopicPartitionsRequest
from shareq.model.messages.fetch import OffsetForLeaderEpochRequest
from shareq.model.messages.topics import DescribeConfigsRequest, ResourceType

M = TypeVar("M", Request, Response)

OURS = IN_BACKEND[SHARE_STATE_TOPIC]
"""Its name in the backend."""


class _Place(NamedTuple):
    """Where a request and its response name topics: their fields with the topics, and the field of a name there."""

    name: str
    asked: str = "topics"
    answered: str = "topics"


_NAMES: Mapping[type[Request], _Place] = {
    MetadataRequest: _Place("name"),
    ListOffsetsRequest: _Place("name"),
    OffsetForLeaderEpochRequest: _Place("topic"),
    DescribeTopicPartitionsRequest: _Place("name"),
    DescribeProducersRequest: _Place("name"),
    DescribeConfigsRequest: _Place("resource_name", "resources", "results"),
}
"""The requests of readers that name topics. Fetch has ids."""


def asked(request: Request) -> Request:
    """The same request with the topic's name in the backend."""
    place = _NAMES.get(type(request))
    found = getattr(request, place.asked) if place else None
    if place is None or not found or SHARE_STATE_TOPIC not in _named(found, place):
        return request
    return _with(request, place.asked, [_renamed(one, place, SHARE_STATE_TOPIC, OURS) for one in found])


def answered(request: Request, response: Response) -> Response:
    """The response to a client's request with Kafka's name, unless the client has used the other one. A list of all
    topics does not have Kafka's own topic."""
    place = _NAMES.get(type(request))
    topics = getattr(request, place.asked) or () if place else ()
    if place is None or OURS in _named(topics, place):
        return response
    found = getattr(response, place.answered, ())
    kept = [one for one in found if topics or getattr(one, place.name) != SHARE_STATE_TOPIC]
    if len(kept) == len(found) and OURS not in _named(kept, place):
        return response
    return _with(response, place.answered, [_renamed(one, place, OURS, SHARE_STATE_TOPIC) for one in kept])


def _with(message: M, field: str, topics: Iterable[Any]) -> M:
    changed: Any = message
    made: M = replace(changed, **{field: tuple(topics)})
    return made


def _named(topics: Iterable[Any], place: _Place) -> list[str | None]:
    return [getattr(one, place.name) for one in topics if _is_topic(one)]


def _is_topic(one: Any) -> bool:
    return getattr(one, "resource_type", ResourceType.TOPIC) == ResourceType.TOPIC


def _renamed(topic: Any, place: _Place, old: str, new: str) -> Any:
    if getattr(topic, place.name) != old or not _is_topic(topic):
        return topic
    internal = {"is_internal": True} if new == SHARE_STATE_TOPIC and hasattr(topic, "is_internal") else {}
    return replace(topic, **{place.name: new}, **internal)
