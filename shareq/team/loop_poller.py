"""Polls a share consumer in events of its cluster's loop: for simulations, and for teams of consumers at work."""

from __future__ import annotations

from collections.abc import Callable

from shareq.broker import Cluster
from shareq.broker.transport import InProcessConnection
from shareq.consumer import Messages, ShareConsumer
from shareq.model.errors import ConcurrentModificationException, IllegalStateException, KafkaException

IDLE_POLL_MS = 60_000
"""A consumer without records polls at this interval, so that it does not exceed max.poll.interval.ms."""

RETRY_MS = 100
"""The wait after a poll that raised."""


class LoopPoller:
    """Polls `consumer` as soon as it has records, and passes them to `take` in an event of the loop.

    `take` uses `after` for the time that the work needs, acknowledges, and calls `poll` when it is done. A frozen
    client does its work after `unfreeze`; a crashed one never does. `on_error` gets the KafkaException of a poll, which
    is repeated later; None: it is raised.

    Each poll is a timer of its own, not a call inside another event, so that polls of many consumers do not nest.
    """

    def __init__(
        self,
        cluster: Cluster,
        consumer: ShareConsumer,
        take: Callable[[Messages], object],
        on_error: Callable[[KafkaException], object] | None = None,
    ) -> None:
        connection = consumer.connection
        if not (isinstance(connection, InProcessConnection) and connection.belongs_to(cluster)):
            raise IllegalStateException(f"{consumer!r} is not a client of {cluster.bootstrap_servers}")
        self._loop = cluster.loop
        self._consumer = consumer
        self._connection = connection
        self._take = take
        self._on_error = on_error
        self._stopped = False
        self._waiting = False
        """True while the consumer has no record and no poll is scheduled."""
        self._held: list[Callable[[], object]] = []
        """The calls that fell due while the client was frozen."""
        connection.watch(self._look)
        self.after(IDLE_POLL_MS, self._poll_idle)

    @property
    def at_work(self) -> bool:
        """True until the consumer is stopped or has crashed."""
        return not self._stopped and self._connection.alive

    @property
    def frozen(self) -> bool:
        """True while the client is frozen."""
        return self._connection.frozen

    def stop(self) -> None:
        """Poll no more, and drop all scheduled work. The consumer stays open."""

        def end() -> None:
            self._stopped = True
            self._connection.watch(None)

        self._loop.enter(end)

    def after(self, ms: float, call: Callable[[], object]) -> None:
        """Run `call` after `ms` of the cluster's time, unless the consumer is stopped or has crashed by then."""
        self._loop.at(self._loop.time_ms() + int(ms), lambda: self._run(call))

    def _run(self, call: Callable[[], object]) -> None:
        if self.frozen:
            self._held.append(call)
        elif self.at_work:
            self._loop.as_event(call)

    # ---- polls -------------------------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Poll in an event of the loop, now; without records, as soon as there are some."""
        self._waiting = False
        self.after(0, self._poll)

    def _poll(self) -> None:
        try:
            messages = self._consumer.poll(0)
        except ConcurrentModificationException:  # another thread is inside the consumer, on a running clock
            self.after(RETRY_MS, self._poll)
            return
        except KafkaException as error:
            if self._on_error is None:
                raise
            self._on_error(error)
            self.after(RETRY_MS, self._poll)
            return
        if messages:
            self._take(messages)
        else:
            self._waiting = True

    def _poll_idle(self) -> None:
        if self._waiting:
            self.poll()
        self.after(IDLE_POLL_MS, self._poll_idle)

    def _look(self) -> None:
        """After a message that the client has handled, and after `unfreeze`."""
        if not self.frozen and self._held:
            held, self._held = self._held, []
            for call in held:
                self.after(0, call)
        if self._waiting and self.at_work:
            self._look_for_records()

    def _look_for_records(self) -> None:
        try:
            ready = self._consumer.ready()
        except ConcurrentModificationException:
            ready = True  # the poll finds out
        if ready:
            self.poll()
