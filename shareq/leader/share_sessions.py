"""Share sessions: the partitions that a member fetches from this broker, so that each request lists only changes.

A session also ties locks to a member's life: when it is closed, or its connection breaks, the records of the partitions
that are still in it are released. Source: KIP-932, "Share sessions"; KIP-227 for the idea. Rules: BEHAVIOUR.md,
"Sessions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from shareq.leader.led_partition import LedPartition
from shareq.leader.share_requests import NOTHING_FETCHED, AcknowledgeResult, FetchedPartition, ShareRequest
from shareq.model.authorizer import Authorizer
from shareq.model.configs import INT_MAX
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.share_fetch import FINAL_EPOCH, ShareFetchRequest

INITIAL_EPOCH = 0

MAX_SESSIONS_OF_CONNECTION = 100
"""A client has one session on a connection: without a limit one client could take those of all others."""


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`. The highest one wraps to 1, because 0 opens a session."""
    return 1 if epoch == INT_MAX else epoch + 1


class SessionPartition:
    """A partition in a session. `topic` is the name when it was added; None if the id was unknown then, until the
    partition is forgotten and added again. `led` is the share-partition on this broker, or None if there is an error.
    """

    __slots__ = ("led", "topic")

    def __init__(self, topic: str | None) -> None:
        self.topic = topic
        self.led: LedPartition | None = None


class ShareSession:
    """One member's session with this broker.

    `epoch`: the epoch of the next request. `partitions` are in the order of turns: those that gave records last stand
    at the end. `unreported`: partitions that the next response names without records or error, too, because they are
    new or failed in the last response. `fetches`: under way. `resolved`: the generation of `LedPartitions` at which the
    partitions' `led`, their list `leds` in the order of turns, and the `errors` of the other partitions were
    determined; `resolved_for`: the authorizer and the sender for which they hold, None while everything is allowed.
    """

    __slots__ = (
        "connection_id",
        "epoch",
        "errors",
        "fetches",
        "key",
        "leds",
        "partitions",
        "resolved",
        "resolved_for",
        "unreported",
    )

    def __init__(self, key: SessionKey, connection_id: int) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[TopicIdPartition, SessionPartition] = {}
        self.unreported: dict[TopicIdPartition, None] = {}
        self.fetches: dict[Any, None] = {}  # of ShareFetch, whose module imports this one
        self.leds: list[LedPartition] = []
        self.errors: dict[TopicIdPartition, Errors] = {}
        self.resolved = -1
        self.resolved_for: tuple[Authorizer, str, str] | None = None

    def update(self, request: ShareFetchRequest, image: ClusterImage) -> None:
        """Add the listed partitions, also those listed only to acknowledge, then remove the forgotten ones."""
        for topic in request.topics:
            for part in topic.partitions:
                at = TopicIdPartition(topic.topic_id, part.partition_index)
                if at not in self.partitions:
                    known = image.topics_by_id.get(topic.topic_id)
                    self.partitions[at] = SessionPartition(known.name if known else None)
                    self.unreported[at] = None
                    self.resolved = -1
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                at = TopicIdPartition(forgotten.topic_id, index)
                self.partitions.pop(at, None)
                self.unreported.pop(at, None)
                self.resolved = -1

    def to_report(
        self, fetched: Mapping[TopicIdPartition, FetchedPartition], *, full: bool
    ) -> dict[TopicIdPartition, FetchedPartition]:
        """The partitions that a response names: all in the first one, later those that are new, have records, or have
        an error now or had one last time.

        From the second response on, partitions that gave records move to the end, so that the partition that has waited
        longest is always first.
        """
        report = {at: fetched.get(at, NOTHING_FETCHED) for at in self.partitions} if full else dict(fetched)
        if self.unreported:
            report.update({at: NOTHING_FETCHED for at in self.unreported if at not in report})
            self.unreported.clear()
        for at, result in fetched.items():
            part = self.partitions.get(at)
            if part is None:
                continue
            if result.error:
                self.unreported[at] = None
            elif result.records and not full:
                del self.partitions[at]
                self.partitions[at] = part
                if part.led is not None:
                    self.leds.remove(part.led)
                    self.leds.append(part.led)
        return report


class PendingRequest:
    """A request without a response yet. It is complete when its state writes have settled and its fetch has ended."""

    __slots__ = ("acks", "fetched", "group_id", "id", "member_id", "request", "session", "writes")

    def __init__(self, request_id: int, request: ShareRequest, session: ShareSession) -> None:
        self.id = request_id
        self.request = request
        self.session = session
        self.group_id, self.member_id = session.key
        self.acks: dict[TopicIdPartition, AcknowledgeResult] = {}
        self.fetched: dict[TopicIdPartition, FetchedPartition] = {}
        self.writes = 0

    @property
    def complete(self) -> bool:
        """True if the response can be sent."""
        return not self.writes


def has_room(request: ShareRequest, session: ShareSession | None, image: ClusterImage) -> bool:
    """False if the request would put more partitions into the session than can be meant."""
    held = session.partitions if session is not None and request.share_session_epoch != INITIAL_EPOCH else {}
    listed = sum([len(topic.partitions) for topic in request.topics])
    if not isinstance(request, ShareFetchRequest) or image.can_be_meant(len(held) + listed):
        return True
    named = {TopicIdPartition(topic.topic_id, p.partition_index) for topic in request.topics for p in topic.partitions}
    return image.can_be_meant(len(held.keys() | named))


def epoch_error(request: ShareRequest, session: ShareSession | None) -> Errors:
    """The error of a request's session epoch; `session` is the member's current session, if any."""
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        if not isinstance(request, ShareFetchRequest):
            return Errors.INVALID_SHARE_SESSION_EPOCH
        has_acks = any(part.acknowledgement_batches for topic in request.topics for part in topic.partitions)
        return Errors.INVALID_REQUEST if has_acks else Errors.NONE
    if session is None:
        return Errors.SHARE_SESSION_NOT_FOUND
    if epoch not in (FINAL_EPOCH, session.epoch):
        return Errors.INVALID_SHARE_SESSION_EPOCH
    return Errors.NONE


class _Connection(NamedTuple):
    """The open sessions of a connection, and every group that has had one there."""

    sessions: dict[SessionKey, ShareSession]
    groups: dict[str, None]


class ShareSessionCache:
    """All sessions of this broker. Sessions are never evicted: a full cache, or connection, refuses new ones."""

    __slots__ = ("_connections", "_members", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}
        self._connections: dict[int, _Connection] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """The session of a member, or None."""
        return self._sessions.get(key)

    def is_full(self, connection_id: int, max_sessions: int) -> bool:
        """True if the broker has `max_sessions`, or the connection the most that one may have."""
        connection = self._connections.get(connection_id)
        held = len(connection.sessions) if connection else 0
        return held >= MAX_SESSIONS_OF_CONNECTION or len(self._sessions) >= max_sessions

    def open(self, key: SessionKey, connection_id: int) -> ShareSession:
        """Open a session. The member must not have one."""
        assert key not in self._sessions
        session = self._sessions[key] = ShareSession(key, connection_id)
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        connection = self._connections.setdefault(connection_id, _Connection({}, {}))
        connection.sessions[key] = session
        connection.groups[key.group_id] = None
        return session

    def close(self, session: ShareSession) -> None:
        """Remove a session. Its connection still counts as one of the group."""
        del self._sessions[session.key]
        connection = self._connections.get(session.connection_id)
        if connection is not None:
            del connection.sessions[session.key]
        group_id = session.key.group_id
        self._members[group_id] -= 1
        if not self._members[group_id]:
            del self._members[group_id]

    def lose_connection(self, connection_id: int) -> tuple[list[ShareSession], list[str]]:
        """The open sessions of a lost connection, without those replaced from another connection, and the groups that
        used it. The sessions stay in the cache until they are closed."""
        sessions, groups = self._connections.pop(connection_id, _Connection({}, {}))
        return list(sessions.values()), list(groups)

    def has_group(self, group_id: str) -> bool:
        """True if a member of the group has a session on this broker."""
        return group_id in self._members

    def all(self) -> list[ShareSession]:
        """Every session, the oldest first."""
        return list(self._sessions.values())
