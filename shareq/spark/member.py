"""The query's member of the share group: acquires ranges of offsets, renews their locks, acknowledges them.

It decodes no records: tasks fetch them. It acknowledges broken record batches as Kafka's consumers do: a batch with a
wrong CRC is rejected; for one that cannot be decompressed, `onFailure` decides, because other consumers may support the
compression. Such records are in no batch of Spark, not even in a repeated one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import Any

from shareq.client.message import Message
from shareq.client.shell import perform
from shareq.consumer.acknowledgements import Acknowledgements, AcknowledgeRun, PendingCommit
from shareq.consumer.config import consumer_config
from shareq.consumer.core import ShareConsumerCore
from shareq.consumer.fetch_buffer import AcquiredPiece
from shareq.log.batches import CODEC_MASK
from shareq.log.records import CorruptBatch, crc_matches, stream
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import Place, TopicId, TopicIdPartition
from shareq.model.records import RecordBatch
from shareq.model.states import AcknowledgeType
from shareq.spark.held import Held, Reached, append, divide, without
from shareq.spark.ranges import Range, cut
from shareq.transports import transport_for

log = logging.getLogger(__name__)

SETTLE_TIMEOUT_MS = 30_000
CLOSE_TIMEOUT_MS = 10_000
LINGER_MS = 5
"""How long a batch with some records waits for more."""

DEFAULT_LOCK_MS = 30_000
"""Kafka's default, used until a broker's response has the value."""


class RangeCore(ShareConsumerCore):
    """A share consumer that returns ranges of offsets instead of records."""

    def take_pieces(self, now_ms: int) -> list[AcquiredPiece]:
        """Remove and return all acquired pieces, and continue fetching."""
        self._raise_error()
        pieces = self.take_waiting(now_ms)
        self._fetcher.fetching = True
        self._pump(now_ms)
        return pieces

    def take_waiting(self, _: int = 0) -> list[AcquiredPiece]:
        """The pieces of responses that arrived after the batch was full."""
        return self._buffer.drop(lambda _: True)

    def still_led(self, several: Sequence[Held]) -> list[Held]:
        """Those whose broker still leads the partition, by the metadata: locks end with the leader."""
        lost = self._fetcher.filler.lost
        homes = {(at.topic_id, at.partition, at.topic, node) for at, node in several}
        gone = {home for home in homes if lost(TopicIdPartition(TopicId(home[0]), home[1]), home[2], home[3])}
        if not gone:
            return list(several)
        return [each for each in several if (each[0].topic_id, each[0].partition, each[0].topic, each[1]) not in gone]

    def rest(self, now_ms: int) -> None:
        """Stop fetching until the next poll."""
        self._fetcher.fetching = False
        self.end_poll(now_ms)

    def send(self, acknowledgements: Sequence[Acknowledgements], now_ms: int) -> None:
        for each in acknowledgements:
            self._fetcher.acknowledge(each)
        self.end_poll(now_ms)  # counts as a poll: a member that renews locks is alive
        self._pump(now_ms)

    def settle(self, acknowledgements: Sequence[Acknowledgements], now_ms: int) -> list[AcquiredPiece]:
        """Like `send`, but first return the acquired pieces, in one turn: no response can arrive in between."""
        pieces = self.take_waiting()
        self.send(acknowledgements, now_ms)
        return pieces

    def _settled(self, acknowledgements: Acknowledgements, error: Errors, now_ms: int) -> None:
        if acknowledgements.renewing:  # no poll must return them again
            acknowledgements.renewing = {}
        super()._settled(acknowledgements, error, now_ms)


class SourceMember:
    """A member of a share group. Only `renew` runs in another thread.

    `_held`: the ranges of the batch in progress; `_surplus`: those for later batches; `_beyond`: those for no batch.
    `_reached`: the ends of all acquired ranges; `_again`: true if `_surplus` may have records that are also in older
    ranges.
    """

    def __init__(
        self, conf: Mapping[str, Any], topics: tuple[str, ...], *, renews: bool, on_failure: AcknowledgeType
    ) -> None:
        config = consumer_config(conf)
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = RangeCore(config, transport.rng())
        self.connection = transport.connect(self._core, self._core.client_id)
        self._lock = Lock()
        self._held: list[Held] = []
        self._surplus: list[Held] = []
        self._beyond: list[Held] = []
        self._reached = Reached()
        self._again = False
        self._renews = renews
        self._on_failure = on_failure
        self._unreadable = 0
        self._closing = Event()
        self._do(lambda now_ms: self._core.subscribe(topics, now_ms))
        self._renewal = Thread(target=self._renew_until_closed, name="shareq-renewal", daemon=True)

    def _do(self, call: Callable[[int], Any]) -> Any:
        return perform(self.connection, self._core.calls, call)

    @property
    def lock_duration_ms(self) -> int:
        return self._core.acquisition_lock_timeout_ms or DEFAULT_LOCK_MS

    # ---- acquire -----------------------------------------------------------------------------------------------------

    def acquire(self, limit: int, wait_ms: float, ends: Mapping[Place, int] | None = None) -> tuple[Held, ...]:
        """Up to `limit` records; none if none arrive within `wait_ms`. With `ends`, only offsets below them.

        Records beyond `ends` stay locked until the member leaves: released ones would be delivered again at once, until
        they were archived.
        """
        with self._lock:
            self._drop_lost()
            self._again = self._again and bool(self._surplus)
        taken = self._take(limit, 0, ends)
        self._do(self._core.begin_poll)
        count = sum(held.range.end - held.range.first for held in taken)
        wait = LINGER_MS if taken else wait_ms
        while count < limit and self.connection.wait(self._core.poll_ready, wait):
            more = self._take(limit - count, 1, ends)
            if self._again:
                taken = without(taken, more)
                count = _size(taken)
            taken += more
            count += _size(more)
            wait = LINGER_MS if taken else wait_ms
        self._do(self._core.rest)
        if self._core.acquisition_lock_timeout_ms is not None and self._renewal.ident is None:
            self._renewal.start()  # only now is the lock duration known
        return tuple(sorted(taken))

    def _take(self, limit: int, polled: int, ends: Mapping[Place, int] | None) -> list[Held]:
        """Take from the surplus; if `polled`, also from acquired pieces. Ranges beyond the limit stay in the
        surplus."""
        with self._lock:
            if polled:
                self._admit(self._do(self._core.take_pieces))
            taken: list[Held] = []
            surplus: list[Held] = []
            for held in self._surplus:
                inside, outside = divide(
                    held, held.range.end if ends is None else ends.get((held.range.topic, held.range.partition), 0)
                )
                self._beyond += outside
                for each in inside:
                    now, later = divide(each, each.range.first + limit)
                    taken += now
                    surplus += later
                    limit -= _size(now)
            self._surplus = surplus
            if self._again:
                self._held = without(self._held, taken)
            self._held += taken
        return taken

    def _admit(self, pieces: Sequence[AcquiredPiece]) -> None:
        """Add acquired pieces to the surplus.

        After a broken connection or a leader change, brokers may grant the same records to this member again. In the
        surplus the newer lock replaces the older one. Records of a batch in progress are not added again if the broker
        is the same: the acknowledgement of the batch applies to the newer lock.
        """
        found = self._held_of(pieces)
        if self._reached.again(found):
            self._again = True
            self._beyond = without(self._beyond, found)
            self._surplus = without(self._surplus, found)
            found = without(found, self._held, same_node=True)
        self._surplus += found

    def _drop_lost(self) -> None:
        """Drop surplus ranges whose leader has moved: their records are delivered again, and would be read twice."""
        self._surplus = self._do(lambda _: self._core.still_led(self._surplus))
        self._beyond = self._do(lambda _: self._core.still_led(self._beyond))

    def _held_of(self, pieces: Sequence[AcquiredPiece]) -> list[Held]:
        """The ranges for tasks. Gaps, control batches and unreadable batches are acknowledged here instead."""
        found: list[Held] = []
        answered: dict[AcknowledgeType, list[Held]] = {}
        seen: tuple[RecordBatch | None, AcknowledgeType | None] = (None, None)
        for key, topic, node, first, end, count, batch, *_ in pieces:
            held = Held(Range(topic, key.topic_id, key.partition, first, end, count), node)
            if batch is None or batch is not seen[0]:
                seen = batch, self._verdict(batch)
            append(found if seen[1] is None else answered.setdefault(seen[1], []), held)
        for verdict, several in answered.items():
            if verdict is not AcknowledgeType.GAP:
                self._warn(verdict, several)
            self._send(several, verdict)
        return found

    def _verdict(self, batch: RecordBatch | None) -> AcknowledgeType | None:
        """The acknowledge type of a record batch that no task can read; None for a readable one."""
        if batch is None or batch.is_control:
            return AcknowledgeType.GAP
        if not crc_matches(batch.data):
            return AcknowledgeType.REJECT
        return None if _unpacks(batch) else self._on_failure

    def _warn(self, verdict: AcknowledgeType, unreadable: Sequence[Held]) -> None:
        for at, _ in unreadable:
            log.warning(
                "%s [%d]: offsets %d to %d cannot be read, and are %s",
                at.topic,
                at.partition,
                at.first,
                at.end - 1,
                "rejected" if verdict == AcknowledgeType.REJECT else "released",
            )
            self._unreadable += at.end - at.first

    def take_unreadable(self) -> int:
        """The number of unreadable offsets since the last call."""
        with self._lock:
            found, self._unreadable = self._unreadable, 0
        return found

    # ---- settle ------------------------------------------------------------------------------------------------------

    def settle(
        self, batch: Sequence[Held], verdict: AcknowledgeType, verdicts: Mapping[Place, Mapping[int, int]]
    ) -> None:
        """Acknowledge a batch, with `verdicts` for single offsets, and wait for the responses.

        Records that brokers refuse were no longer locked by this member, and are delivered again (at least once).
        """
        commit = PendingCommit()
        runs = _runs(batch, verdict, verdicts)
        with self._lock:
            self._admit(self._do(lambda now_ms: self._core.settle(_acknowledgements(runs, now_ms, commit), now_ms)))
            self._held = without(self._held, batch, same_node=True)
        self.connection.wait(lambda: commit.done, SETTLE_TIMEOUT_MS)
        for partition, error in commit.results.items():
            if error is not None:
                log.warning("%s: not acknowledged, will be delivered again: %s", partition, error)

    def _send(self, several: Sequence[Held], verdict: AcknowledgeType) -> None:
        """Queue acknowledgements for their brokers."""
        runs = _runs(several, verdict, {})
        if runs:
            self._do(lambda now_ms: self._core.send(_acknowledgements(runs, now_ms, None), now_ms))

    # ---- renew -------------------------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Renew the locks of all held ranges; of those beyond the ends even if `lockRenewal` is off."""
        with self._lock:
            self._admit(self._do(self._core.take_waiting))
            self._drop_lost()
            held = [*self._held, *self._surplus] if self._renews else []
            self._send([*held, *self._beyond], AcknowledgeType.RENEW)

    def _renew_until_closed(self) -> None:
        while not self._closing.wait(self.lock_duration_ms / 3000):
            try:
                self.renew()
            except KafkaException as error:  # the poll for the next batch raises it, too
                log.warning("locks could not be renewed: %s", error)

    # ---- close -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the group; the brokers release all held records. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        try:
            self._do(self._core.begin_close)
            self.connection.wait(self._core.closed, CLOSE_TIMEOUT_MS)
        except KafkaException as gone:
            if gone.error.code() != KafkaError._TRANSPORT:
                raise
        finally:
            self.connection.close()


def _size(several: Sequence[Held]) -> int:
    return sum(held.range.end - held.range.first for held in several)


def _unpacks(batch: RecordBatch) -> bool:
    """True if the first record of the batch can be read, so that a compressed batch can be decompressed."""
    if not batch.attributes & CODEC_MASK:
        return True
    try:
        next(stream(batch), None)
    except CorruptBatch:
        return False
    return True


Runs = dict[tuple[TopicIdPartition, str, int], list[AcknowledgeRun]]
"""Verdicts by partition, topic and node."""


def _runs(several: Sequence[Held], verdict: AcknowledgeType, verdicts: Mapping[Place, Mapping[int, int]]) -> Runs:
    """Runs with the acknowledge types of `verdicts` for single offsets, and `verdict` for the rest."""
    runs: Runs = {}
    for at, node in sorted(several):
        apart = verdicts.get((at.topic, at.partition), {})
        key = TopicIdPartition(TopicId(at.topic_id), at.partition), at.topic, node
        runs.setdefault(key, []).extend(AcknowledgeRun(*run) for run in cut(at.first, at.end, apart, verdict))
    return runs


def _acknowledgements(runs: Runs, now_ms: int, commit: PendingCommit | None) -> list[Acknowledgements]:
    deadline_ms = now_ms + SETTLE_TIMEOUT_MS
    return [
        Acknowledgements(
            key,
            topic,
            node,
            its,
            {its[0].first: Message()} if its[0].type == AcknowledgeType.RENEW else {},
            deadline_ms=deadline_ms,
            commit=commit,
            silent=True,
        )
        for (key, topic, node), its in runs.items()
    ]
