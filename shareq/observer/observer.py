"""The observer's public class: a journal that grows while a Kafka cluster is observed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from shareq.client.config import connection_config
from shareq.client.event_listeners import listen
from shareq.html import Html, Table, html, strong
from shareq.model.errors import ConfigException
from shareq.model.events import DurableStateRead
from shareq.model.transport import Connection
from shareq.observer.core import ObserverCore
from shareq.observer.journal_writer import JournalWriter
from shareq.observer.log_writer import LogWriter
from shareq.observer.poller import Poller, checked_interval, state_html
from shareq.observer.timed_journal import TimedJournal
from shareq.trace import Journal, View, group_view, view
from shareq.transports import transport_for

MIN_INTERVAL_MS = 10


class Observer(Poller):
    """Observes one share group of a cluster with Kafka's protocol, and changes nothing; `observe` creates one.

    `journal` holds the observed events: views, strips and plots take an observer where they take a cluster. The durable
    state of a share-partition is known. The holder of a record is known if it is a consumer of this process, over TCP;
    other locks are not guessed. A cluster that does not respond is polled again until `close()`, the end of a `with`
    block, or the end of the last reference to the observer.
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
        config: Mapping[str, Any] | None = None,
    ) -> None:
        transport = transport_for(bootstrap_servers, connection_config(bootstrap_servers, config))
        self.bootstrap_servers, self.group, self.topics = bootstrap_servers, group, topics
        self.journal = Journal(capacity=capacity)
        timed = TimedJournal(self.journal)
        self._writer = writer = JournalWriter(timed, LogWriter(timed), group)
        core = ObserverCore(
            bootstrap_servers, group, topics, writer=writer, rng=transport.rng(), interval_ms=interval_ms
        )
        connection = transport.connect(core, "observer")
        self.journal.origin_ms = connection.now_ms()
        super().__init__(core, connection, _end, connection, listen(writer.write_client_event))

    # ---- polling -----------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """The reason why the last poll was incomplete; empty if it was complete."""
        return self._writer.trouble

    def refresh(self, timeout: float = 30) -> bool:
        """Poll now, and wait until the journal holds the state that the cluster had when this was called.

        False if that fails: `trouble` has the reason, unless `timeout` seconds have passed.
        """
        return self._poll(timeout) and not self.trouble

    def view(self, topic: str, partition: int = 0) -> View:
        """The view of one share-partition."""
        return view(self, self.group, topic, partition)

    def places(self) -> list[tuple[str, int]]:
        """The observed share-partitions, (topic, partition) each."""
        events = [entry.event for entry in self.journal.select(DurableStateRead)]
        return sorted({(e.topic, e.partition) for e in events if isinstance(e, DurableStateRead)})

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.trouble or "watching"
        return f"Observer({self.bootstrap_servers}, {self.group}: {state}, {len(self.journal):,} events)"

    def tables(self) -> Iterator[Table]:
        """One row for each observed share-partition."""
        group = group_view(self, self.group)
        state = state_html(closed=self.closed, trouble=self.trouble, well="watching")
        members = ", ".join(member.client_id or member.member_id for member in group.members.values()) or "none"
        columns = ("partition", "leader", "SPSO", "log end", "lag", *COUNTED)
        rows = [self._row(*place) for place in self.places()]
        head = Html(f"{strong(self.group)} on {html(self.bootstrap_servers)} · {state} · members: {html(members)}")
        yield Table(columns, rows, caption=head)

    def _row(self, topic: str, partition: int) -> tuple[object, ...]:
        state = self.view(topic, partition).state()
        counts: Counter[str] = Counter()
        for first, end, status in state.runs:
            counts[status.name] += end - first
        place = f"{topic}-{partition}"
        spso = state.spso if state.loaded else None
        return (place, state.leader, spso, state.log_end, state.lag, *(counts[kind] for kind in COUNTED))


COUNTED = ("acquired", "acknowledged", "archived", "returned", "unknown")
"""The columns of `Observer.tables` that count records by status."""


def _end(connection: Connection, stop_listening: Callable[[], None]) -> None:
    stop_listening()
    connection.close()


def observe(
    bootstrap_servers: str,
    group: str,
    topics: Iterable[str] | None = None,
    *,
    interval_ms: int = 500,
    capacity: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> Observer:
    """Observe a share group from outside, with a poll every `interval_ms`.

    `topics` None: all topics that the group is subscribed to or has offsets of. `capacity`: number of newest events to
    keep (None: all), for observations of days. `config`: how to connect, in confluent-kafka's keys, such as
    `security.protocol`. KafkaException for an invalid address or `config`, ConfigException for other invalid arguments;
    a cluster that does not respond is an event in the observer's journal.
    """
    if not isinstance(group, str) or not group:
        raise ConfigException(f"group={group!r}: must be a non-empty name")
    if isinstance(topics, (str, bytes)):
        raise ConfigException(f"topics={topics!r}: must be a list of names")
    names = None if topics is None else tuple(topics)
    if names is not None and not all(isinstance(name, str) and name for name in names):
        raise ConfigException(f"topics={names!r}: must be non-empty names")
    interval_ms = checked_interval(interval_ms, MIN_INTERVAL_MS)
    return Observer(bootstrap_servers, group, names, interval_ms=interval_ms, capacity=capacity, config=config)
