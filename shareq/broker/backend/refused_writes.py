"""Requests of clients that would change the topics of this project: refused, as Kafka refuses writes to its internal
topics. BEHAVIOUR.md, 5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC, HERE, IN_BACKEND
from shareq.model.errors import Errors
from shareq.model.ids import INTERNAL_TOPICS, SHARE_STATE_TOPIC, TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import DeleteRecordsRequest, DeleteRecordsResponse, ProduceRequest, ProduceResponse
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)

_WITHOUT_RECORDS = INTERNAL_TOPICS | HERE.keys() | {GROUP_CONFIGS_TOPIC}
"""The topics to which clients may not write: Kafka's internal topics, and those of this project."""

_ERROR = Errors.INVALID_TOPIC_EXCEPTION
_WHY = f"{SHARE_STATE_TOPIC} is {IN_BACKEND[SHARE_STATE_TOPIC]} in the backend: to change it, use that name"
_NO_RECORDS = "an internal topic: only coordinators write records"


class _Kind(NamedTuple):
    """A request that writes. `items`: its field with the topics; `results`: the field of the response with the results;
    `refused(item)`: the result of a topic that is refused."""

    items: str
    results: str
    response: Callable[..., Response]
    refused: Callable[[Any], Any]


def refused_parts(
    request: Request, image: ClusterImage, configs_id: TopicId | None = None
) -> tuple[Request | None, Response | None]:
    """The rest of a request, None if nothing is left, and the response to what is refused, None if nothing is.
    `configs_id`: the id of the topic of groups' configurations, which the image does not have."""
    kind = _KINDS.get(type(request))
    if kind is None:
        return request, None
    items = getattr(request, kind.items)
    refused = [one for one in items if _is_refused(request, one, image, configs_id)]
    if not refused:
        return request, None
    changed: Any = request
    kept = tuple(one for one in items if one not in refused)
    rest = replace(changed, **{kind.items: kept}) if kept else None
    return rest, kind.response(**{kind.results: tuple(kind.refused(one) for one in refused)})


def merged(request: Request, response: Response, refusal: Response) -> Response:
    """The response to the rest of a request, with what was refused of it."""
    results = _KINDS[type(request)].results
    changed: Any = response
    whole: Response = replace(changed, **{results: (*getattr(response, results), *getattr(refusal, results))})
    return whole


def _is_refused(request: Request, item: Any, image: ClusterImage, configs_id: TopicId | None) -> bool:
    """True for Kafka's name of the state topic, and for its id, which clients know by that name. The image has the
    coordinators' topics by Kafka's names."""
    if getattr(item, "resource_type", ResourceType.TOPIC) != ResourceType.TOPIC:
        return False
    name = getattr(item, "resource_name", None) or getattr(item, "name", None)
    if not name:
        topic = image.topics_by_id.get(item.topic_id)
        name = GROUP_CONFIGS_TOPIC if item.topic_id == configs_id else topic.name if topic else ""
    return name in (_WITHOUT_RECORDS if isinstance(request, ProduceRequest) else {SHARE_STATE_TOPIC})


def unanswered(request: ProduceRequest) -> ProduceResponse:
    """The response to records that a broker of the backend may have appended, and has not answered: their producer asks
    for the leader, and sends them again."""
    error = Errors.NOT_LEADER_OR_FOLLOWER
    return ProduceResponse(responses=refused_topics(ProduceResponse, request.topics, error_code=error))


def _partitions(response: Any, **fields: Any) -> Callable[[Any], Any]:
    """The refusal of each partition of a topic."""
    return lambda topic: refused_topics(response, [topic], error_code=_ERROR, **fields)[0]


def _deleted(topic: DeleteTopicsRequest.Topic) -> DeleteTopicsResponse.Topic:
    return DeleteTopicsResponse.Topic(name=topic.name, topic_id=topic.topic_id, error_code=_ERROR, error_message=_WHY)


def _with_name(make: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda topic: make(name=topic.name, error_code=_ERROR, error_message=_WHY)


def _altered(make: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda one: make(
        resource_type=one.resource_type, resource_name=one.resource_name, error_code=_ERROR, error_message=_WHY
    )


_KINDS: Mapping[type[Request], _Kind] = {
    ProduceRequest: _Kind(
        "topics", "responses", ProduceResponse, _partitions(ProduceResponse, error_message=_NO_RECORDS)
    ),
    DeleteRecordsRequest: _Kind("topics", "topics", DeleteRecordsResponse, _partitions(DeleteRecordsResponse)),
    DeleteTopicsRequest: _Kind("topics", "responses", DeleteTopicsResponse, _deleted),
    CreateTopicsRequest: _Kind("topics", "topics", CreateTopicsResponse, _with_name(CreateTopicsResponse.Topic)),
    CreatePartitionsRequest: _Kind(
        "topics", "results", CreatePartitionsResponse, _with_name(CreatePartitionsResponse.Topic)
    ),
    AlterConfigsRequest: _Kind("resources", "responses", AlterConfigsResponse, _altered(AlterConfigsResponse.Result)),
    IncrementalAlterConfigsRequest: _Kind(
        "resources", "responses", IncrementalAlterConfigsResponse, _altered(IncrementalAlterConfigsResponse.Result)
    ),
}
