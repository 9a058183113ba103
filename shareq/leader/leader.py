"""The share-partition leader of one broker: sessions, fetches and acknowledgements, as one actor.

It answers ShareFetch and ShareAcknowledge. What a record may become is decided in `share_partition`, how a fetch waits
in `fetches`, how state gets durable in `led_partitions`, who may ask for what in `sessions` and `requests`; this module
takes a request through them in Kafka's order. Source: KIP-932, "Share-partition leader"; Kafka's SharePartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.leader.fetch_scheduler import FetchScheduler
from shareq.leader.leader_context import LeaderContext
from shareq.leader.led_partition import LedPartition
from shareq.leader.led_partitions import LedPartitions
from shareq.leader.share_fetch import ShareFetch
from shareq.leader.share_requests import (
    ACKNOWLEDGED,
    AcknowledgeResult,
    ShareRequest,
    ShareResponse,
    acknowledge_response,
    acknowledge_result,
    acknowledgement_error,
    acknowledgements,
    error_response,
    fetch_response,
    request_error,
)
from shareq.leader.share_sessions import (
    INITIAL_EPOCH,
    PendingRequest,
    SessionKey,
    ShareSession,
    ShareSessionCache,
    epoch_error,
    next_epoch,
)
from shareq.model.actor import (
    Answer,
    ConnectionClosed,
    Effect,
    ImageChanged,
    Incoming,
    LogGrew,
    LogRead,
    Message,
    OffsetFound,
    Respond,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.events import ShareSessionClosed, ShareSessionOpened
from shareq.model.ids import SharePartitionKey, TopicIdPartition, TopicPartition
from shareq.model.messages.share_fetch import (
    FINAL_EPOCH,
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from shareq.model.states import AcquireMode

MAX_SESSIONS = "group.share.max.share.sessions"
MAX_BYTES = "fetch.max.bytes"

_ACQUIRE_MODES = {int(mode): mode for mode in AcquireMode}


class ShareLeader:
    """The actor. `wake_at_ms` is when the next lock expires or the next fetch has waited long enough."""

    def __init__(self, broker_id: int, *, traced: bool) -> None:
        self.wake_at_ms: int | None = None
        self._context = LeaderContext(broker_id, traced=traced)
        self._sessions = ShareSessionCache()
        self._fetches = FetchScheduler(self._context, ended=self._respond_if_done)
        self._partitions = LedPartitions(
            self._context, wake=self._fetches.wake, lost=self._fetches.lost, acknowledged=self._acknowledged
        )
        self._fetches.partitions = self._partitions
        self._handlers: dict[type, Callable[[Any], None]] = {
            Incoming: self._incoming,
            LogRead: self._fetches.log_read,
            Answer: self._partitions.answered,
            OffsetFound: self._partitions.offset_found,
            LogGrew: self._log_grew,
            Tick: self._tick,
            ImageChanged: self._image_changed,
            ConnectionClosed: self._connection_closed,
        }

    def watches(self, log: TopicPartition) -> bool:
        """Whether it has to hear of what is appended there."""
        return bool(self._partitions.of_log(log))

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Take in a message. KeyError for one that no share-partition leader understands."""
        context = self._context
        context.now_ms = now_ms
        self._handlers[type(message)](message)
        self._fetches.offer()
        self.wake_at_ms = context.deadlines.next_ms()
        effects, context.effects = context.effects, []
        return effects

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _incoming(self, incoming: Incoming) -> None:
        request = incoming.request
        assert isinstance(request, (ShareFetchRequest, ShareAcknowledgeRequest))
        session = self._find_session(incoming, request)
        if session is None:
            return
        final = request.share_session_epoch == FINAL_EPOCH
        if isinstance(request, ShareFetchRequest) and not request.is_renew_ack and not final:
            mode = _ACQUIRE_MODES.get(request.share_acquire_mode)
            if mode is None:
                self._respond_error(incoming.id, request, Errors.UNKNOWN_SERVER_ERROR)
                return
            pending: PendingRequest = ShareFetch(
                incoming.id, request, session, mode, self._context.image.broker_config[MAX_BYTES]
            )
        else:
            pending = PendingRequest(incoming.id, request, session)
        for at, batches in acknowledgements(request).items():
            pending.acks[at] = self._acknowledge(pending, at, batches)
        if final:
            self._end_session(session, "closed")
        if isinstance(pending, ShareFetch):
            session.fetches[pending] = None
            self._resolve(session)
            self._fetches.start(pending)
        else:
            self._respond_if_done(pending)

    def _find_session(self, incoming: Incoming, request: ShareRequest) -> ShareSession | None:
        """The session that the request belongs to, brought up to date; None if the request had to be refused."""
        image = self._context.image
        key = SessionKey(request.group_id or "", request.member_id or "")
        session = self._sessions.get(key)
        error = request_error(request, image.share_version) or epoch_error(request, session)
        if error:
            self._respond_error(incoming.id, request, error)
            return None
        if isinstance(request, ShareFetchRequest) and request.share_session_epoch == INITIAL_EPOCH:
            return self._open_session(incoming, request, key)
        assert session is not None
        if request.share_session_epoch != FINAL_EPOCH:
            if isinstance(request, ShareFetchRequest):
                session.update(request, image)
            session.epoch = next_epoch(session.epoch)
        return session

    def _respond_error(self, request_id: int, request: ShareRequest, error: Errors) -> None:
        self._context.effects.append(Respond(request_id, error_response(request, error)))

    def _respond_if_done(self, pending: PendingRequest) -> None:
        """Answer, unless something is still on its way."""
        if pending.fetching or pending.writes:
            return
        context, request, session = self._context, pending.request, pending.session
        lock_duration_ms = context.config(pending.group_id).record_lock_duration_ms
        response: ShareResponse
        if isinstance(request, ShareAcknowledgeRequest):
            response = acknowledge_response(context.image, lock_duration_ms, pending.acks)
        else:
            report = pending.fetched
            if isinstance(pending, ShareFetch):
                session.fetches.pop(pending)
                report = session.to_report(report, full=request.share_session_epoch == INITIAL_EPOCH)
            response = fetch_response(context.image, lock_duration_ms, report, pending.acks)
        context.effects.append(Respond(pending.id, response))

    # ---- acknowledgements --------------------------------------------------------------------------------------------

    def _acknowledge(
        self, pending: PendingRequest, at: TopicIdPartition, batches: tuple[AcknowledgementBatch, ...]
    ) -> AcknowledgeResult:
        """Acknowledge in one partition, all of it or nothing. Of what has to be written `_acknowledged` hears."""
        context = self._context
        if at.topic_id not in context.image.topics_by_id:
            return AcknowledgeResult(Errors.UNKNOWN_TOPIC_ID)
        error = acknowledgement_error(batches, is_renew_ack=pending.request.is_renew_ack)
        if not error and context.image.partition(at.topic_id, at.partition) is None:
            error = Errors.UNKNOWN_TOPIC_OR_PARTITION
        if error or not batches:
            return AcknowledgeResult(error)
        led = self._partitions.get(SharePartitionKey(pending.group_id, at.topic_id, at.partition))
        if led is None:
            return acknowledge_result(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        config = context.config(pending.group_id)
        outcome = led.share_partition.acknowledge(pending.member_id, batches, config, context.now_ms)
        self._partitions.watch(led)  # nothing comes free before the write has settled: nobody needs to be woken
        if isinstance(outcome, Errors):
            return acknowledge_result(outcome)
        if outcome is not None:
            self._partitions.write(led, outcome, pending)
        return ACKNOWLEDGED

    def _acknowledged(self, pending: PendingRequest, led: LedPartition, error: Errors) -> None:
        """The state write of one partition has settled."""
        pending.acks[led.at] = acknowledge_result(error)
        self._respond_if_done(pending)

    # ---- sessions ----------------------------------------------------------------------------------------------------

    def _open_session(self, incoming: Incoming, request: ShareFetchRequest, key: SessionKey) -> ShareSession | None:
        """A new session; it replaces the member's old one, whose records stay locked.

        When there are too many, the answer is put off until MaxWaitMs, so that the client does not come again at once.
        """
        context, replaced = self._context, self._sessions.get(key)
        if replaced is not None:
            self._end_session(replaced, "replaced", release=False)
        if len(self._sessions) >= context.image.broker_config[MAX_SESSIONS]:
            refusal = Respond(incoming.id, error_response(request, Errors.SHARE_SESSION_LIMIT_REACHED))
            context.deadlines.set(refusal, context.now_ms + max(0, request.max_wait_ms))
            return None
        session = self._sessions.open(key, incoming.client.connection_id)
        session.update(request, context.image)
        if context.traced:
            context.effects.append(ShareSessionOpened(*session.key))
        return session

    def _end_session(self, session: ShareSession, reason: str, *, release: bool = True) -> None:
        """Take a session out: its fetches end empty, and its records come back if they are to."""
        self._sessions.close(session)
        for fetch in list(session.fetches):
            self._fetches.abort(fetch)
        if self._context.traced:
            self._context.effects.append(ShareSessionClosed(*session.key, reason))
        if release:
            for at in session.partitions:
                self._release(session, at)

    def _release(self, session: ShareSession, at: TopicIdPartition) -> None:
        """Give back what the member holds. Partitions that it has forgotten are not asked: their locks run out."""
        context, (group_id, member_id) = self._context, session.key
        led = self._partitions.get(SharePartitionKey(group_id, at.topic_id, at.partition))
        if led is None:
            return
        write = led.share_partition.release_member(member_id, context.config(group_id))
        self._partitions.changed(led)
        if write is not None:
            self._partitions.write(led, write)

    def _resolve(self, session: ShareSession) -> None:
        """Find out where each of the session's partitions is led; those led here start to load."""
        if session.resolved == self._partitions.generation:
            return
        image, group_id = self._context.image, session.key.group_id
        session.leds, session.errors = [], {}
        for at, part in session.partitions.items():
            part.led = None
            partition = image.partition(at.topic_id, at.partition)
            if part.topic is None:
                session.errors[at] = Errors.UNKNOWN_TOPIC_ID
            elif partition is None:
                session.errors[at] = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.leader != self._context.broker_id:
                session.errors[at] = Errors.NOT_LEADER_OR_FOLLOWER
            else:
                key = SharePartitionKey(group_id, at.topic_id, at.partition)
                part.led = self._partitions.lead(key, part.topic, partition.leader_epoch)
                session.leds.append(part.led)
        session.resolved = self._partitions.generation

    # ---- what happens otherwise --------------------------------------------------------------------------------------

    def _connection_closed(self, message: ConnectionClosed) -> None:
        """Its sessions go, and so do the share-partitions of groups that have nobody left here."""
        broken, groups = self._sessions.lose_connection(message.connection_id)
        for session in broken:
            self._end_session(session, "connection lost")
        for group_id in groups:
            if not self._sessions.has_group(group_id):
                for led in self._partitions.of_group(group_id):
                    self._partitions.drop(led, Errors.UNKNOWN_TOPIC_OR_PARTITION, "nobody of the group is connected")

    def _image_changed(self, message: ImageChanged) -> None:
        self._context.image = message.image
        self._partitions.image_changed()
        if message.image.share_version < 1:
            for session in self._sessions.all():
                self._end_session(session, "share groups were switched off", release=False)

    def _log_grew(self, message: LogGrew) -> None:
        for led in self._partitions.of_log(message.topic_partition):
            led.log_end = None
            self._fetches.wake(led)

    def _tick(self, _: Tick) -> None:
        """Ring every alarm whose time has come. What a ring sets anew is due later, so this ends."""
        context = self._context
        while (due := context.deadlines.pop_due(context.now_ms)) is not None:
            if isinstance(due, LedPartition):
                self._partitions.expire(due)
            elif isinstance(due, ShareFetch):
                self._fetches.max_wait_passed(due)
            else:
                context.effects.append(due)
