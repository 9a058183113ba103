"""The share-partition leader of one broker: sessions, fetches and acknowledgements, as one actor.

It answers ShareFetch and ShareAcknowledge. What a record may become is decided in `share_partition`, how a fetch waits
in `fetches`, how state gets durable in `led_partitions`, who may ask for what in `sessions` and `requests`; this module
takes a request through them in Kafka's order. Source: KIP-932, "Share-partition leader"; Kafka's SharePartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.leader.context import Context
from shareq.leader.fetch import Fetch
from shareq.leader.fetches import Fetches
from shareq.leader.led_partition import LedPartition
from shareq.leader.led_partitions import LedPartitions
from shareq.leader.requests import (
    ACKNOWLEDGED,
    AckResult,
    ShareRequest,
    ShareResponse,
    acknowledge_response,
    acknowledgements,
    error_response,
    fetch_response,
    leader_says,
    refuse,
    refuse_batches,
)
from shareq.leader.sessions import (
    INITIAL_EPOCH,
    Exchange,
    SessionCache,
    SessionKey,
    ShareSession,
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
        self._context = Context(broker_id, traced=traced)
        self._sessions = SessionCache()
        self._fetches = Fetches(self._context, ended=self._finish)
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
        self.wake_at_ms = context.alarms.next_ms()
        effects, context.effects = context.effects, []
        return effects

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _incoming(self, incoming: Incoming) -> None:
        request = incoming.request
        assert isinstance(request, (ShareFetchRequest, ShareAcknowledgeRequest))
        session = self._enter(incoming, request)
        if session is None:
            return
        final = request.share_session_epoch == FINAL_EPOCH
        if isinstance(request, ShareFetchRequest) and not request.is_renew_ack and not final:
            mode = _ACQUIRE_MODES.get(request.share_acquire_mode)
            if mode is None:
                self._refuse(incoming.id, request, Errors.UNKNOWN_SERVER_ERROR)
                return
            exchange: Exchange = Fetch(
                incoming.id, request, session, mode, self._context.image.broker_config[MAX_BYTES]
            )
        else:
            exchange = Exchange(incoming.id, request, session)
        for at, batches in acknowledgements(request).items():
            exchange.acks[at] = self._acknowledge(exchange, at, batches)
        if final:
            self._end_session(session, "closed")
        if isinstance(exchange, Fetch):
            session.fetches[exchange] = None
            self._resolve(session)
            self._fetches.start(exchange)
        else:
            self._finish(exchange)

    def _enter(self, incoming: Incoming, request: ShareRequest) -> ShareSession | None:
        """The session that the request belongs to, brought up to date; None if the request had to be refused."""
        image = self._context.image
        key = SessionKey(request.group_id or "", request.member_id or "")
        session = self._sessions.get(key)
        error = refuse(request, image.share_version) or epoch_error(request, session)
        if error:
            self._refuse(incoming.id, request, error)
            return None
        if isinstance(request, ShareFetchRequest) and request.share_session_epoch == INITIAL_EPOCH:
            return self._open_session(incoming, request, key)
        assert session is not None
        if request.share_session_epoch != FINAL_EPOCH:
            if isinstance(request, ShareFetchRequest):
                session.update(request, image)
            session.epoch = next_epoch(session.epoch)
        return session

    def _refuse(self, exchange_id: int, request: ShareRequest, error: Errors) -> None:
        self._context.effects.append(Respond(exchange_id, error_response(request, error)))

    def _finish(self, exchange: Exchange) -> None:
        """Answer, unless something is still on its way."""
        if exchange.fetching or exchange.writes:
            return
        context, request, session = self._context, exchange.request, exchange.session
        lock_duration_ms = context.config(exchange.group_id).record_lock_duration_ms
        response: ShareResponse
        if isinstance(request, ShareAcknowledgeRequest):
            response = acknowledge_response(context.image, lock_duration_ms, exchange.acks)
        else:
            report = exchange.fetched
            if isinstance(exchange, Fetch):
                session.fetches.pop(exchange)
                report = session.to_report(report, full=request.share_session_epoch == INITIAL_EPOCH)
            response = fetch_response(context.image, lock_duration_ms, report, exchange.acks)
        context.effects.append(Respond(exchange.id, response))

    # ---- acknowledgements --------------------------------------------------------------------------------------------

    def _acknowledge(
        self, exchange: Exchange, at: TopicIdPartition, batches: tuple[AcknowledgementBatch, ...]
    ) -> AckResult:
        """Acknowledge in one partition, all of it or nothing. Of what has to be written `_acknowledged` hears."""
        context = self._context
        if at.topic_id not in context.image.topics_by_id:
            return AckResult(Errors.UNKNOWN_TOPIC_ID)
        error = refuse_batches(batches, is_renew_ack=exchange.request.is_renew_ack)
        if not error and context.image.partition(at.topic_id, at.partition) is None:
            error = Errors.UNKNOWN_TOPIC_OR_PARTITION
        if error or not batches:
            return AckResult(error)
        led = self._partitions.get(SharePartitionKey(exchange.group_id, at.topic_id, at.partition))
        if led is None:
            return leader_says(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        config = context.config(exchange.group_id)
        outcome = led.share_partition.acknowledge(exchange.member_id, batches, config, context.now_ms)
        self._partitions.watch(led)  # nothing comes free before the write has settled: nobody needs to be woken
        if isinstance(outcome, Errors):
            return leader_says(outcome)
        if outcome is not None:
            self._partitions.write(led, outcome, exchange)
        return ACKNOWLEDGED

    def _acknowledged(self, exchange: Exchange, led: LedPartition, error: Errors) -> None:
        """The state write of one partition has settled."""
        exchange.acks[led.at] = leader_says(error)
        self._finish(exchange)

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
            context.alarms.set(refusal, context.now_ms + max(0, request.max_wait_ms))
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
        while (due := context.alarms.pop_due(context.now_ms)) is not None:
            if isinstance(due, LedPartition):
                self._partitions.expire(due)
            elif isinstance(due, Fetch):
                self._fetches.time_is_up(due)
            else:
                context.effects.append(due)
