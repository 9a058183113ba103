"""The share-partition leader of one broker: sessions, fetches and acknowledgements, as one actor.

It answers ShareFetch and ShareAcknowledge. This module takes a request through the steps in Kafka's order:
`share_requests` and `share_sessions` check it, `share_partition` changes the records, `fetch_scheduler` keeps waiting
fetches, `led_partitions` makes state durable. Source: KIP-932, "Share-partition leader"; Kafka's
SharePartitionManager. Rules: BEHAVIOUR.md in this folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from shareq.leader.fetch_scheduler import FetchScheduler
from shareq.leader.leader_context import LeaderContext
from shareq.leader.led_partitions import LedPartitions
from shareq.leader.share_fetch import (
    INITIAL_EPOCH,
    LedPartition,
    PendingRequest,
    SessionKey,
    ShareFetch,
    ShareSession,
    next_epoch,
)
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
from shareq.leader.share_sessions import ShareSessionCache, epoch_error, has_room
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.actor import (
    Answer,
    ConnectionClosed,
    DeadLettersEnded,
    Effect,
    ImageChanged,
    Incoming,
    LogGrew,
    LogRead,
    Message,
    OffsetFound,
    Respond,
    Tick,
    isolated,
)
from shareq.model.errors import Errors
from shareq.model.events import ShareSessionClosed, ShareSessionOpened
from shareq.model.gauges import Gauge
from shareq.model.ids import SharePartitionKey, TopicIdPartition, TopicPartition
from shareq.model.messages.share_fetch import (
    FINAL_EPOCH,
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from shareq.model.rights import Rights
from shareq.model.states import AcquireMode
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.waits import Wait

MAX_BYTES = "fetch.max.bytes"

_ACQUIRE_MODES = {int(mode): mode for mode in AcquireMode}


class ShareLeader:
    """The actor. `wake_at_ms` is the next deadline of a lock or a waiting fetch. `sole`: see `LeaderContext`."""

    def __init__(self, broker_id: int, *, traced: bool, sole: bool = False, time_of_day: TimeOfDay = same_time) -> None:
        self.wake_at_ms: int | None = None
        self._context = LeaderContext(broker_id, traced=traced, sole=sole, time_of_day=time_of_day)
        self._sessions = ShareSessionCache()
        self._partitions = LedPartitions(self._context, self._sessions)
        self._fetches = FetchScheduler(self._context, self._partitions)
        self._handlers: dict[type, Callable[[Any], None]] = {
            Incoming: self._incoming,
            LogRead: self._fetches.log_read,
            Answer: self._partitions.answered,
            OffsetFound: self._partitions.offset_found,
            LogGrew: self._log_grew,
            Tick: self._tick,
            ImageChanged: self._image_changed,
            ConnectionClosed: self._connection_closed,
            DeadLettersEnded: self._partitions.dead_letters_ended,
        }

    def watches(self, log: TopicPartition) -> bool:
        """True if a led share-partition reads this log."""
        return bool(self._partitions.of_log(log))

    def awaits(self, log: TopicPartition) -> bool:
        """True if a fetch waits for records of this log."""
        return any(led.untried or led.tried for led in self._partitions.of_log(log))

    def waits_for(self, key: SharePartitionKey) -> Wait | None:
        """What a share-partition waits for; None if records of it can be acquired now."""
        led = self._partitions.get(key)
        return Wait.NOT_LOADED if led is None else led.waits_for(self._context.config(key.group_id))

    def fetch_waits_for(self, key: SessionKey) -> frozenset[Wait]:
        """What the fetches of a share session wait for; nothing if none is under way."""
        session = self._sessions.get(key)
        return frozenset().union(*[self._fetches.waits_for(fetch) for fetch in session.fetches] if session else ())

    def gauges(self) -> Counter[Gauge]:
        """The partitions of all share sessions, and the fetches that wait."""
        waiting = [self._fetches.is_waiting(fetch) for session in self._sessions for fetch in session.fetches]
        return Counter(
            {
                ("SharePartitionsCount", ()): sum(len(session.partitions) for session in self._sessions),
                ("NumDelayedOperations", (("delayedOperation", "ShareFetch"),)): sum(waiting),
            }
        )

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Handle one message. KeyError for a message type that a share-partition leader does not handle.

        An exception is an effect: what the message has woken before it goes on."""
        context = self._context
        context.now_ms = now_ms
        isolated(context.effects, self._handlers[type(message)], message)
        self._finish()
        self.wake_at_ms = context.deadlines.next_ms()
        effects, context.effects = context.effects, []
        return effects

    def _finish(self) -> None:
        """Do what the message has caused: waiting fetches end or are attempted, and requests are answered."""
        self._fetches.offer()
        done = self._context.done
        while done:
            pending = next(iter(done))
            del done[pending]
            if pending.complete:
                self._respond(pending)

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
        rights = self._context.rights(incoming)
        for at, batches in acknowledgements(request).items():
            pending.acks[at] = self._acknowledge(pending, at, batches, rights)
        if final:
            self._end_session(session, "closed")
        if isinstance(pending, ShareFetch):
            session.fetches[pending] = None
            self._resolve(session, rights)
            self._fetches.start(pending)
        else:
            self._context.done[pending] = None

    def _find_session(self, incoming: Incoming, request: ShareRequest) -> ShareSession | None:
        """The session of the request, updated by it; None if the request was refused."""
        image = self._context.image
        key = SessionKey(request.group_id or "", request.member_id or "")
        session = self._sessions.get(key)
        error = request_error(request, image.share_version) or epoch_error(request, session)
        if not error and not has_room(request, session, image):
            error = Errors.INVALID_REQUEST
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

    def _respond(self, pending: PendingRequest) -> None:
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
        self,
        pending: PendingRequest,
        at: TopicIdPartition,
        batches: tuple[AcknowledgementBatch, ...],
        rights: Rights | None,
    ) -> AcknowledgeResult:
        """Acknowledge in one partition, all batches or none. If a write is needed, its end sets the result later."""
        context = self._context
        topic = context.image.topics_by_id.get(at.topic_id)
        if topic is None:
            return AcknowledgeResult(Errors.UNKNOWN_TOPIC_ID)
        error = acknowledgement_error(batches, is_renew_ack=pending.request.is_renew_ack)
        if not error and rights is not None and not _may_read(rights, topic.name):
            error = Errors.TOPIC_AUTHORIZATION_FAILED
        if not error and context.image.partition(at.topic_id, at.partition) is None:
            error = Errors.UNKNOWN_TOPIC_OR_PARTITION
        if error or not batches:
            return AcknowledgeResult(error)
        led = self._partitions.get(SharePartitionKey(pending.group_id, at.topic_id, at.partition))
        if led is None:
            return acknowledge_result(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        config = context.config(pending.group_id)
        outcome = led.share_partition.acknowledge(pending.member_id, batches, config, context.now_ms)
        self._partitions.watch(led)  # no record becomes available before the write settles, so no fetch is woken
        if isinstance(outcome, Errors):
            return acknowledge_result(outcome)
        if outcome is not None:
            self._partitions.write(led, outcome, pending)
        return ACKNOWLEDGED

    # ---- sessions ----------------------------------------------------------------------------------------------------

    def _open_session(self, incoming: Incoming, request: ShareFetchRequest, key: SessionKey) -> ShareSession | None:
        """Open a session. It replaces the member's old one, whose records stay locked.

        If the broker, the address or the connection has too many sessions, the refusal is delayed by MaxWaitMs, so that
        the client does not retry at once.
        """
        context, replaced = self._context, self._sessions.get(key)
        if replaced is not None:
            self._end_session(replaced, "replaced", release=False)
        if self._sessions.is_full(incoming.client, context.image.broker_config):
            refusal = Respond(incoming.id, error_response(request, Errors.SHARE_SESSION_LIMIT_REACHED))
            context.deadlines.set(refusal, context.now_ms + max(0, request.max_wait_ms))
            return None
        session = self._sessions.open(key, incoming.client)
        session.update(request, context.image)
        if context.traced:
            context.effects.append(ShareSessionOpened(*session.key))
        return session

    def _end_session(self, session: ShareSession, reason: str, *, release: bool = True) -> None:
        """Close a session: its fetches end without records, and with `release` its records are released."""
        self._sessions.close(session)
        for fetch in list(session.fetches):
            self._fetches.abort(fetch)
        if self._context.traced:
            self._context.effects.append(ShareSessionClosed(*session.key, reason))
        if release:
            for at in session.partitions:
                self._release(session, at)

    def _release(self, session: ShareSession, at: TopicIdPartition) -> None:
        """Release the member's records in one partition. Locks in forgotten partitions expire instead."""
        context, (group_id, member_id) = self._context, session.key
        led = self._partitions.get(SharePartitionKey(group_id, at.topic_id, at.partition))
        if led is None:
            return
        write = led.share_partition.release_member(member_id, context.config(group_id))
        self._partitions.changed(led)
        if write is not None:
            self._partitions.write(led, write)

    def _resolve(self, session: ShareSession, rights: Rights | None) -> None:
        """Look up the leader of each of the session's partitions that may be read; those led here start to load."""
        sender = None if rights is None else rights.sender
        if session.resolved == self._partitions.generation and session.resolved_for == sender:
            return
        image, group_id = self._context.image, session.key.group_id
        session.leds, session.errors = [], {}
        for at, part in session.partitions.items():
            part.led = None
            partition = image.partition(at.topic_id, at.partition)
            if part.topic is None:
                session.errors[at] = Errors.UNKNOWN_TOPIC_ID
            elif rights is not None and not _may_read(rights, part.topic):
                session.errors[at] = Errors.TOPIC_AUTHORIZATION_FAILED
            elif partition is None:
                session.errors[at] = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.leader != self._context.broker_id:
                session.errors[at] = Errors.NOT_LEADER_OR_FOLLOWER
            else:
                key = SharePartitionKey(group_id, at.topic_id, at.partition)
                part.led = self._partitions.lead(key, part.topic, partition.leader_epoch)
                session.leds.append(part.led)
        session.resolved, session.resolved_for = self._partitions.generation, sender

    # ---- other messages ----------------------------------------------------------------------------------------------

    def _connection_closed(self, message: ConnectionClosed) -> None:
        """Close the sessions of the connection, and drop the share-partitions of groups without a session on this
        broker."""
        broken, groups = self._sessions.lose_connection(message.connection_id)
        for session in broken:
            isolated(self._context.effects, self._end_session, session, "connection lost")
        for group_id in groups:
            self._partitions.drop_unused(group_id)

    def _image_changed(self, message: ImageChanged) -> None:
        self._context.image = message.image
        self._partitions.image_changed()
        self._finish()
        if message.image.share_version < 1:
            for session in self._sessions.all():
                self._end_session(session, "share groups were switched off", release=False)

    def _log_grew(self, message: LogGrew) -> None:
        for led in self._partitions.of_log(message.topic_partition):
            led.log_end = None
            self._partitions.wake(led)

    def _tick(self, _: Tick) -> None:
        """Handle every deadline that has passed. Handlers set later deadlines only, so this ends."""
        context = self._context
        while (due := context.deadlines.pop_due(context.now_ms)) is not None:
            if isinstance(due, LedPartition):
                isolated(context.effects, self._partitions.expire, due)
            elif isinstance(due, ShareFetch):
                isolated(context.effects, self._fetches.max_wait_passed, due)
            elif isinstance(due, Respond):
                context.effects.append(due)
            else:
                isolated(context.effects, due)


def _may_read(rights: Rights, topic: str) -> bool:
    return rights.may(AclOperation.READ, ResourceType.TOPIC, topic)
