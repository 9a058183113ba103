"""The tap's public class: a proxy, and the journal of what passes it."""

from __future__ import annotations

import ssl as tls
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from shareq.client.config import connection_config
from shareq.html import Html, Table, Tables, html, strong
from shareq.model.closing import Closing
from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.numbers import plain
from shareq.observer.observer import MIN_INTERVAL_MS
from shareq.observer.poller import checked_interval, poll_once, state_html
from shareq.observer.timed_journal import TimedJournal
from shareq.proxy.relay_thread import RelayThread
from shareq.trace import Journal, View, view
from shareq.wire.client.client_host import TcpClientHost
from shareq.wire.client.tls import client_context


class Tap(Tables, Closing):
    """A transparent proxy in front of Apache Kafka, whose journal shows the share groups of all clients that connect
    through it; `tap` creates one.

    Clients use `bootstrap_servers`. The tap replaces the addresses of brokers in responses by its own and passes
    everything else as it is. `journal`: what it reads of the messages, usually 50 ms after they have passed, joined
    with what observers poll: views, strips and plots take a tap where they take a cluster. A group is in the journal
    from the first heartbeat of a member on, or from `follow(group)`.
    """

    clock = "wall"

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        interval_ms: int = 500,
        capacity: int | None = None,
        ssl: tls.SSLContext | None = None,
        config: Mapping[str, Any] | None = None,
        trace_messages: bool = False,
    ) -> None:
        self.upstream_servers = bootstrap_servers
        self.journal = Journal(TcpClientHost.now_ms(), capacity=capacity)
        timed = TimedJournal(self.journal)
        self._relay = RelayThread(
            timed,
            bootstrap_servers,
            host,
            port,
            interval_ms=interval_ms,
            tls=ssl,
            conf=connection_config(bootstrap_servers, config),
            trace_messages=trace_messages,
        )

    # ---- use ---------------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The tap's clock, ms since the epoch."""
        return self._relay.now_ms

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._relay.closed

    @property
    def failures(self) -> list[BaseException]:
        """Unhandled errors so far; each was logged, and its message has passed."""
        return list(self._relay.failures)

    @property
    def bootstrap_servers(self) -> str:
        """The value of a client's `bootstrap.servers`."""
        return self._relay.ports.bootstrap_servers

    @property
    def groups(self) -> list[str]:
        """The groups in the journal."""
        return self._relay.watch.groups

    @property
    def trouble(self) -> str:
        """The reason why the last poll of an observer was incomplete; empty if all were complete."""
        return self._relay.watch.trouble()

    @property
    def hint(self) -> str:
        """What a view without events shows: where clients connect, until the first one has; empty afterwards."""
        if self.closed or self._relay.used:
            return ""
        return f"no client has connected through the tap: connect to {self.bootstrap_servers}"

    def follow(self, group: str) -> None:
        """Observe a group before its first member is seen. A no-op for a group in the journal."""
        if not isinstance(group, str) or not group:
            raise ConfigException(f"group={group!r}: must be a non-empty name")
        self._relay.call(partial(self._relay.watch.follow, group))

    def view(self, group: str, topic: str, partition: int = 0) -> View:
        """The view of one share-partition."""
        return view(self, group, topic, partition)

    def refresh(self, timeout: float = 30) -> bool:
        """Poll all groups now, and wait until the journal has the results. False if one fails: `trouble` has the
        reason, unless `timeout` seconds have passed.
        """
        if self.closed:
            raise IllegalStateException("Tap closed")
        done = True
        for core, connection in self._relay.watch.observers():
            done &= poll_once(core, connection, timeout)
        self._relay.call(lambda: None)
        return done and not self.trouble

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the ports and all connections; the journal stays. Repeatable."""
        self._relay.close()

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self._relay.links)} connections"
        return f"Tap({self.bootstrap_servers}, {self.upstream_servers}, {state}, {len(self.journal):,} events)"

    def tables(self) -> Iterator[Table]:
        """One row for each broker."""
        links = list(self._relay.links.values())
        rows = [
            (
                broker_id,
                str(self._relay.ports.address(broker_id)),
                str(address),
                sum(link.broker_id == broker_id for link in links),
            )
            for broker_id, address in sorted(self._relay.ports.brokers.items())
        ]
        state = state_html(closed=self.closed, trouble=self.trouble, well="open")
        groups = ", ".join(self.groups) or "none yet"
        head = Html(f"{strong('Tap')} at {html(self.bootstrap_servers)} · {state} · groups: {html(groups)}")
        yield Table(("broker", "port of the tap", "broker's address", "connections"), rows, caption=head)


def tap(
    bootstrap_servers: str,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    interval_ms: int = 500,
    capacity: int | None = None,
    ssl: tls.SSLContext | bool | None = None,
    config: Mapping[str, Any] | None = None,
    trace_messages: bool = False,
) -> Tap:
    """Put a transparent proxy in front of a Kafka cluster, and journal its share groups.

    `port`: that of the first broker, others follow in the order of their ids; None: free ports. `interval_ms`: the
    interval at which each group's durable state is polled. `capacity`: number of newest events to keep (None: all).
    `ssl`: the context for TLS to the brokers; True: that of this machine's trusted certificates. Clients connect to the
    tap without TLS. `config`: how the tap connects, in confluent-kafka's keys. Its TLS is that of all connections, its
    login that of the tap's own requests: clients log in through the tap as themselves, by sasl_plaintext.
    `trace_messages`: the journal also has the messages that pass, of all clients, for the view `messages`; they are
    large. KafkaException if no broker answers, or for an invalid `config`; ConfigException for an invalid argument.
    """
    interval_ms = checked_interval(interval_ms, MIN_INTERVAL_MS)
    if ssl is not None and not isinstance(ssl, (bool, tls.SSLContext)):
        raise ConfigException(f"ssl={ssl!r}: must be an ssl.SSLContext, True or False")
    context = client_context() if ssl is True else ssl or None
    return Tap(
        bootstrap_servers,
        host=host,
        port=plain(port),
        interval_ms=interval_ms,
        capacity=capacity,
        ssl=context,
        config=config,
        trace_messages=trace_messages,
    )
