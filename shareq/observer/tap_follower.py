"""Follows the journal of a tap in another process, so that views of its address have what the tap knows: holders and
locks, and what its observers poll."""

from __future__ import annotations

from collections.abc import Iterator

from shareq.admin.core import Operation, Pause, Reply, Send
from shareq.html import Html, Table, html, strong
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, KafkaException
from shareq.model.events import ObservationDisturbed
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.tap_journal import ReadJournalRequest, ReadJournalResponse
from shareq.observer.core import PollingCore
from shareq.observer.poller import Poller, state_html
from shareq.trace import Journal, JournalFileError, View, view
from shareq.trace.journal.jsonl import read_page
from shareq.transports import transport_for

WAIT_MS = 1_000
"""How long the tap waits for the next entries before it answers that there are none."""

PAGE_BYTES = 1 << 18
KEPT_EVENTS = 200_000
"""The number of newest events to keep: a page may be open for days."""

RETRY_MS = 500
ADMITTED_MS = 60_000
"""The interval of Metadata requests: with the first one the broker behind the tap admits the connection, the others
keep it from closing an idle one."""


class TapFollower(Poller):
    """A journal with the entries of the journal of the tap at an address; it has `group`, which the tap observes from
    then on, and all other groups of the tap.

    Its clock is that of the tap. Entries that the tap had dropped before are missing at the begin (`journal.dropped`).
    It ends when later ones are missing, or when another tap answers at the address: `trouble` has the reason.
    """

    clock = "wall"

    def __init__(self, bootstrap_servers: str, group: str, *, capacity: int = KEPT_EVENTS) -> None:
        transport = transport_for(bootstrap_servers)
        self.bootstrap_servers, self.group = bootstrap_servers, group
        self.journal = Journal(capacity=capacity)
        self._following = following = Following(self.journal, group)
        core = PollingCore(
            bootstrap_servers, following.poll, following.take, following.fail, rng=transport.rng(), interval_ms=0
        )
        connection = transport.connect(core, "follower")
        super().__init__(core, connection, connection.close)

    @property
    def now_ms(self) -> int:
        """The tap's clock, ms since the epoch."""
        return self._connection.now_ms() + self._following.ahead_ms

    @property
    def closed(self) -> bool:
        return super().closed or self._following.ended

    @property
    def offered(self) -> bool | None:
        """True if a tap answers at the address, False if something else does, None while nothing has."""
        return self._following.offered

    @property
    def complete(self) -> bool:
        """True if the journal had all that the tap's had when it answered last, with the group in it."""
        known = any(subject.group == self.group for subject in self.journal.subjects())
        return known and self._following.caught_up

    @property
    def decided(self) -> bool:
        """True if a view can be made of it, or of an observer in its place."""
        return self.closed or self.complete or (self.polled and not self.offered)

    @property
    def trouble(self) -> str:
        """Why the tap's journal cannot be followed now; empty if it can."""
        return self._following.trouble

    @property
    def hint(self) -> str:
        """What a view without events shows: where clients connect."""
        return "" if self.closed else f"the tap has no event of the group yet: connect to {self.bootstrap_servers}"

    def view(self, topic: str, partition: int = 0) -> View:
        """The view of one share-partition."""
        return view(self, self.group, topic, partition)

    def tables(self) -> Iterator[Table]:
        """What is followed, and the journal."""
        state = state_html(closed=self.closed, trouble=self.trouble, well="following")
        head = Html(f"{strong(self.group)} on the tap at {html(self.bootstrap_servers)} · {state}")
        yield Table(("events", "older ones dropped"), [(len(self.journal), self.journal.dropped)], caption=head)

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.trouble or "following"
        return f"TapFollower({self.bootstrap_servers}, {self.group}: {state}, {len(self.journal):,} events)"


class Following:
    """The operation that reads the tap's journal page by page, and what is known of the tap. Pure, but for the journal
    that it writes; its orders are the tap's, unless trouble is written between them."""

    def __init__(self, journal: Journal, group: str) -> None:
        self.offered: bool | None = None
        self.caught_up = self.ended = False
        self.trouble = ""
        self.ahead_ms = 0
        """What the tap's clock is ahead of the own one."""
        self._journal, self._group = journal, group
        self._next: int | None = None
        """The tap's order of the next entry; None before the first response."""
        self._failures = self._admitted_until_ms = self._last_ms = 0
        self._disturbed = ""
        """What the tap has written last of its own trouble, and whether that of the follower is written after it."""
        self._written = False

    def poll(self, now_ms: int) -> Operation[Reply]:
        """One request and its response."""
        reply: Reply
        while self.ended:
            yield Pause(RETRY_MS)
        if self._failures:
            yield Pause(RETRY_MS)
        if self._failures or now_ms >= self._admitted_until_ms:
            (reply,) = yield [Send(ANY_NODE, MetadataRequest(topics=()))]
            if reply.response is None:
                return reply
            self._admitted_until_ms = now_ms + ADMITTED_MS
        asked = ReadJournalRequest(
            group_id=self._group, from_order=self._next or 0, max_wait_ms=WAIT_MS, max_bytes=PAGE_BYTES
        )
        (reply,) = yield [Send(ANY_NODE, asked)]
        return reply

    def take(self, reply: Reply, now_ms: int, _begun_ms: int) -> None:
        """Append the entries of a response."""
        response = reply.response
        if not isinstance(response, ReadJournalResponse) or response.error_code:
            error = reply.error if response is None else response.error_code
            self._failed(f"the tap does not answer: {reply.reason or error.name}", now_ms)
            return
        self.offered = True
        self._failures, self.trouble, self.ahead_ms = 0, "", response.now_ms - now_ms
        if self._written:
            self._write_trouble("", self._disturbed, now_ms)
            self._written = False
        try:
            self._append(response, now_ms)
        except JournalFileError as problem:
            self._end(f"its journal cannot be read: {problem}", now_ms)

    def fail(self, failure: KafkaException, now_ms: int) -> None:
        """A request has failed for good, as one does that the broker at the address does not offer."""
        if failure.error.code() == Errors.UNSUPPORTED_VERSION and not self.offered:
            self.offered = False
        if not self.ended:
            self._failed(failure.error.str(), now_ms)

    # ---- the journal -------------------------------------------------------------------------------------------------

    def _append(self, response: ReadJournalResponse, now_ms: int) -> None:
        origin_ms, entries, *_ = read_page(response.journal, "a response of the tap")
        first = entries[0].order if entries else response.total
        if self._next is None:
            self._journal.origin_ms, self._next = origin_ms, first
            self._journal.skip_to(first)
        elif origin_ms != self._journal.origin_ms or response.total < self._next:
            self._end("it has started again", now_ms)
            return
        elif first > self._next:
            self._end(f"{first - self._next:,} of its events are missing", now_ms)
            return
        for _, time_ms, broker_id, event in entries:
            if isinstance(event, ObservationDisturbed):
                self._disturbed = event.reason
            self._last_ms = max(self._last_ms, time_ms)
            self._journal.record(self._last_ms, broker_id, event)
        self._next = first + len(entries)
        self.caught_up = self._next >= response.total

    def _failed(self, why: str, now_ms: int) -> None:
        """Write a trouble of two requests in a row: a connection may be closed because it is idle."""
        self._failures += 1
        self.trouble = why
        if self._failures > 1 and self._next is not None and not self._written:
            self._written = True
            self._write_trouble(why, why, now_ms)

    def _end(self, why: str, now_ms: int) -> None:
        why = f"the tap's journal is not followed any more, {why}: open the view again"
        self._write_trouble(why, why, now_ms)
        self.ended = True

    def _write_trouble(self, trouble: str, event: str, now_ms: int) -> None:
        self.trouble = trouble
        self._last_ms = max(self._last_ms, now_ms + self.ahead_ms)
        self._journal.record(self._last_ms, -1, ObservationDisturbed(event))
