"""What a response says of topics that a request names and that are not served: the same of each partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shareq.model.ids import ZERO_TOPIC_ID


def refused_topics(response: Any, topics: Iterable[Any], **fields: Any) -> tuple[Any, ...]:
    """For each topic of a request that of the `response`, a class with structures Topic and Partition. A topic has the
    name and the id of the request, each of its partitions these `fields`, usually an error."""
    *names, partitions = response.Topic.__match_args__
    index, *_ = response.Partition.__match_args__

    def partition(requested: Any) -> Any:
        """A request lists its partitions as numbers, or as structures that begin with the number."""
        number = requested if isinstance(requested, int) else getattr(requested, requested.__match_args__[0])
        return response.Partition(**{index: number}, **fields)

    def refused(topic: Any) -> Any:
        identity = {name: getattr(topic, name, ZERO_TOPIC_ID) for name in names}
        requested = getattr(topic, topic.__match_args__[-1])
        return response.Topic(**identity, **{partitions: tuple(map(partition, requested))})

    return tuple(map(refused, topics))
