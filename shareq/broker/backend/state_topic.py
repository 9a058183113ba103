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
from shareq.model.messages.fetch import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchRequest,
    OffsetForLeaderEpochRequest,
)
from shareq.model.messages.topics import DescribeConfigsRequest, ResourceType

M = TypeVar("M", Request, Response)

OURS = IN_BACKEND[SHARE_STATE_TOPIC]
"""Its name in the backend."""


class _Place(NamedTuple):
    """Where a request and its response name topics: their fields with the topics, and the field of a name there."""

    name: str
    asked: tuple[str, ...] = ("topics",)
    answered: str = "topics"


_NAMES: Mapping[type[Request], _Place] = {
    MetadataRequest: _Place("name"),
    FetchRequest: _Place("topic", ("topics", "forgotten_topics_data"), "responses"),
    ListOffsetsRequest: _Place("name"),
    OffsetForLeaderEpochRequest: _Place("topic"),
    DescribeTopicPartitionsRequest: _Place("name"),
    DescribeProducersRequest: _Place("name"),
    DescribeConfigsRequest: _Place("resource_name", ("resources",), "results"),
}
"""The requests of readers that name topics. Fetch does so before version 13."""


def asked(request: Request) -> Request:
    """The same request with the topic's name in the backend. A Fetch that has this name itself gets no session: the
    responses of one would not show which name the client has used."""
    place = _NAMES.get(type(request))
    if place is None:
        return request
    if isinstance(request, FetchRequest) and request.session_epoch == INITIAL_EPOCH and OURS in _asked(request, place):
        request = replace(request, session_id=NO_SESSION, session_epoch=FINAL_EPOCH)
    for field in place.asked:
        found = getattr(request, field) or ()
        if SHARE_STATE_TOPIC in _named(found, place):
            request = _with(request, field, [_renamed(one, place, SHARE_STATE_TOPIC, OURS) for one in found])
    return request


def joins_session(request: FetchRequest) -> bool:
    """True if a client adds the topic by its name in the backend to a session that it has."""
    return request.session_epoch > INITIAL_EPOCH and OURS in _asked(request, _NAMES[FetchRequest])


def answered(request: Request, response: Response) -> Response:
    """The response to a client's request with Kafka's name, unless the client has used the other one. A list of all
    topics does not have Kafka's own topic."""
    place = _NAMES.get(type(request))
    if place is None or OURS in _asked(request, place):
        return response
    topics = getattr(request, place.asked[0])
    found = getattr(response, place.answered, ())
    kept = [one for one in found if topics or getattr(one, place.name) != SHARE_STATE_TOPIC]
    if len(kept) == len(found) and OURS not in _named(kept, place):
        return response
    return _with(response, place.answered, [_renamed(one, place, OURS, SHARE_STATE_TOPIC) for one in kept])


def _with(message: M, field: str, topics: Iterable[Any]) -> M:
    changed: Any = message
    made: M = replace(changed, **{field: tuple(topics)})
    return made


def _asked(request: Request, place: _Place) -> list[str | None]:
    """The names of the topics that a request asks for."""
    return _named(getattr(request, place.asked[0]) or (), place)


def _named(topics: Iterable[Any], place: _Place) -> list[str | None]:
    return [getattr(one, place.name) for one in topics if _is_topic(one)]


def _is_topic(one: Any) -> bool:
    return getattr(one, "resource_type", ResourceType.TOPIC) == ResourceType.TOPIC


def _renamed(topic: Any, place: _Place, old: str, new: str) -> Any:
    if getattr(topic, place.name) != old or not _is_topic(topic):
        return topic
    internal = {"is_internal": True} if new == SHARE_STATE_TOPIC and hasattr(topic, "is_internal") else {}
    return replace(topic, **{place.name: new}, **internal)
