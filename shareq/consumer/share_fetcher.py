"""Share sessions with all leaders: when to fetch, how to send acknowledgements, and what a response changes.

One flag controls fetching: a poll with an empty buffer sets it, a response with records clears it. While it is set,
every leader of an assigned partition has a fetch in progress. Each node has at most one request in progress, so
acknowledgements of a poll are part of the next fetch, or of a ShareAcknowledge if no fetch follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.metadata import NO_LEADER, Metadata
from shareq.consumer.acknowledgements import Acknowledgements, MemberIdentity
from shareq.consumer.buffer_filler import BufferFiller
from shareq.consumer.fetch_buffer import NEVER_MS, FetchBuffer
from shareq.consumer.fetch_plan import FetchPlan
from shareq.consumer.metrics import FetchMetrics
from shareq.consumer.session_handler import NO_PARTITIONS, FetchLimits, ShareSessionHandler, partitions_of
from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.base import Response
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, ShareAcknowledgeResponse, ShareFetchResponse
from shareq.model.states import AcquireMode

SESSION_LOST = frozenset(
    {Errors.SHARE_SESSION_NOT_FOUND, Errors.INVALID_SHARE_SESSION_EPOCH, Errors.SHARE_SESSION_LIMIT_REACHED}
)
LEADER_MOVED = frozenset({Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH})


class ShareFetcher:
    """`holds(node)` is true while records of a node's session are not acknowledged.
    `on_settled(acknowledgements, error, now_ms)` receives the result of each acknowledgement, `on_error(error)` an
    error for the next poll to raise."""

    def __init__(
        self,
        calls: Calls,
        backoff: Backoff,
        metadata: Metadata,
        buffer: FetchBuffer,
        *,
        identity: MemberIdentity,
        limits: FetchLimits,
        metrics: FetchMetrics,
        holds: Callable[[int], bool],
        on_settled: Callable[[Acknowledgements, Errors, int], None],
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self.fetching = False
        self.acquisition_lock_timeout_ms: int | None = None
        self.filler = BufferFiller(metadata, buffer, self.acknowledge)
        self._calls = calls
        self._backoff = backoff
        self._metadata = metadata
        self._identity = identity
        self._limits = limits
        self._metrics = metrics
        self._holds = holds
        self._on_settled = on_settled
        self._on_error = on_error
        self._sessions: dict[int, ShareSessionHandler] = {}
        self._fetch_plan = FetchPlan(metadata, backoff)
        self._last_fetched = NO_LEADER
        self._closing = False

    # ---- which partitions, on which nodes ----------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str]) -> None:
        """Fetch only these topics, even if others are assigned; release buffered records of others."""
        self._fetch_plan.subscribe(topics)
        self.filler.subscribe(topics)

    def assign(self, assigned: frozenset[TopicIdPartition]) -> None:
        self._fetch_plan.assign(assigned)

    def replan(self) -> None:
        """Recompute the plan: leaders may have changed."""
        self._fetch_plan.stale = True

    def _apply_plan(self, now_ms: int) -> None:
        if self.filler.drop_lost():
            self.fetching = True  # a poll may rely on the dropped records
        nodes = self._fetch_plan.by_node(now_ms)
        for node in nodes:
            self._session(node)
        for node, session in self._sessions.items():
            wanted = nodes.get(node, NO_PARTITIONS)
            if wanted != session.wanted:
                session.want(wanted)

    def _session(self, node: int) -> ShareSessionHandler:
        session = self._sessions.get(node)
        if session is None:
            session = self._sessions[node] = ShareSessionHandler(node)
        return session

    # ---- due requests ------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        times = [
            session.not_before_ms
            for session in self._sessions.values()
            if not session.busy
            and (
                session.waiting
                or self._fetches(session)
                or (self._closing and session.opened)
                or self._is_over(session)
            )
        ]
        return earliest(*times, self._fetch_plan.wake_at_ms if self.fetching else None)

    def acknowledge(self, acknowledgements: Acknowledgements) -> None:
        """Queue for the node that delivered the records; the next `pump` sends the acknowledgements."""
        self._session(acknowledgements.node).waiting.append(acknowledgements)

    def pump(self, now_ms: int) -> None:
        """Send due requests to every node without a request in progress."""
        if self._fetch_plan.due(now_ms):
            self._apply_plan(now_ms)
        for session in self._in_turn():
            if session.busy or now_ms < session.not_before_ms:
                continue
            if session.waiting:
                self._fail_lost(session, now_ms)
            if self._closing:
                self._send_final(session, now_ms)
            elif session.waiting and not self._may_piggyback(session):
                self._send_acknowledge(session, now_ms)
            elif self._fetches(session):
                self._send_fetch(session, now_ms)
            elif self._is_over(session):
                self._send_end(session)

    def _in_turn(self) -> Sequence[ShareSessionHandler]:
        """The sessions; with a record limit by node, starting after the node that fetched last."""
        sessions = list(self._sessions.values())
        if self._limits.acquire_mode is AcquireMode.RECORD_LIMIT:
            sessions.sort(key=lambda session: (session.node <= self._last_fetched, session.node))
        return sessions

    def _fetches(self, session: ShareSessionHandler) -> bool:
        """True if a fetch is due. With a record limit, only one node fetches at a time; otherwise the sum would exceed
        the limit."""
        if not self.fetching or not session.has_changes or self._closing:
            return False
        if self._limits.acquire_mode is AcquireMode.RECORD_LIMIT:
            return not any(other.busy for other in self._sessions.values())
        return True

    def _is_over(self, session: ShareSessionHandler) -> bool:
        """True if a session has lost all of its partitions, and nothing that it has locked is left."""
        return session.idle and not self._holds(session.node)

    def _may_piggyback(self, session: ShareSessionHandler) -> bool:
        """True if all waiting acknowledgements may be part of a fetch. Commits and renewals have a request of their
        own; a partition that is no longer assigned would be added to the session again."""
        return self._fetches(session) and all(
            waiting.deadline_ms is None and not waiting.renews and waiting.key in session.wanted
            for waiting in session.waiting
        )

    def _fail_lost(self, session: ShareSessionHandler, now_ms: int) -> None:
        """Fail acknowledgements with void locks: the leader has moved, or the session that acquired the records is
        closed."""
        kept = []
        for waiting in session.waiting:
            leader = self._metadata.leader(waiting.key)
            if leader not in (NO_LEADER, session.node):
                self._on_settled(waiting, Errors.NOT_LEADER_OR_FOLLOWER, now_ms)
            elif not session.opened:
                self._on_settled(waiting, Errors.NETWORK_EXCEPTION, now_ms)
            else:
                kept.append(waiting)
        session.waiting.clear()
        session.waiting.extend(kept)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _send_fetch(self, session: ShareSessionHandler, now_ms: int) -> None:
        piggybacked = session.take_waiting()
        request = session.fetch(self._identity, self._limits, piggybacked)
        session.busy = True
        session.sent_at_ms = now_ms
        self._last_fetched = session.node
        self._metrics.fetches.record(1, now_ms)
        self._calls.send(session.node, request, lambda *answer: self._fetched(session, piggybacked, *answer))

    def _send_acknowledge(self, session: ShareSessionHandler, now_ms: int) -> None:
        taken = session.take_waiting()
        request = session.acknowledge(self._identity, taken)
        session.busy = True
        session.sent_at_ms = now_ms
        self._calls.send(session.node, request, lambda *answer: self._acknowledged(session, taken, *answer))

    def _send_final(self, session: ShareSessionHandler, now_ms: int) -> None:
        """Close the session, which releases locked records. Acknowledgements that do not fit are sent first."""
        if not session.opened:
            return
        taken = session.take_waiting()
        if session.waiting:
            session.waiting.extendleft(reversed(taken))
            self._send_acknowledge(session, now_ms)
            return
        request = session.acknowledge(self._identity, taken, final=True)
        session.busy = True
        self._calls.send(session.node, request, lambda *answer: self._closed(session, taken, *answer))

    def _send_end(self, session: ShareSessionHandler) -> None:
        """End a session without partitions, so that the broker does not keep it. Whether the request succeeds does not
        matter: the next fetch opens a new session."""
        session.busy = True
        request = session.end(self._identity, self._limits)
        self._calls.send(session.node, request, lambda *_: session.lost())

    def close(self) -> None:
        """Stop fetching, send waiting acknowledgements, close the sessions."""
        self._closing = True
        self.fetching = False

    @property
    def closed(self) -> bool:
        return all(not s.busy and not s.waiting and not s.opened for s in self._sessions.values())

    # ---- responses ---------------------------------------------------------------------------------------------------

    def _fetched(
        self,
        session: ShareSessionHandler,
        piggybacked: list[Acknowledgements],
        response: Response | None,
        error: Errors,
        now_ms: int,
    ) -> None:
        assert response is None or isinstance(response, ShareFetchResponse)
        self._metrics.fetch_latency_ms.record(now_ms - session.sent_at_ms, now_ms)
        failure = error if response is None else response.error_code
        if response is None or failure:
            self._failed(session, failure, now_ms, answered=response is not None)
            for acknowledgements in piggybacked:
                self._on_settled(acknowledgements, failure, now_ms)
            return
        session.answered()
        session.failures = 0
        self.acquisition_lock_timeout_ms = response.acquisition_lock_timeout_ms
        results: dict[TopicIdPartition, ShareFetchResponse.Partition] = partitions_of(response)
        self._take_records(session, results, now_ms)
        for acknowledgements in piggybacked:
            result = results.get(acknowledgements.key)
            outcome = Errors.INVALID_RECORD_STATE if result is None else result.acknowledge_error_code
            self._on_settled(acknowledgements, outcome, now_ms)

    def _take_records(
        self, session: ShareSessionHandler, results: dict[TopicIdPartition, ShareFetchResponse.Partition], now_ms: int
    ) -> None:
        for key, partition in results.items():
            if partition.error_code:
                self._partition_failed(key, partition, now_ms)
        lock_until_ms = now_ms + self.acquisition_lock_timeout_ms if self.acquisition_lock_timeout_ms else NEVER_MS
        acquired, size = (0, 0) if self._closing else self.filler.take(session, results, lock_until_ms)
        if acquired:
            self.fetching = False
            self._metrics.fetched_bytes.record(size, now_ms)
            self._metrics.fetched_records.record(acquired, now_ms)
        elif now_ms == session.sent_at_ms:  # a fetch at the same time, again and again, would stop virtual time
            session.not_before_ms = now_ms + 1

    def _acknowledged(
        self,
        session: ShareSessionHandler,
        taken: list[Acknowledgements],
        response: Response | None,
        error: Errors,
        now_ms: int,
    ) -> None:
        assert response is None or isinstance(response, ShareAcknowledgeResponse)
        failure = error if response is None else response.error_code
        if response is None or failure:
            self._failed(session, failure, now_ms, answered=response is not None)
            results = {}
        else:
            session.answered()
            session.failures = 0
            self.acquisition_lock_timeout_ms = response.acquisition_lock_timeout_ms or self.acquisition_lock_timeout_ms
            results = self._ack_results(response)
        again = []
        for acknowledgements in taken:
            outcome = failure or results.get(acknowledgements.key, Errors.INVALID_RECORD_STATE)
            kept = session.opened and not self._closing
            if kept and acknowledgements.may_be_retried(outcome, now_ms):
                again.append(acknowledgements)
            else:
                self._on_settled(acknowledgements, outcome, now_ms)
        if again:
            again[0].attempts += 1
            session.waiting.extendleft(reversed(again))
            session.not_before_ms = now_ms + self._backoff.delay_ms(again[0].attempts)

    def _ack_results(self, response: ShareAcknowledgeResponse) -> dict[TopicIdPartition, Errors]:
        results: dict[TopicIdPartition, ShareAcknowledgeResponse.Partition] = partitions_of(response)
        for key, partition in results.items():
            self._take_leader(key, partition.error_code, partition.current_leader)
        return {key: partition.error_code for key, partition in results.items()}

    def _closed(
        self,
        session: ShareSessionHandler,
        taken: list[Acknowledgements],
        response: Response | None,
        error: Errors,
        now_ms: int,
    ) -> None:
        self._acknowledged(session, taken, response, error, now_ms)
        session.lost()

    # ---- failures ----------------------------------------------------------------------------------------------------

    def _failed(self, session: ShareSessionHandler, error: Errors, now_ms: int, *, answered: bool) -> None:
        """A request failed as a whole: the application sees the error only in the results of its acknowledgements."""
        session.failures += 1
        session.not_before_ms = now_ms + self._backoff.delay_ms(session.failures)
        if answered and error not in SESSION_LOST:
            session.answered()
        elif session.opened and error is Errors.UNSUPPORTED_VERSION:  # a renewal that could not be encoded, nor sent
            session.busy = False
        else:
            session.lost()
        if not answered:  # the node may be down
            self._metadata.want_ids(key.topic_id for key in session.wanted)

    def _partition_failed(self, key: TopicIdPartition, partition: ShareFetchResponse.Partition, now_ms: int) -> None:
        error = partition.error_code
        if not self._take_leader(key, error, partition.current_leader):
            self._metadata.want_ids((key.topic_id,))
            self._fetch_plan.block(key, now_ms)
        if not error.retriable and error is not Errors.UNKNOWN_SERVER_ERROR:
            self._on_error(KafkaError(error, partition.error_message))

    def _take_leader(self, key: TopicIdPartition, error: Errors, leader: LeaderIdAndEpoch) -> bool:
        """Use the new leader that a response names, if any."""
        moved = error in LEADER_MOVED and self._metadata.moved(key, leader)
        if moved:
            self._fetch_plan.stale = True
        return moved
