"""The share sessions of a broker: a session is the partitions that a member fetches from it, so that each request lists
only changes.

A session also ties locks to a member's life: when it is closed, or its connection breaks, the records of the partitions
that are still in it are released. Source: KIP-932, "Share sessions"; KIP-227 for the idea. Rules: BEHAVIOUR.md,
"Sessions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from shareq.leader.share_fetch import INITIAL_EPOCH, SessionKey, ShareSession
from shareq.leader.share_requests import ShareRequest
from shareq.model.actor import ClientContext
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.share_fetch import FINAL_EPOCH, ShareFetchRequest

MAX_SESSIONS = "group.share.max.share.sessions"
MAX_SESSIONS_PER_IP = "max.share.sessions.per.ip"
MAX_SESSIONS_OF_CONNECTION = 100
"""A client has one session on a connection: without a limit one client could take those of all others."""


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
    """All sessions of this broker. Sessions are never evicted: a full cache, or the limit of an address or a
    connection, refuses new ones."""

    __slots__ = ("_addresses", "_connections", "_members", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}
        self._connections: dict[int, _Connection] = {}
        self._addresses: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(self._sessions.values())

    def get(self, key: SessionKey) -> ShareSession | None:
        """The session of a member, or None."""
        return self._sessions.get(key)

    def is_full(self, client: ClientContext, config: BrokerConfig) -> bool:
        """True if the broker, the client's address or its connection has the most sessions that it may have."""
        connection = self._connections.get(client.connection_id)
        held = len(connection.sessions) if connection else 0
        return (
            held >= MAX_SESSIONS_OF_CONNECTION
            or self._addresses[client.client_host] >= config[MAX_SESSIONS_PER_IP]
            or len(self._sessions) >= config[MAX_SESSIONS]
        )

    def open(self, key: SessionKey, client: ClientContext) -> ShareSession:
        """Open a session. The member must not have one."""
        assert key not in self._sessions
        connection_id = client.connection_id
        session = self._sessions[key] = ShareSession(key, connection_id, client.client_host)
        self._addresses[client.client_host] += 1
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
        self._addresses[session.address] -= 1
        if not self._addresses[session.address]:
            del self._addresses[session.address]
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
