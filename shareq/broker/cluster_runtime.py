"""The runtime of a `Cluster`: broker processes, controller, logs and network.

All of it runs on the loop; calls from other threads go through `loop.enter`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from shareq.broker.broker import Broker
from shareq.broker.controller import Controller
from shareq.broker.host import raise_failed
from shareq.broker.loop import EventLoop
from shareq.broker.message_faults import MessageFaults
from shareq.broker.network import Network
from shareq.broker.placement import ErrorWithMessage
from shareq.broker.storage import Storage
from shareq.model.actor import isolated
from shareq.model.configs import BrokerConfig
from shareq.model.events import Event
from shareq.model.gauges import Gauge, summed
from shareq.model.image import Addresses, BrokerImage, ClusterImage, listeners_of
from shareq.model.scram import UserChanges
from shareq.trace import Journal

CLEAN_INTERVAL_MS = 300_000
"""The interval of retention and compaction (Kafka: `log.retention.check.interval.ms`)."""

CLIENT = -1
"""The broker id in the journal for events of clients and of the cluster as a whole."""

Done = Callable[[ErrorWithMessage], object]

_FIRST_PORT = 9092


class _Front:
    """The brokers for a server: all."""

    versions = None
    """There is no backend."""

    knows_secured_peers = True
    """There are no other processes."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self.call, self.disconnect = runtime.network.call, runtime.network.disconnect
        self._runtime = runtime

    @property
    def brokers(self) -> dict[int, bool]:
        """Id -> whether the broker is running."""
        return {broker_id: broker_id in self._runtime.brokers for broker_id in self._runtime.image.brokers}

    def node_of(self, broker_id: int) -> int:
        """The id by which clients know a broker: its own."""
        return broker_id

    def gauges(self) -> Mapping[Gauge, int]:
        """Values of Kafka's metrics that follow from no event, as they are now."""
        return self._runtime.gauges()

    def alter_users(self, changes: UserChanges) -> None:
        """Set or remove credentials."""
        self._runtime.controller.alter_users(changes)


class ClusterRuntime:
    """The live brokers by id, the controller, the logs, the network. All random generators are forked from `rng`.

    `racks`: one entry per broker.
    """

    def __init__(
        self,
        racks: Sequence[str | None],
        config: BrokerConfig,
        *,
        loop: EventLoop,
        journal: Journal,
        rng: random.Random,
        latency_ms: int,
        trace_messages: bool,
    ) -> None:
        self._loop = loop
        self._journal = journal
        self._rng = rng
        self.storage = Storage(self.record)
        chance = random.Random()
        chance.setstate(rng.getstate())  # faults that are never used must not change what else is random
        self.message_faults = MessageFaults(chance, self.record, range(len(racks)))
        self.network = Network(
            loop,
            self.record,
            self.message_faults,
            latency_ms=latency_ms,
            trace_messages=trace_messages and journal.enabled,
        )
        images = {
            b: BrokerImage(broker_id=b, host="127.0.0.1", port=_FIRST_PORT + b, rack=rack)
            for b, rack in enumerate(racks)
        }
        self.controller = Controller(
            images, config, self.fork_rng(), now_ms=loop.time_ms, publish=self._publish, record=self.record
        )
        self.brokers: dict[int, Broker] = {}
        self.front = _Front(self)
        self._watchers: list[Callable[[int, bool], None]] = []

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def start_all(self) -> None:
        for broker_id in self.controller.image.brokers:
            self.start(broker_id)
        self._clean_later()

    def start(self, broker_id: int) -> None:
        """Start a broker process; its state is loaded from the logs."""
        broker = Broker(
            broker_id,
            loop=self._loop,
            network=self.network,
            controller=self.controller,
            storage=self.storage,
            rng=self.fork_rng(),
            record=self._record,
            traced=self._journal.enabled,
        )
        self.brokers[broker_id] = broker
        self.network.join(broker)
        self.controller.broker_started(broker_id)
        self._notify(broker_id, True)

    def kill(self, broker_id: int) -> None:
        """Kill a broker process: its connections break before leadership moves."""
        self._forget(broker_id)
        self.controller.broker_stopped(broker_id, killed=True)

    def stop(self, broker_id: int) -> None:
        """Stop a broker process in an orderly way: leadership moves first."""
        self.controller.broker_stopped(broker_id, killed=False)
        self._loop.post(self._forget, broker_id)

    def _forget(self, broker_id: int) -> None:
        self.brokers.pop(broker_id).die()
        self.network.leave(broker_id)
        self._notify(broker_id, False)

    def watch(self, watcher: Callable[[int, bool], None]) -> None:
        """Call `watcher(broker_id, alive)` when a broker starts or stops. Replaces the previous watcher."""
        self._watchers[:] = [watcher]

    def _notify(self, broker_id: int, alive: bool) -> None:
        for watcher in self._watchers:
            watcher(broker_id, alive)

    def await_start(self) -> None:
        """All brokers serve clients when `start_all` returns."""

    def close(self) -> None:
        """There is nothing to close."""

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def readdress(self, addresses: Addresses, listeners: Mapping[str, Addresses]) -> None:
        """Publish new hosts and ports of brokers in the metadata, and those of each listener by its name."""
        image = self.controller.image
        moved = {
            b: replace(image.brokers[b], host=host, port=port, listeners=listeners_of(b, listeners))
            for b, (host, port) in addresses.items()
        }
        brokers = MappingProxyType({**image.brokers, **moved})
        self.controller.image = replace(image, version=image.version + 1, brokers=brokers)
        self._publish(self.controller.image)

    def _publish(self, image: ClusterImage) -> None:
        self.storage.image_changed(image)
        for broker in list(self.brokers.values()):
            self._loop.post(broker.image_changed, image)

    # ---- the present state, and changes of it ---------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        return tuple(sorted(self.brokers))

    def create_topic(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str], done: Done
    ) -> None:
        done(self.controller.create_topic(name, partitions, replication_factor, configs)[0])

    def configure_group(self, group_id: str, configs: Mapping[str, str | None], done: Done) -> None:
        done(self.controller.alter_group_configs(group_id, configs))

    # ---- retention, random generators, journal -----------------------------------------------------------------------

    def _clean(self) -> None:
        self._clean_later()
        self.clean_logs()

    def clean_logs(self) -> None:
        """Run retention and compaction of all logs, and let brokers ask which records all groups have finished."""
        failed = self.storage.clean(self._loop.now_ms())
        for broker in list(self.brokers.values()):
            isolated(failed, broker.clean_by_groups)
        raise_failed(failed, self._loop)

    def _clean_later(self) -> None:
        self._loop.at(self._loop.time_ms() + CLEAN_INTERVAL_MS, self._clean)

    def gauges(self) -> Mapping[Gauge, int]:
        """The sums of all running brokers."""
        with self._loop.lock:
            return summed(self.brokers.values())

    def fork_rng(self) -> random.Random:
        """A new generator, seeded from the cluster's."""
        return random.Random(self._rng.getrandbits(64))

    def record(self, event: Event) -> None:
        """Record an event of a client or of the cluster as a whole."""
        self._record(CLIENT, event)

    def _record(self, broker_id: int, event: Event) -> None:
        self._journal.record(self._loop.time_ms(), broker_id, event)
