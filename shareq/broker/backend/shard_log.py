"""The log of one coordinator's shard in the backend, with one writer at a time. BEHAVIOUR.md, section 3.

A writer is a producer with a transactional id of the shard: the backend fences the former writer when a new one begins,
and recognizes a batch that is sent twice. What the backend forgets, the fences in the log show.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.generations import RENEW_MS, Generations, Writer, expirations_request, renewal_ms
from shareq.broker.backend.lease import real_ms
from shareq.broker.backend.restoration import Cleanup
from shareq.broker.backend.shard_reads import Locator, ShardPlace, ShardReads
from shareq.broker.loop import EventLoop
from shareq.log.records import decode_key_values, encode_batch
from shareq.model.actor import MAX_OFFSET, Answer, Appended, AppendRecords, ReadRecords, RecordsRead
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.fetch import FetchResponse
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.records import CoordinatorRecord

BEGIN_VERSION = 4
"""The version of InitProducerId: without the transactions of KIP-890, which Kafka 3.9 does not have."""

FENCED = frozenset({Errors.INVALID_PRODUCER_EPOCH, Errors.PRODUCER_FENCED, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER})
"""Errors of a writer that another one has replaced."""

_REFUSED = frozenset(
    {
        Errors.MESSAGE_TOO_LARGE,
        Errors.RECORD_LIST_TOO_LARGE,
        Errors.INVALID_RECORD,
        Errors.CORRUPT_MESSAGE,
        Errors.TOPIC_AUTHORIZATION_FAILED,
        Errors.CLUSTER_AUTHORIZATION_FAILED,
        Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors of a batch that is not in the log, and that a second attempt would not change."""


class _Batch(NamedTuple):
    """A batch to append: its bytes, the number of its records, and the writer that it names."""

    data: bytes
    records: int
    writer: Writer
    done: Callable[[Errors, int], object]

    @property
    def has_writer(self) -> bool:
        return self.writer[0] >= 0


class ShardLog(ShardReads):
    """The log with its writer, which begins with `open()`. Without it, batches are appended beside those of the writer.

    An append whose result is unknown must not be reported as failed: it is sent again until it is definite. `fence` is
    a record without an effect. `cleanup`: of a log of which the backend keeps the newest record of each key. A log
    without it is pruned by `delete_before`.
    """

    def __init__(
        self,
        shard: TopicPartition,
        fence: CoordinatorRecord,
        client: BackendClient,
        loop: EventLoop,
        locator: Locator,
        *,
        cleanup: Cleanup | None = None,
    ) -> None:
        super().__init__(shard, fence, client, loop, locator)
        self._cleanup = cleanup
        if cleanup is not None:
            self._generations = Generations(fence, cleanup.settles)
        self._fence = fence
        self._clock = real_ms
        self._producer_id = self._producer_epoch = -1
        self._sequence = 0
        self._next = -1
        """The offset that the next batch has if no other writer has begun; -1: not known yet."""
        self._renewed_ms: float = 0
        self._renew_ms = RENEW_MS
        self._turns: deque[Callable[[], object]] = deque()

    # ---- the writer --------------------------------------------------------------------------------------------------

    def open(self, done: Callable[[Errors], object], replaced: Callable[[], object] = lambda: None) -> None:
        """Become the writer: fence the former one, and write the fence, so that the log itself refuses it from here on.
        Only then may the log be read to its end. `replaced` is called when a renewal finds another writer."""

        def begun(error: Errors) -> None:
            if error:
                done(error)
            else:
                self._append((self._fence,), opened)

        def opened(error: Errors, offset: int) -> None:
            if error is Errors.NETWORK_EXCEPTION:
                self.open(done, replaced)
            else:
                self._fenced(error, offset)
                self._tend(replaced)
                done(error)

        self._begin(begun)

    def append(self, effect: AppendRecords, done: Callable[[Appended], object]) -> None:
        """Append records as one batch; `done` gets the result, which is definite."""

        def ended(error: Errors, offset: int) -> None:
            self._end_turn()
            done(Appended(effect.id, error, offset))

        def renewed(error: Errors) -> None:
            if error:
                ended(error, -1)
            else:
                self._append(effect.records, ended)

        self._take_turn(lambda: self._renew(renewed) if self._due else renewed(Errors.NONE))

    def _take_turn(self, step: Callable[[], object]) -> None:
        """Run a step when those before it have ended: sequence numbers and epochs have one order."""
        self._turns.append(step)
        if len(self._turns) == 1:
            step()

    def _end_turn(self) -> None:
        self._turns.popleft()
        if self._turns:
            self._turns[0]()

    def _begin(self, done: Callable[[Errors], object]) -> None:
        """Get a producer epoch that is higher than all before, unless another process has got one since this one."""
        key = f"shareq-{self.shard}"
        request = FindCoordinatorRequest(key_type=CoordinatorType.TRANSACTION, coordinator_keys=(key,))
        sent_ms = self._clock()

        def found(answer: Answer) -> None:
            response = answer.response
            coordinators = response.coordinators if isinstance(response, FindCoordinatorResponse) else ()
            node = next((one.node_id for one in coordinators if not one.error_code), -1)
            if self.closed:
                return
            if node < 0:
                self._again(lambda: self._begin(done))
            else:
                self._client.call(node, expirations_request(node), self._unless_closed(partial(described, node)))

        def described(node: int, answer: Answer) -> None:
            self._renew_ms = renewal_ms(answer)
            begin = InitProducerIdRequest(
                transactional_id=key, producer_id=self._producer_id, producer_epoch=self._producer_epoch
            )
            self._client.call(node, begin, self._unless_closed(begun), version=BEGIN_VERSION)

        def begun(answer: Answer) -> None:
            response = answer.response
            error = response.error_code if isinstance(response, InitProducerIdResponse) else Errors.NETWORK_EXCEPTION
            if error in FENCED:
                done(Errors.NOT_COORDINATOR)
            elif error in _REFUSED:
                done(error)
            elif error or not isinstance(response, InitProducerIdResponse):
                self._again(lambda: self._begin(done))
            else:
                self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
                self._sequence = 0
                self._renewed_ms = sent_ms
                done(Errors.NONE)

        self._client.call_any(request, found)

    # ---- renewals ----------------------------------------------------------------------------------------------------

    @property
    def _writer(self) -> Writer:
        return self._producer_id, self._producer_epoch

    @property
    def _due(self) -> bool:
        """True if the backend may forget this writer, or may have done so while the process or its machine stood
        still."""
        return self._producer_id >= 0 and self._clock() >= self._renewed_ms + self._renew_ms

    def _tend(self, replaced: Callable[[], object]) -> None:
        """Renew this writer in good time, for as long as it is one."""

        def ended(error: Errors) -> None:
            self._end_turn()
            if error:
                replaced()
            else:
                self._tend(replaced)

        def renew() -> None:
            if not self.closed:
                self._take_turn(lambda: self._renew(ended) if self._due else ended(Errors.NONE))

        self._client.later(max(0, self._renewed_ms + self._renew_ms - self._clock()), renew)

    def _renew(self, done: Callable[[Errors], object]) -> None:
        """Begin again as the same writer, with a fence of its own, unless the log has one of another writer."""
        before = self._writer

        def begun(error: Errors) -> None:
            if error:
                done(error)
            else:
                self._read_on(before, MAX_OFFSET, checked)

        def checked(error: Errors) -> None:
            if error:
                done(error)
            else:
                self._append((self._fence,), renewed)

        def renewed(error: Errors, offset: int) -> None:
            self._fenced(error, offset)
            done(error)

        self._begin(begun)

    def _fenced(self, error: Errors, offset: int) -> None:
        """Note a fence of this writer. A log that is compacted keeps its last one."""
        if not error and self._cleanup is None:
            self._generations.fences.append(offset)

    def delete_before(self, offset: int, done: Callable[[Errors], object]) -> None:
        """Keep the fence that is the last one at `offset`: without it, a batch of a replaced writer after that offset
        would seem valid."""
        before = [fence for fence in self._generations.fences if fence <= offset]
        if before:
            offset = max(before)
            self._generations.fences = [fence for fence in self._generations.fences if fence >= offset]
        super().delete_before(offset, done)

    def _read_on(self, writer: Writer, end: int, done: Callable[[Errors], object]) -> None:
        """Read from the offset that the next batch of `writer` should have, up to `end` or the end of the log;
        NOT_COORDINATOR if another writer has begun there."""

        def read(offset: int) -> None:
            self._fetch(offset, taken, failed)

        def failed() -> None:
            done(Errors.NOT_COORDINATOR)  # the log has lost what this writer has appended

        def taken(partition: FetchResponse.Partition) -> None:
            batches = partition.records
            following = batches[-1].last_offset + 1 if batches else MAX_OFFSET
            if self._generations.replaced(writer, batches):
                done(Errors.NOT_COORDINATOR)
                return
            self._generations.follow(writer, batches)
            self._restore()
            if following < min(end, partition.high_watermark):
                read(following)
            else:
                done(Errors.NONE)

        read(self._next)

    # ---- records that a replaced writer has hidden -------------------------------------------------------------------

    def read(self, effect: ReadRecords, done: Callable[[RecordsRead], object], *, wait_ms: int = 0) -> None:
        def taken(found: RecordsRead) -> None:
            done(found)
            if found.done:
                self._restore()

        super().read(effect, taken, wait_ms=wait_ms)

    def _restore(self) -> None:
        """Append again what records of a replaced writer have hidden: compaction would keep these, remove the valid
        ones, and later the fence that makes these invalid."""
        if self._cleanup is not None and self._producer_id >= 0 and self._generations.strays and not self.closed:
            self._take_turn(self._restore_now)

    def _restore_now(self) -> None:
        assert self._cleanup is not None
        keys, valid = frozenset(self._generations.strays), Generations(self._fence)
        found = self._cleanup.restoration(keys)

        def read(offset: int) -> None:
            self._fetch(offset, taken, lambda: self._find_start(read))

        def taken(partition: FetchResponse.Partition) -> None:
            batches = partition.records
            for batch in valid.valid(batches):
                for _, key, value in decode_key_values(batch):
                    found.take(key or b"", value)
            end = batches[-1].last_offset + 1 if batches else partition.high_watermark
            if end < partition.high_watermark:
                read(end)
            else:
                self._append(tuple(found.records()), appended)

        def appended(error: Errors, offset: int) -> None:
            del offset
            if not error:
                self._generations.strays -= keys
            self._end_turn()

        if keys:
            read(0)
        else:
            self._end_turn()

    # ---- a batch -----------------------------------------------------------------------------------------------------

    def _append(self, records: tuple[CoordinatorRecord, ...], done: Callable[[Errors, int], object]) -> None:
        """Append a batch. NETWORK_EXCEPTION if the result of the first fence is unknown: the writer has to begin
        again."""
        now_ms = self._loop.now_ms()
        data = encode_batch(
            ((record.key, record.value, (), now_ms) for record in records),
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence,
        )
        self._attempt(_Batch(data, len(records), self._writer, done))

    def _attempt(self, batch: _Batch) -> None:
        def request(place: ShardPlace) -> Request:
            partition = ProduceRequest.Partition(index=place.at.partition, records=batch.data)
            topic = ProduceRequest.Topic(topic_id=place.topic_id, name=place.at.topic, partitions=(partition,))
            return ProduceRequest(topics=(topic,))

        self._send(request, partial(self._taken, batch), lambda: self._again(partial(self._retry, batch)))

    def _taken(self, batch: _Batch, answer: Answer) -> None:
        topics = answer.response.responses if isinstance(answer.response, ProduceResponse) else ()
        result = next((p for topic in topics for p in topic.partitions), None)
        error = Errors.NETWORK_EXCEPTION if result is None else result.error_code
        if result is not None and not error:
            self._check(batch, result.base_offset)
        elif error in FENCED:
            batch.done(Errors.NOT_COORDINATOR, -1)
        elif error in _REFUSED:
            batch.done(error, -1)
        else:
            self._again(partial(self._retry, batch))

    def _retry(self, batch: _Batch) -> None:
        """Attempt it again, unless another writer has begun: this process may have stood still meanwhile."""
        if not batch.has_writer:
            self._attempt(batch)
        elif self._next < 0:
            batch.done(Errors.NETWORK_EXCEPTION, -1)
        else:
            self._read_on(
                batch.writer, MAX_OFFSET, lambda error: batch.done(error, -1) if error else self._attempt(batch)
            )

    def _check(self, batch: _Batch, offset: int) -> None:
        """Another writer may have begun before this batch, and the backend have forgotten that."""
        if not batch.has_writer or self._next in (-1, offset):
            self._stored(batch, offset, Errors.NONE)
        elif offset < self._next:
            batch.done(Errors.NOT_COORDINATOR, -1)
        else:
            self._read_on(batch.writer, offset, partial(self._stored, batch, offset))

    def _stored(self, batch: _Batch, offset: int, error: Errors) -> None:
        if error:
            batch.done(error, -1)
            return
        self._sequence = (self._sequence + batch.records) & 0x7FFFFFFF
        self._next = offset + batch.records
        batch.done(Errors.NONE, offset)
