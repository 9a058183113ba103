"""The persister that stores nothing: every request succeeds. Source: Kafka's NoOpStatePersister."""

from __future__ import annotations

from typing import Any

from shareq.model.actor import Effect, Incoming, Message
from shareq.model.messages.base import Request
from shareq.model.messages.share_state import ReadShareGroupStateRequest, ReadShareGroupStateSummaryRequest
from shareq.persister.combined_response import CombinedResponse, entries_of

_NO_STATE: dict[type[Request], dict[str, int]] = {
    ReadShareGroupStateRequest: {"start_offset": -1},
    ReadShareGroupStateSummaryRequest: {"start_offset": -1},
}
"""The fields of a read: those of a share-partition that was initialized and never used."""


class NoOpPersister:
    """The actor. A restarted leader begins at the offset that `share.auto.offset.reset` gives."""

    wake_at_ms: int | None = None

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        del now_ms
        if not isinstance(message, Incoming):
            return []
        joint = CombinedResponse(message)
        fields: Any = _NO_STATE.get(type(message.request), {})
        answers = [
            part.put(joint.response.Partition(partition=part.entry.partition, **fields)) for part in entries_of(joint)
        ]
        return [answer for answer in answers if answer]
