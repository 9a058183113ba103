"""One fetch under way, and its reads of single share-partitions."""

from __future__ import annotations

from shareq.leader.led_partition import LedPartition
from shareq.leader.share_requests import FetchedPartition
from shareq.leader.share_sessions import PendingRequest, ShareSession
from shareq.model.actor import LogRead
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.states import AcquireMode


class PartitionRead:
    """One share-partition's part in an attempt: its fetch lock is held from the call to the log until it is taken from.

    `size` are the bytes that the log offered, `counted_bytes` what they count against the fetch's minimum.
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
        """The log has answered; what can be read ends at `end`.

        Kafka takes the distance of two positions in a segment, capped by what may be fetched. A log without segments
        says the same by what it gave: everything up to the end, or as much as was allowed.
        """
        self.answer = answer
        if answer.batches:
            self.size = sum([len(batch.data) for batch in answer.batches])
            reaches_end = answer.batches[-1].last_offset + 1 >= end
            self.counted_bytes = self.size if reaches_end else max(self.size, self.max_bytes)


class ShareFetch(PendingRequest):
    """A ShareFetch under way.

    `leds` are the share-partitions in the order of turns, `position` is how far the attempt has come, `reads` what it
    has locked, `unread` how many of these the log has not answered. `final`: take what there is, the minimum is met or
    time is up. `again`: something happened to a share-partition that the attempt had passed. `waiting`: it is in the
    queues. `max_bytes`: the request's limit, capped by the one given, the broker's.
    """

    __slots__ = (
        "again",
        "bytes_left",
        "final",
        "leds",
        "limits",
        "max_bytes",
        "min_bytes",
        "mode",
        "position",
        "reads",
        "records_left",
        "unread",
        "waiting",
        "wave",
    )

    def __init__(
        self, request_id: int, request: ShareFetchRequest, session: ShareSession, mode: AcquireMode, max_bytes: int
    ) -> None:
        super().__init__(request_id, request, session)
        self.fetching = True
        self.limits = request
        self.mode = mode
        self.max_bytes = min(request.max_bytes, max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.records_left = request.max_records
        self.final = request.max_wait_ms <= 0
        self.waiting = False
        self.reads: list[PartitionRead] = []
        self.leds: list[LedPartition] = []
        self.start_over()

    def take_session_partitions(self) -> None:
        """Take the session's partitions as they are now, in the order of turns."""
        self.leds = list(self.session.leds)
        for at, error in self.session.errors.items():
            self.fetched[at] = FetchedPartition(error)

    def start_over(self) -> None:
        """Back to the first share-partition for a new attempt."""
        self.again = False
        self.position = 0
        self.unread = 0
        self.wave = 1
        self.bytes_left = self.max_bytes
