"""One ShareFetch under way, and its reads of single share-partitions."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.leader.fetch_states import FETCH_TRANSITIONS, FetchEvent, FetchState
from shareq.leader.led_partition import LedPartition
from shareq.leader.share_requests import FetchedPartition
from shareq.leader.share_sessions import PendingRequest, ShareSession
from shareq.model.actor import LogRead
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.states import AcquireMode

TURNS = 8
"""With priorities, one of so many fetches of a session takes the share-partitions in turn."""

# Bound once: Python 3.11 runs a function for each access to a member of an enumeration.
_ENDED, _ATTEMPT = FetchState.ENDED, FetchEvent.ATTEMPT


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
