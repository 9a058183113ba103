"""The fetches under way, the share sessions that they belong to, and the share-partitions that they read.

These refer to one another: a fetch has its session, a session its share-partitions, and a share-partition the fetches
that wait for it. Rules: BEHAVIOUR.md, "Fetching" and "Sessions".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from shareq.leader.fetch_states import FETCH_TRANSITIONS, LOCK_TRANSITIONS, FetchEvent, FetchState, LockEvent, LockState
from shareq.leader.share_partition import SharePartition
from shareq.leader.share_requests import NOTHING_FETCHED, AcknowledgeResult, FetchedPartition, ShareRequest
from shareq.model.actor import LogRead
from shareq.model.authorizer import Authorizer
from shareq.model.configs import INT_MAX, GroupConfig
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicIdPartition, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.states import AcquireMode, LoadEvent, PartitionLoadState
from shareq.model.waits import Wait

INITIAL_EPOCH = 0
"""The epoch of a request that opens a session."""

TURNS = 8
"""With priorities, one of so many fetches of a session takes the share-partitions in turn."""

# Bound once: Python 3.11 runs a function for each access to a member of an enumeration.
_FREE, _CHANGED, _EXHAUSTED = LockState.FREE, LockEvent.CHANGED, LockEvent.EXHAUSTED
_ACTIVE = PartitionLoadState.ACTIVE
_LOADING, _DROPPED, _PAUSED, _WINDOW_FULL = Wait.LOADING, Wait.DROPPED, Wait.PAUSED, Wait.WINDOW_FULL
_ENDED, _ATTEMPT = FetchState.ENDED, FetchEvent.ATTEMPT


class LedPartition:
    """One share-partition on its leader.

    `owner` is the fetch that holds the fetch lock: only it may read and acquire, and only it releases the lock. `lock`:
    the state of the lock. Waiting fetches are `untried` if they have not tried since the last change, else `tried`; the
    next one stands first. `log_end`: the end of the log at the last read, None after it has grown. `writes`: state
    writes under way. `letters_id`: the id of its dead letters, None before the first one. `letters_out`: records on
    their way to the dead-letter queue; `letters_stopped`: no more of them are sent. `dropped`: the error with which
    this share-partition was dropped.
    """

    __slots__ = (
        "at",
        "dropped",
        "key",
        "leader_epoch",
        "letters_id",
        "letters_out",
        "letters_stopped",
        "lock",
        "log_end",
        "owner",
        "share_partition",
        "topic_partition",
        "tried",
        "untried",
        "writes",
    )

    def __init__(
        self, key: SharePartitionKey, topic: str, leader_epoch: int, *, traced: bool, kind: type[SharePartition]
    ) -> None:
        self.key = key
        self.at = TopicIdPartition(key.topic_id, key.partition)
        self.topic_partition = TopicPartition(topic, key.partition)
        self.leader_epoch = leader_epoch
        self.share_partition = kind(key, topic, leader_epoch=leader_epoch, traced=traced)
        self.share_partition.step(LoadEvent.READ)
        self.owner: ShareFetch | None = None
        self.untried: OrderedDict[ShareFetch, None] = OrderedDict()
        self.tried: dict[ShareFetch, None] = {}
        self.lock = LockState.FREE
        self.log_end: int | None = None
        self.writes = 0
        self.letters_id: int | None = None
        self.letters_out = 0
        self.letters_stopped = False
        self.dropped = Errors.NONE

    @property
    def at_log_end(self) -> bool:
        """True if the log has nothing to acquire, as far as that is known."""
        return self.log_end is not None and self.share_partition.next_fetch_offset >= self.log_end

    def blocked_by(self, config: GroupConfig) -> Wait | None:
        """Why nothing can be acquired, whatever the log has: it is not loaded, its group is paused, or its window has
        neither room nor AVAILABLE records."""
        share_partition, experiments = self.share_partition, config.experiments
        if share_partition.status is not _ACTIVE:
            return _DROPPED if self.dropped else _LOADING
        if experiments is not None and not experiments.delivery_enable:
            return _PAUSED
        return None if share_partition.can_acquire(config.partition_max_record_locks) else _WINDOW_FULL

    def ready(self, config: GroupConfig) -> bool:
        """True if a fetch that takes the lock now can read records and acquire them."""
        if self.lock is not _FREE:
            return False
        if not self.at_log_end and self.blocked_by(config) is None:
            return True
        self.step(_EXHAUSTED)
        return False

    def waits_for(self, config: GroupConfig) -> Wait | None:
        """What a fetch waits for here; None if one can read records now and acquire them."""
        wait = self.blocked_by(config)
        if wait is None or wait is _WINDOW_FULL:
            wait = self.share_partition.waits_for(full=wait is _WINDOW_FULL, at_log_end=self.at_log_end)
        return Wait.FETCH_LOCK if wait is None and self.owner is not None else wait

    def step(self, event: LockEvent) -> None:
        """Change the state of the fetch lock. KeyError for an event that cannot occur in this state."""
        self.lock = LOCK_TRANSITIONS[self.lock, event]

    def change(self) -> None:
        """Something has changed: every waiting fetch may try again."""
        self.step(_CHANGED)
        if self.tried:
            for fetch in reversed(self.tried):  # tried fetches have waited longer than untried ones
                self.untried[fetch] = None
                self.untried.move_to_end(fetch, last=False)
            self.tried.clear()

    def leave(self, fetch: ShareFetch) -> None:
        """Remove a fetch from the queues."""
        self.untried.pop(fetch, None)
        self.tried.pop(fetch, None)


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
        "address",
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

    def __init__(self, key: SessionKey, connection_id: int, address: str) -> None:
        self.key = key
        self.connection_id = connection_id
        self.address = address
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[TopicIdPartition, SessionPartition] = {}
        self.unreported: dict[TopicIdPartition, None] = {}
        self.fetches: dict[ShareFetch, None] = {}
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


class PartitionRead:
    """One share-partition's read in an attempt. The fetch lock is held from the read until the records are acquired.

    `size`: the bytes that the log returned; `counted_bytes`: the bytes that count towards the fetch's minimum.
    """

    __slots__ = ("answer", "counted_bytes", "fetch", "led", "max_bytes", "offset", "size")

    def __init__(self, fetch: ShareFetch, led: LedPartition, offset: int, max_bytes: int) -> None:
        self.fetch = fetch
        self.led = led
        self.offset = offset
        self.max_bytes = max_bytes
        self.answer: LogRead | None = None
        self.size = 0
        self.counted_bytes = 0

    def answered(self, answer: LogRead, end: int) -> None:
        """Store the log's answer; `end` is the first offset that cannot be read.

        Kafka counts the distance of two positions in a segment, capped by the partition's maximum. A log without
        segments gives the same result: the size of a read that reaches the end, else the maximum that was allowed.
        """
        self.answer = answer
        if answer.batches:
            self.size = sum([len(batch.data) for batch in answer.batches])
            reaches_end = answer.batches[-1].last_offset + 1 >= end
            self.counted_bytes = self.size if reaches_end else max(self.size, self.max_bytes)


class ShareFetch(PendingRequest):
    """A ShareFetch under way.

    `leds`: its share-partitions in the order of turns; `position`: the number that the attempt has visited; `reads`:
    those that it has locked, empty between two attempts; `unread`: reads without an answer. `waiting`: the fetch is in
    the queues. `max_bytes`: the request's limit, capped by the broker's `fetch.max.bytes`.
    """

    __slots__ = (
        "bytes_left",
        "leds",
        "limits",
        "max_bytes",
        "min_bytes",
        "mode",
        "position",
        "reads",
        "records_left",
        "state",
        "unread",
        "waiting",
        "wave",
    )

    def __init__(
        self, request_id: int, request: ShareFetchRequest, session: ShareSession, mode: AcquireMode, max_bytes: int
    ) -> None:
        super().__init__(request_id, request, session)
        self.limits = request
        self.mode = mode
        self.max_bytes = min(request.max_bytes, max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.records_left = request.max_records
        self.state = FetchState.LAST if request.max_wait_ms <= 0 else FetchState.OPEN
        self.waiting = False
        self.reads: list[PartitionRead] = []
        self.leds: list[LedPartition] = []
        self.start_over()

    @property
    def complete(self) -> bool:
        return self.state is _ENDED and not self.writes

    def step(self, event: FetchEvent) -> None:
        """Change the state. KeyError for an event that cannot occur in this state."""
        self.state = FETCH_TRANSITIONS[self.state, event]

    def take_session_partitions(self) -> None:
        """Take the session's partitions as they are now, in the order of turns."""
        self.leds = list(self.session.leds)
        for at, error in self.session.errors.items():
            self.fetched[at] = FetchedPartition(error)

    def line_up(self, priorities: Mapping[str, int]) -> None:
        """Take topics of a higher priority first (an experiment). Every eighth fetch of the session keeps the order of
        turns, so that all are served."""
        if self.session.epoch % TURNS:
            self.leds.sort(key=lambda led: -priorities.get(led.topic_partition.topic, 0))

    def start_over(self) -> None:
        """Return to the first share-partition for a new attempt."""
        self.step(_ATTEMPT)
        self.position = 0
        self.unread = 0
        self.wave = 1
        self.bytes_left = self.max_bytes
