"""Turns the application's acknowledge types into requests, and responses into results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import index
from typing import NamedTuple, SupportsIndex

from shareq.client.callbacks import CallbackQueue
from shareq.client.calls import Calls
from shareq.client.message import Message
from shareq.client.topic_partition import TopicPartition
from shareq.consumer.acknowledgements import Acknowledgements, MemberIdentity, PendingCommit, counts_of, runs_of
from shareq.consumer.fetch_buffer import AcquiredPiece, FetchBuffer, UnpackedPiece
from shareq.consumer.metrics import FetchMetrics
from shareq.consumer.unacknowledged import UnacknowledgedPartition, UnacknowledgedRecords
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import AcknowledgementsSent, RecordsDelivered
from shareq.model.experiments import LONGEST_BACKOFF_MS
from shareq.model.ids import Place, TopicId, TopicIdPartition
from shareq.model.states import VERDICTS, AcknowledgeType

Lost = Callable[[TopicIdPartition, str, int], bool]
"""(partition, topic, node): true if the locks from this node are void, because another node leads the partition or the
topic was created again."""


def acknowledge_type(given: object) -> int:
    """The number of an acknowledge type, given as member, number or name in any case.

    ValueError for another name, TypeError for a value of another type; `Acknowledger.note` checks numbers.
    """
    if isinstance(given, str):
        found = AcknowledgeType.__members__.get(given.upper())
        if found is None:
            raise ValueError(bad_acknowledge_type(given))
        return found
    if not isinstance(given, SupportsIndex):
        raise TypeError(bad_acknowledge_type(given))
    return index(given)


def bad_acknowledge_type(given: object) -> str:
    """The error message for an acknowledge type; it lists VERDICTS."""
    *names, last = (f"{kind.name} ({kind:d})" for kind in VERDICTS)
    return f"ack_type={given!r}: must be {', '.join(names)} or {last}"


def check_release_delay(ack_type: int, delay_ms: object) -> None:
    """TypeError or ValueError for a rest that cannot be requested; the group's own limit is known to the broker."""
    if not isinstance(delay_ms, int) or isinstance(delay_ms, bool):
        raise TypeError(f"delay_ms={delay_ms!r}: must be an int")
    if not 0 <= delay_ms <= LONGEST_BACKOFF_MS:
        raise ValueError(f"delay_ms={delay_ms}: must be 0..{LONGEST_BACKOFF_MS}")
    if ack_type != AcknowledgeType.RELEASE:
        raise ValueError(f"delay_ms={delay_ms}: only RELEASE (2) has a delay, and ack_type={ack_type!r}")


def _not_in_flight(topic: str | None, partition: int | None, offset: int | None) -> str:
    return (
        f"{topic} [{partition}] offset {offset} is not in flight: no poll returned it, it was acknowledged and "
        "sent already, or it is a gap"
    )


class CommitResult(NamedTuple):
    """The argument of the acknowledgement callback: one partition of one request."""

    offsets: dict[TopicPartition, set[int]]
    error: KafkaException | None


class Acknowledger:
    """The records held by the application. `wants_results`: true if a callback is set.

    Only calls of the application change the records. Responses only append to two queues, results and renewals, which
    the next call empties.
    """

    def __init__(
        self,
        calls: Calls,
        identity: MemberIdentity,
        metrics: FetchMetrics,
        buffer: FetchBuffer,
        *,
        explicit: bool,
        send: Callable[[Acknowledgements], None],
        lost: Lost,
    ) -> None:
        self.wants_results = False
        self.explicit = explicit
        self._calls = calls
        self._identity = identity
        self._metrics = metrics
        self._buffer = buffer
        self._send = send
        self._lost = lost
        self._records = UnacknowledgedRecords()
        self.results: CallbackQueue[CommitResult] = CallbackQueue()
        """Results for the callback, oldest first."""
        self._renewed: deque[Acknowledgements] = deque()
        self.acquired_again: list[AcquiredPiece] = []
        """Pieces that the last `take_renewed` took from the buffer instead of renewed copies."""
        self._open: dict[int, Acknowledgements] = {}
        """Acknowledgements without a result, by id()."""

    # ---- delivered records -------------------------------------------------------------------------------------------

    def deliver(self, unpacked: UnpackedPiece) -> None:
        """Hold the records that a poll returns. Broken records already have an acknowledge type."""
        piece, messages, ranges, gaps, verdict = unpacked
        entry = self._records.partition(piece.key, piece.topic, piece.node)
        entry.add(ranges, gaps, messages)
        if verdict is not None:
            entry.verdicts.update(dict.fromkeys(range(piece.first, piece.end), verdict))
        if messages and not piece.journalled:
            group_id, member_id, client_id = self._identity
            topic, partition, first, end = piece.topic, piece.key.partition, piece.first, piece.end
            counts = len(messages), piece.delivery_count
            self._calls.emit(RecordsDelivered(group_id, member_id, client_id, topic, partition, first, end, *counts))

    def holds(self, node: int) -> bool:
        """True if a node delivered some of the records, or of the gaps."""
        return any(entry.node == node for entry in self._records) or any(
            renewal.node == node for renewal in self._renewed
        )

    @property
    def renewals(self) -> bool:
        """True if the next poll returns renewed records."""
        return bool(self._renewed) or any(entry.renewed for entry in self._records)

    def take_renewed(self, topics: Collection[str]) -> list[Sequence[Message]]:
        """The renewed records that this poll returns again; if the lock was lost and the record acquired again, the
        newer copy.

        Renewed records of topics outside `topics` are released, those of a former leader dropped.
        """
        self._absorb_renewals()
        self.acquired_again = []
        taken: list[Sequence[Message]] = []
        for entry in list(self._records):
            if entry.renewed and self._lost(entry.key, entry.topic, entry.node):
                entry.renewed = {}
            elif entry.renewed and entry.topic not in topics:
                self._release(entry)
            taken += self._hand_out(entry)
        self._buffer.fresh = False
        return taken

    def _hand_out(self, entry: UnacknowledgedPartition) -> Iterator[Sequence[Message]]:
        if self._buffer.fresh and entry.renewed:
            offsets = [(offset, offset + 1) for offset in sorted(entry.renewed)]
            for unpacked in self._buffer.take_held(entry.key, entry.node, offsets):
                self.acquired_again.append(unpacked.piece)
                self.deliver(unpacked)
                yield unpacked.messages
        yield entry.hand_out_renewed()

    def _release(self, entry: UnacknowledgedPartition) -> None:
        runs = runs_of(dict.fromkeys(entry.renewed, int(AcknowledgeType.RELEASE)))
        entry.renewed = {}
        self._send(Acknowledgements(entry.key, entry.topic, entry.node, runs, {}, silent=True))

    def put_back(self) -> None:
        """Undo `deliver` and `take_renewed` since the last `take`, which had left no record held.
        `FetchBuffer.put_back` returns the pieces to the buffer."""
        for entry in self._records:
            entry.put_back()

    def _absorb_renewals(self) -> None:
        while self._renewed:
            renewal = self._renewed.popleft()
            self._records.renew(renewal.key, renewal.topic, renewal.node, renewal.renewing)

    # ---- acknowledge types -------------------------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> int:
        return self._records.unacknowledged

    def note(self, topic: str | None, partition: int | None, offset: int | None, verdict: int) -> bool:
        """Set the acknowledge type of a held record, in one step that a signal cannot interrupt; False if the record is
        not held.

        A later type before the next poll or commit replaces it. ValueError for an impossible position or type;
        IllegalStateException in implicit mode.
        """
        if not isinstance(topic, str) or partition is None or partition < 0 or offset is None or offset < 0:
            raise ValueError(
                f"topic={topic!r}, partition={partition!r}, offset={offset!r} is not the position of a record"
            )
        if not self.explicit:
            raise IllegalStateException("acknowledging needs share.acknowledgement.mode=explicit, and it is implicit")
        if not VERDICTS[0] <= verdict <= VERDICTS[-1]:
            raise ValueError(bad_acknowledge_type(verdict))
        entry = self._records.find(topic, partition)
        if entry is None or not entry.holds(offset):
            return False
        entry.verdicts[offset] = verdict
        if entry.delays:
            entry.delays.pop(offset, None)
        return True

    def delay(self, topic: str | None, partition: int | None, offset: int | None, delay_ms: int) -> None:
        """Request a rest for a record that has just been acknowledged with RELEASE."""
        entry = self._records.find(topic, partition)
        assert entry is not None, "the record is held"
        assert offset is not None, "the record has a position"
        entry.delays[offset] = delay_ms

    def acknowledge(self, topic: str | None, partition: int | None, offset: int | None, verdict: int) -> None:
        """Like `note`, but also for a renewed record, which is held again with this type."""
        if self.note(topic, partition, offset, verdict):
            return
        self._absorb_renewals()
        entry = self._records.find(topic, partition)
        if entry is None or offset is None or not entry.acknowledge(offset, verdict):
            raise IllegalStateException(_not_in_flight(topic, partition, offset))

    def hand_over(self, wanted: Mapping[Place, Collection[int]]) -> dict[Place, TopicId]:
        """Drop records that a producer acknowledges in its transaction: offsets by topic and partition. Returns the
        topic ids. IllegalStateException, and nothing is dropped, if one of them is not held."""
        self._absorb_renewals()
        if self._buffer.fresh:
            self._keep_acquired_again()
        topic_ids: dict[Place, TopicId] = {}
        for (topic, partition), offsets in wanted.items():
            entry = self._records.find(topic, partition)
            held = () if entry is None else [o for o in offsets if entry.holds(o) or o in entry.renewed]
            if entry is None or len(held) < len(offsets):
                raise IllegalStateException(_not_in_flight(topic, partition, min(set(offsets).difference(held))))
            topic_ids[topic, partition] = entry.key.topic_id
        for (topic, partition), offsets in wanted.items():
            self._records.hand_over(topic, partition, offsets)
        return topic_ids

    def take(self, *, deadline_ms: int | None = None, commit: PendingCommit | None = None) -> bool:
        """Send the acknowledgements; in implicit mode, accept all held records. False if there is nothing to send."""
        return self._take(None if self.explicit else AcknowledgeType.ACCEPT, deadline_ms, commit)

    def take_last(self) -> None:
        """Send only explicit acknowledgements: close() does not accept the records of the last poll, even in implicit
        mode."""
        self._take(None, None, None)

    def _take(self, default: int | None, deadline_ms: int | None, commit: PendingCommit | None) -> bool:
        self._absorb_renewals()
        if not self._records:
            return False
        sent = False
        if self._buffer.fresh:
            self._keep_acquired_again()
        for entry, runs, renewing in self._records.take(default):
            if runs:
                acknowledgements = Acknowledgements(
                    entry.key, entry.topic, entry.node, runs, renewing, deadline_ms=deadline_ms, commit=commit
                )
                self._open[id(acknowledgements)] = acknowledgements
                self._send(acknowledgements)
                sent = True
        return sent

    def _keep_acquired_again(self) -> None:
        """Keep held records that were acquired again: their acknowledgements apply to the new locks."""
        for entry in self._records:
            for unpacked in self._buffer.take_held(entry.key, entry.node, entry.ranges):
                entry.replace(unpacked.messages)
        self._buffer.fresh = self.renewals

    # ---- results -----------------------------------------------------------------------------------------------------

    def settled(self, acknowledgements: Acknowledgements, error: Errors, now_ms: int) -> None:
        """Report the result of acknowledgements to the journal, the metrics, the commit and the callback."""
        counts = counts_of(acknowledgements.runs)
        topic, partition = acknowledgements.topic, acknowledgements.key.partition
        group_id, member_id, _ = self._identity
        self._calls.emit(AcknowledgementsSent(group_id, member_id, topic, partition, counts, int(error)))
        self._metrics.acknowledgements_sent.record(sum(counts), now_ms)
        if error:
            self._metrics.acknowledgement_errors.record(sum(counts), now_ms)
        elif acknowledgements.renewing and not self._lost(
            acknowledgements.key, acknowledgements.topic, acknowledgements.node
        ):
            self._renewed.append(acknowledgements)
        if acknowledgements.commit is not None:
            acknowledgements.commit.settled(acknowledgements, error)
        if not acknowledgements.silent:
            self._call_back(acknowledgements, KafkaError(error) if error else None)

    def abandon(self, error: KafkaError) -> None:
        """Fail every acknowledgement without a result with `error`, after a failure of the client."""
        while self._open:
            self._call_back(next(iter(self._open.values())), error)

    def _call_back(self, acknowledgements: Acknowledgements, error: KafkaError | None) -> None:
        if self.wants_results:
            failure = KafkaException(error) if error is not None else None
            offsets = {
                TopicPartition(acknowledgements.topic, acknowledgements.key.partition, 0): acknowledgements.offsets
            }
            self.results.append(CommitResult(offsets, failure))
        del self._open[id(acknowledgements)]
