"""When the image shows what a client has changed: the client's next request to share groups may need it.

BEHAVIOUR.md, section 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

Shown = Callable[[ClusterImage], bool]


def shown(request: Request, response: Response | None) -> Shown | None:
    """A test of the image for the change that a request has made; None if it has made none."""
    for kind, answer, test in _CHANGES:
        if isinstance(request, kind) and isinstance(response, answer):
            return None if getattr(request, "validate_only", False) else test(request, response)
    return None


def _created(_: Any, response: CreateTopicsResponse) -> Shown:
    made = [topic for topic in response.topics if not topic.error_code]

    def test(image: ClusterImage) -> bool:
        found = ((image.topics.get(topic.name), topic.topic_id) for topic in made)
        return all(there and topic_id in (there.topic_id, ZERO_TOPIC_ID) for there, topic_id in found)

    return test


def _deleted(_: Any, response: DeleteTopicsResponse) -> Shown:
    gone = [topic for topic in response.responses if not topic.error_code]

    def test(image: ClusterImage) -> bool:
        names = (topic.name for topic in gone if topic.topic_id == ZERO_TOPIC_ID)
        ids = (topic.topic_id for topic in gone)
        return not any(one in image.topics_by_id for one in ids) and not any(name in image.topics for name in names)

    return test


def _added(request: CreatePartitionsRequest, response: CreatePartitionsResponse) -> Shown:
    added = {topic.name for topic in response.results if not topic.error_code}
    counts = {topic.name: topic.count for topic in request.topics if topic.name in added}

    def test(image: ClusterImage) -> bool:
        found = {name: image.topics.get(name) for name in counts}
        return all(topic is None or len(topic.partitions) >= counts[name] for name, topic in found.items())

    return test


_CHANGES: tuple[tuple[type[Request], type[Response], Callable[[Any, Any], Shown]], ...] = (
    (CreateTopicsRequest, CreateTopicsResponse, _created),
    (DeleteTopicsRequest, DeleteTopicsResponse, _deleted),
    (CreatePartitionsRequest, CreatePartitionsResponse, _added),
)
