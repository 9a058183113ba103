"""The observer as a user holds it: a journal that grows by itself while somebody else's Kafka is at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self
from weakref import finalize

from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.events import DurableStateRead
from shareq.model.html import Html, html, strong, table
from shareq.model.transport import Connection, listen, transport_for
from shareq.observer.core import ObserverCore
from shareq.observer.telling import Teller
from shareq.trace import Journal, View, group_view, view

MIN_INTERVAL_MS = 10


class Observer:
    """Watches one share group of a cluster that speaks Kafka's protocol, and changes nothing; `observe` makes one.

    `journal` holds what has been seen: views, strips and plots take an observer where they take a cluster. What Kafka
    keeps of a share-partition is known. Who holds records is known of consumers of this process, over TCP; nobody
    else's locks are guessed. A cluster that does not answer is asked again until `close()`, or the end of a `with`
    block, or until nobody has the observer any more.
    """

    clock = "wall"

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        topics: tuple[str, ...] | None = None,
        *,
        interval_ms: int = 500,
        capacity: int | None = None,
    ) -> None:
        transport = transport_for(bootstrap_servers)
        self.bootstrap_servers, self.group, self.topics = bootstrap_servers, group, topics
        self.journal = Journal(capacity=capacity)
        self._teller = teller = Teller(self.journal, group)
        self._core = ObserverCore(
            bootstrap_servers, group, topics, teller=teller, rng=transport.rng(), interval_ms=interval_ms
        )
        self._connection = transport.connect(self._core, "observer")
        self.journal.origin_ms = self._connection.now_ms()
        self._end = finalize(self, _end, self._connection, listen(teller.heard))
        self._connection.run(self._core.look_now)

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The observer's clock, ms since the epoch."""
        return self._connection.now_ms()

    @property
    def closed(self) -> bool:
        return not self._end.alive

    @property
    def trouble(self) -> str:
        """Why the last look did not see all; empty where it did."""
        return self._teller.trouble

    def refresh(self, timeout: float = 30) -> bool:
        """Look now, and wait until all of it has been seen that was there when this was called.

        False where it could not be: `trouble` says why, or `timeout` seconds were over.
        """
        if self.closed:
            raise IllegalStateException("Observer closed")
        wanted = self._core.begun + 1
        self._connection.run(self._core.look_now)
        return self._connection.wait(lambda: self._core.ended >= wanted, timeout * 1000) and not self.trouble

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Let time go on until `until()` holds, at most `timeout` seconds; asked again whenever something is seen."""
        if self.closed:
            raise IllegalStateException("Observer closed")
        return self._connection.wait(until, timeout * 1000)

    def view(self, topic: str, partition: int = 0) -> View:
        """One share-partition, as it has been seen."""
        return view(self, self.group, topic, partition)

    def places(self) -> list[tuple[str, int]]:
        """The share-partitions that have been seen, (topic, partition) each."""
        events = [entry.event for entry in self.journal.select(DurableStateRead)]
        return sorted({(e.topic, e.partition) for e in events if isinstance(e, DurableStateRead)})

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop looking; what has been seen stays. Repeatable."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.trouble or "watching"
        return f"Observer({self.bootstrap_servers}, {self.group}: {state}, {len(self.journal):,} events)"

    def _repr_html_(self) -> str:
        group = group_view(self, self.group)
        state = strong("closed") if self.closed else strong(self.trouble) if self.trouble else html("watching")
        members = ", ".join(member.client_id or member.member_id for member in group.members.values()) or "none"
        columns = ("partition", "leader", "SPSO", "log end", "lag", *KINDS)
        rows = [self._row(*place) for place in self.places()]
        head = Html(f"{strong(self.group)} on {html(self.bootstrap_servers)} · {state} · members: {html(members)}")
        return table(columns, rows, caption=head)

    def _row(self, topic: str, partition: int) -> tuple[object, ...]:
        state = self.view(topic, partition).state()
        counts: Counter[str] = Counter()
        for first, end, cell in state.runs:
            counts[cell.name] += end - first
        place = f"{topic}-{partition}"
        spso = state.spso if state.loaded else None
        return (place, state.leader, spso, state.log_end, state.lag, *(counts[kind] for kind in KINDS))


KINDS = ("acquired", "acknowledged", "archived", "returned", "unknown")


def _end(connection: Connection, deafen: Callable[[], None]) -> None:
    deafen()
    connection.close()


def observe(
    bootstrap_servers: str,
    group: str,
    topics: Iterable[str] | None = None,
    *,
    interval_ms: int = 500,
    capacity: int | None = None,
) -> Observer:
    """Watch a share group from outside, looking every `interval_ms`.

    `topics` None: all that the group is subscribed to or has offsets of. `capacity`: keep so many of the newest events
    (None: all), for those who watch for days. KafkaException for an address that is none,
    ConfigException for other absurd arguments; whether the cluster answers is told by the observer's journal.
    """
    if not isinstance(group, str) or not group:
        raise ConfigException(f"group={group!r}: must be a non-empty name")
    if isinstance(topics, (str, bytes)):
        raise ConfigException(f"topics={topics!r}: must be a list of names")
    names = None if topics is None else tuple(topics)
    if names is not None and not all(isinstance(name, str) and name for name in names):
        raise ConfigException(f"topics={names!r}: must be non-empty names")
    if isinstance(interval_ms, bool) or not isinstance(interval_ms, int) or interval_ms < MIN_INTERVAL_MS:
        raise ConfigException(f"interval_ms={interval_ms!r}: must be {MIN_INTERVAL_MS} or more")
    return Observer(bootstrap_servers, group, names, interval_ms=interval_ms, capacity=capacity)
