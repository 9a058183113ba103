"""Requests that the backend answers: what changes on the way there, and on the way back. BEHAVIOUR.md, section 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.image import BrokerImage, ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import FindCoordinatorResponse, MetadataResponse
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.describe import DescribeClusterResponse
from shareq.model.messages.fetch import FetchResponse

T = TypeVar("T", ProduceRequest.Topic, ProduceResponse.Topic)


def to_backend(request: Request, image: ClusterImage) -> Request:
    """Name topics of a Produce both ways: the backend may use an older version, which has names instead of ids. One
    with acks=0 is sent with acks=1: the connection to the backend expects an answer; the client gets none."""
    if isinstance(request, ProduceRequest):
        return replace(request, acks=request.acks or 1, topics=_named(request.topics, image))
    return request


def to_client(response: Response, image: ClusterImage) -> Response:
    """Replace the addresses of the backend's brokers by those of this process."""
    rewrite = _REWRITES.get(type(response))
    return response if rewrite is None else rewrite(response, image)


def _named(topics: Sequence[T], image: ClusterImage) -> tuple[T, ...]:
    return tuple(_named_topic(topic, image) for topic in topics)


def _named_topic(topic: T, image: ClusterImage) -> T:
    by_name = topic.topic_id == ZERO_TOPIC_ID
    found = image.topics.get(topic.name) if by_name else image.topics_by_id.get(topic.topic_id)
    return topic if found is None else replace(topic, topic_id=found.topic_id, name=found.name)


# ---- responses -------------------------------------------------------------------------------------------------------


def _addressed(brokers: Iterable[Any], id_field: str, image: ClusterImage) -> tuple[Any, ...]:
    """The same brokers, with the host and port that the image has."""

    def moved(one: Any) -> Any:
        found: BrokerImage | None = image.brokers.get(getattr(one, id_field))
        return one if found is None else replace(one, host=found.host, port=found.port)

    return tuple(moved(one) for one in brokers)


def _metadata(response: MetadataResponse, image: ClusterImage) -> MetadataResponse:
    return replace(response, brokers=_addressed(response.brokers, "node_id", image))


def _cluster(response: DescribeClusterResponse, image: ClusterImage) -> DescribeClusterResponse:
    return replace(response, brokers=_addressed(response.brokers, "broker_id", image))


def _coordinators(response: FindCoordinatorResponse, image: ClusterImage) -> FindCoordinatorResponse:
    return replace(response, coordinators=_addressed(response.coordinators, "node_id", image))


def _produced(response: ProduceResponse, image: ClusterImage) -> ProduceResponse:
    endpoints = _addressed(response.node_endpoints, "node_id", image)
    return replace(response, responses=_named(response.responses, image), node_endpoints=endpoints)


def _fetched(response: FetchResponse, image: ClusterImage) -> FetchResponse:
    return replace(response, node_endpoints=_addressed(response.node_endpoints, "node_id", image))


_REWRITES: dict[type[Response], Callable[[Any, ClusterImage], Response]] = {
    MetadataResponse: _metadata,
    DescribeClusterResponse: _cluster,
    FindCoordinatorResponse: _coordinators,
    ProduceResponse: _produced,
    FetchResponse: _fetched,
}
