"""Which writer a shard's log obeys, and how often a writer is renewed. BEHAVIOUR.md, section 3.

The backend forgets producers and transactional ids after a time, and would then take batches of a former writer. The
fences in the log are not forgotten.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from shareq.log.records import decode_key_values
from shareq.model.actor import Answer
from shareq.model.messages.topics import DescribeConfigsRequest, DescribeConfigsResponse, ResourceType
from shareq.model.records import CoordinatorRecord, RecordBatch

Writer = tuple[int, int]
"""Producer id and epoch."""

RENEW_MS = 600_000
"""The longest time between two renewals."""

_EXPIRATIONS = ("transactional.id.expiration.ms", "producer.id.expiration.ms")


class Generations:
    """The fences of a log, which is read from its start on. `fence`: the record that a writer begins with.
    `settles(key, stray)`: True if a valid record with `key` ends the effect of an earlier one with the key `stray` that
    is not valid; by default if both keys are the same."""

    def __init__(self, fence: CoordinatorRecord, settles: Callable[[bytes, bytes], bool] = operator.eq) -> None:
        self._fence = fence
        self._settles = settles
        self._writer: Writer | None = None
        self.fences: list[int] = []
        """The offsets of the fences that were read."""
        self.strays: set[bytes] = set()
        """The keys of records of replaced writers that have an effect after compaction."""

    def valid(self, batches: Iterable[RecordBatch]) -> tuple[RecordBatch, ...]:
        """The next batches, without those of writers that another one had replaced. Batches without a producer are
        always valid: they come from processes that are not writers."""
        found = []
        for batch in batches:
            if batch.producer_id >= 0:
                writer = batch.producer_id, batch.producer_epoch
                if self._is_fence(batch):
                    self._writer = writer
                    self.fences.append(batch.base_offset)
                elif self._writer not in (None, writer):
                    self.strays |= _keys(batch)
                    continue
            self._settle(batch)
            found.append(batch)
        return tuple(found)

    def follow(self, writer: Writer, batches: Iterable[RecordBatch]) -> None:
        """Look for strays in batches that follow those of `writer`, which no other one has replaced."""
        for batch in batches:
            if batch.producer_id >= 0 and (batch.producer_id, batch.producer_epoch) != writer:
                self.strays |= _keys(batch)
            else:
                self._settle(batch)

    def _settle(self, batch: RecordBatch) -> None:
        if self.strays:
            keys = _keys(batch)
            self.strays = {stray for stray in self.strays if not any(self._settles(key, stray) for key in keys)}

    def replaced(self, writer: Writer, batches: Iterable[RecordBatch]) -> bool:
        """True if another writer has begun in these batches, which follow those of `writer`."""
        return any(
            batch.producer_id >= 0 and (batch.producer_id, batch.producer_epoch) != writer and self._is_fence(batch)
            for batch in batches
        )

    def _is_fence(self, batch: RecordBatch) -> bool:
        key, value = self._fence.key, self._fence.value
        if batch.record_count != 1 or key not in batch.data:
            return False
        return [record[1:] for record in decode_key_values(batch)] == [(key, value)]


def _keys(batch: RecordBatch) -> set[bytes]:
    return {key for _, key, _ in decode_key_values(batch) if key is not None}


def expirations_request(broker: int) -> DescribeConfigsRequest:
    """The question to a broker of the backend how soon it forgets."""
    resource = DescribeConfigsRequest.Resource(
        resource_type=ResourceType.BROKER, resource_name=str(broker), configuration_keys=_EXPIRATIONS
    )
    return DescribeConfigsRequest(resources=(resource,))


def renewal_ms(answer: Answer) -> int:
    """How often to renew a writer, from the answer to that question, which may be a refusal: several times within the
    time after which the backend forgets it."""
    results = answer.response.results if isinstance(answer.response, DescribeConfigsResponse) else ()
    found = [int(one.value) for result in results for one in result.configs if one.value and one.name in _EXPIRATIONS]
    return min([RENEW_MS, *(expiration // 3 for expiration in found)])
