"""Divides a share-state request into its entries, and combines their results to one response."""

from __future__ import annotations

from typing import Any

from shareq.model.actor import Incoming, Respond
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.base import Request
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

RESPONSES: dict[type[Request], type[Any]] = {
    InitializeShareGroupStateRequest: InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest: ReadShareGroupStateResponse,
    WriteShareGroupStateRequest: WriteShareGroupStateResponse,
    DeleteShareGroupStateRequest: DeleteShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest: ReadShareGroupStateSummaryResponse,
}


class CombinedResponse:
    """The response to one request, with results in the order of its entries; complete when every entry has a result.

    Raises ValueError for a request without group, topics or partitions, or with a negative partition.
    """

    __slots__ = ("_open", "_results", "id", "request", "response")

    def __init__(self, incoming: Incoming) -> None:
        request: Any = incoming.request
        _check(request)
        self.id = incoming.id
        self.request = incoming.request
        self.response = RESPONSES[type(request)]
        self._results: list[Any] = [None] * sum([len(topic.partitions) for topic in request.topics])
        self._open = len(self._results)

    @property
    def count(self) -> int:
        """The number of entries of the request."""
        return len(self._results)

    def put(self, index: int, result: Any) -> Respond | None:
        """Store the result of the entry `index`. Returns the response after the last one."""
        assert self._results[index] is None
        self._results[index] = result
        self._open -= 1
        return None if self._open else Respond(self.id, self._assemble())

    def _assemble(self) -> Any:
        request: Any = self.request
        results = iter(self._results)
        topic = self.response.Topic
        return self.response(
            results=tuple(
                [
                    topic(topic_id=t.topic_id, partitions=tuple([next(results) for _ in t.partitions]))
                    for t in request.topics
                ]
            )
        )


def _check(request: Any) -> None:
    partitions = [entry.partition for topic in request.topics for entry in topic.partitions]
    if not request.group_id or not request.topics or not all(topic.partitions for topic in request.topics):
        raise ValueError(f"a share-state request names a group, topics and partitions: {request}")
    if min(partitions) < 0:
        raise ValueError(f"a partition cannot be negative: {request}")


class RequestEntry:
    """One entry of a request, with the numbers of its failed lookups and calls."""

    __slots__ = ("entry", "failed_calls", "failed_lookups", "index", "joint", "key")

    def __init__(self, joint: CombinedResponse, index: int, key: SharePartitionKey, entry: Any) -> None:
        self.joint = joint
        self.index = index
        self.key = key
        self.entry = entry
        self.failed_lookups = 0
        self.failed_calls = 0

    def fail(self, error: Errors) -> Respond | None:
        """Store `error` as the result."""
        return self.put(self.joint.response.Partition(partition=self.entry.partition, error_code=error))

    def put(self, result: Any) -> Respond | None:
        """Store the result. Returns the response if it is complete."""
        return self.joint.put(self.index, result)


def entries_of(joint: CombinedResponse) -> list[RequestEntry]:
    """The entries of a request."""
    request: Any = joint.request
    entries = [(topic.topic_id, entry) for topic in request.topics for entry in topic.partitions]
    return [
        RequestEntry(joint, index, SharePartitionKey(request.group_id, topic_id, entry.partition), entry)
        for index, (topic_id, entry) in enumerate(entries)
    ]
