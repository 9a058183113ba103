"""The runtime of a cluster on a backend: metadata, membership, coordinators, persister, nodes (rules: BEHAVIOUR.md)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from functools import partial

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.coordinators import Carriers, Coordinators
from shareq.broker.backend.design_check import DesignCheck
from shareq.broker.backend.fences import stamped
from shareq.broker.backend.forwarding import View
from shareq.broker.backend.group_configs import FENCE, SHARD, GroupConfigs
from shareq.broker.backend.identity import own_identity
from shareq.broker.backend.membership import Membership
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.node import BackendNode
from shareq.broker.backend.nodes import Front, Nodes
from shareq.broker.backend.owners import Owners
from shareq.broker.backend.processes import Fleet
from shareq.broker.backend.services import PROCESS, Exchanges, Services
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.backend.shard_reads import RETRY_MS
from shareq.broker.cluster_runtime import CLIENT, Done
from shareq.broker.controller import Controller
from shareq.broker.host import Host
from shareq.broker.loop import EventLoop
from shareq.broker.network import Network
from shareq.broker.placement import NO_ERROR
from shareq.broker.storage import Storage
from shareq.client.patience import await_sign
from shareq.model.actor import Answer, Appended, AppendRecords, Call, ImageChanged, Persist, Respond
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import Event
from shareq.model.gauges import Gauge, summed
from shareq.model.ids import random_id
from shareq.model.image import Addresses, ClusterImage
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Response
from shareq.model.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from shareq.model.state_designs import PERSISTER_CLASS, design_of
from shareq.persister import Retries, make_persister
from shareq.trace import Journal
from shareq.version import __version__

START_S = 60
"""How long the start waits for the backend, in seconds of the wall clock."""

DEFAULTS = {
    "offsets.topic.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4,
    "group.share.initialize.retry.interval.ms": 5_000,
}
"""Configurations that differ from Kafka's: fewer partitions of the coordinators' topics, since each has a writer; they
are fixed when the topics are created. And how soon an initialization of a killed process is repeated by another."""

RETRIES = Retries(attempts=60, backoff_ms=100, max_backoff_ms=500)
"""Those of the persister: a shard has another leader at once, and its former one may be in another process."""

ALONE_S = 10
"""How long the start waits until the process that works on the backend is served, in seconds of the wall clock."""

LEAVE_S = 1
"""How long `close` waits for the group of processes, in seconds of the wall clock."""

_log = logging.getLogger("shareq.backend")


class BackendRuntime:
    """What runs on the event loop of such a cluster. `brokers` has a node for each broker of the backend."""

    def __init__(
        self,
        bootstrap_servers: str,
        config: Mapping[str, object],
        backend_config: Mapping[str, object],
        peer_config: Mapping[str, object],
        *,
        loop: EventLoop,
        journal: Journal,
        rng: random.Random,
        trace_messages: bool,
    ) -> None:
        broker_config = BrokerConfig({**DEFAULTS, **config})
        self._backend = bootstrap_servers
        self._loop = loop
        self._journal = journal
        self._rng = rng
        self._reached_ms = loop.time_ms()
        self._persister_class = broker_config[PERSISTER_CLASS]
        self.network = Network(loop, self.record, trace_messages=trace_messages and journal.enabled)
        self.client = BackendClient(bootstrap_servers, loop, self.fork_rng(), PROCESS.client_id, backend_config)
        self._peers = BackendClient(bootstrap_servers, loop, self.fork_rng(), PROCESS.client_id, peer_config)
        self.mirror = MetadataMirror(self.client, loop, broker_config, publish=self._publish, record=self.record)
        self.membership = Membership(
            self.client,
            random_id(random.Random()),  # processes with equal seeds differ
            draw_term=self._draw_term,
            assigned=self._assigned,
            lost=self._removed,
            identity=own_identity(),
            configs={key: str(value) for key, value in broker_config.overrides.items()},
        )
        self._design = DesignCheck(design_of(self._persister_class), self.client, loop)
        self._terms = ShardLog(SHARD, FENCE, self.client, loop, self.mirror)
        self.nodes = Nodes(self.mirror, self.network, self._peers, self._node)
        self.front = Front(self.mirror, self.network, knows_secured_peers=bool(peer_config), gauges=self.gauges)
        self.owners = Owners(self.mirror, self.network)
        self.group_configs = GroupConfigs(
            self.client,
            loop,
            self.mirror,
            record=self.record,
            ask_writer=self.owners.ask_writer,
            when_held=self.membership.when_held,
        )
        self._call: Carriers = {Call: lambda host, effect: self.network.call(host, effect, PROCESS)}
        self._persister, self._coordinators, self._services = self._employ()

    def _employ(self) -> tuple[Host, Coordinators, Services]:
        """New actors of this process: a persister, and coordinators without shards."""
        exchanges, persisted = Exchanges(), Exchanges()
        persister = make_persister(self._persister_class, 0, self.fork_rng(), RETRIES)
        persisting = Host("persister", persister, self._loop, {**self._call, Respond: persisted.respond}, self.record)

        def persist(host: Host, effect: Persist) -> None:
            def done(response: Response) -> None:
                self._loop.post(host.deliver, Answer(effect.id, response))

            self._loop.post(persisted.ask, persisting, stamped(effect.request, self._term), PROCESS, done)

        self._persist = persist
        coordinators = Coordinators(
            self.mirror,
            self.client,
            self._loop,
            self.fork_rng(),
            carriers={**self._call, Respond: exchanges.respond, Persist: persist},
            record=self.record,
            traced=self._journal.enabled,
            leads=self.mirror.leads,
            when_held=self.membership.when_held,
            require_term=self.membership.require_term,
        )
        services = Services(
            coordinators.groups,
            coordinators.states,
            self.group_configs,
            exchanges,
            mirror=self.mirror,
            ask_leader=self.owners.ask_leader,
        )
        return persisting, coordinators, services

    # ---- life --------------------------------------------------------------------------------------------------------

    def start_all(self) -> None:
        """Begin to read metadata, and join the processes on the backend."""
        self._ask_versions()
        self.mirror.refresh(lambda: self._design.begin(self.membership.start))
        self.mirror.start()

    def await_start(self) -> None:
        """Wait until share groups can be served. KafkaException if the backend does not answer, if it refuses this
        process, or if another process works there that is not served. ConfigException if there are states of another
        persister."""
        end_ms = self._loop.time_ms() + START_S * 1000 * self._scale
        refusal, scale = (lambda: self.mirror.trouble), self._scale
        heard = lambda: bool(self.mirror.backend_brokers) or self._decided()  # noqa: E731
        await_sign(self._loop, heard, refusal, address=self._backend, limit_s=START_S, scale=scale)
        self._loop.wait(self._decided, end_ms - self._loop.time_ms())
        if self._design.refusal:
            raise ConfigException(self._design.refusal)
        if self._ready:
            return
        why = self.mirror.trouble or self.membership.trouble or "its topics for share groups could not be read"
        text = f"backend={self._backend!r}: not ready within {START_S} s: {why}"
        if refused := self.mirror.refused:
            raise KafkaException(KafkaError(refused, f"backend={self._backend!r}: {why}"))
        if self._shut_out():
            why = "another process works on it that cannot be reached, because it is not served: serve that one first"
            text = f"backend={self._backend!r}: {why} (cluster.serve()), or close it"
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, text))

    def _decided(self) -> bool:
        """True if share groups can be served, and if it is certain that they cannot."""
        return self._ready or bool(self._design.refusal or self.mirror.refused) or self._shut_out()

    @property
    def _scale(self) -> float:
        return self._loop.scale  # type: ignore[attr-defined, no-any-return]    # a clock that runs has one

    @property
    def _ready(self) -> bool:
        """True if the configurations of groups, and the shards that this process leads, are loaded."""
        known = self.front.versions is not None and self.mirror.fleet is not None
        return known and self._reaches_leaders and self.group_configs.loaded and self._coordinators.ready

    @property
    def _reaches_leaders(self) -> bool:
        """False if another process leads and is not served."""
        fleet = self.mirror.fleet
        return fleet is None or self.mirror.slot in fleet.workers or any(one.addresses for one in fleet.processes)

    def _shut_out(self) -> bool:
        """True if the process that leads had its time to be served."""
        now_ms = self._loop.time_ms()
        if self._reaches_leaders:
            self._reached_ms = now_ms
        return now_ms - self._reached_ms >= ALONE_S * 1000 * self._scale

    def _ask_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="shareq", client_software_version=__version__)
        self.client.call_any(request, self._take_versions)

    def _take_versions(self, answer: Answer) -> None:
        if isinstance(answer.response, ApiVersionsResponse) and not answer.response.error_code:
            self.front.versions = answer.response
        else:
            self._loop.at(self._loop.time_ms() + RETRY_MS, self._ask_versions)

    def close(self) -> None:
        """End all actors, leave the processes on the backend, and close the connections."""
        self._loop.enter(self._end)
        self._loop.wait(lambda: self.membership.left, LEAVE_S * 1000 * self._scale)
        self.client.close()
        self._peers.close()

    def _end(self) -> None:
        self.mirror.close()
        self.group_configs.close()
        self._terms.close()
        self._coordinators.die()
        self._persister.die()
        self.nodes.die()
        self.membership.leave()

    def gauges(self) -> Mapping[Gauge, int]:
        """The sums of all that this process leads."""
        with self._loop.lock:
            return summed([self._coordinators, *self.nodes.own.values()])

    # ---- brokers and logs, which are not here ------------------------------------------------------------------------

    @property
    def controller(self) -> Controller:
        """IllegalStateException: it is the backend's."""
        raise self._not_here()

    @property
    def storage(self) -> Storage:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here()

    def clean_logs(self) -> None:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here()

    def kill(self, broker_id: int) -> None:
        """IllegalStateException: the brokers are the backend's."""
        raise self._not_here(f"broker {broker_id}: ")

    start = stop = kill

    def _not_here(self, what: str = "") -> IllegalStateException:
        return IllegalStateException(f"{what}the brokers and logs of this cluster are those of {self._backend}")

    # ---- the processes on the backend --------------------------------------------------------------------------------

    @property
    def _term(self) -> int:
        return self.mirror.fleet.term if self.mirror.fleet is not None else 0

    def _draw_term(self, done: Callable[[int], object]) -> None:
        """Find a term that is greater than all before: the offset of a record."""

        def appended(result: Appended) -> None:
            if result.error:
                self._loop.at(self._loop.time_ms() + RETRY_MS, lambda: self._draw_term(done))
            else:
                done(result.base_offset)

        self._terms.append(AppendRecords(0, SHARD, (FENCE,)), appended)

    def _assigned(self, fleet: Fleet) -> None:
        """Lead what the fleet gives to this process, and no longer what it gives to others."""
        slots = ", ".join(str(process.slot) for process in fleet.processes)
        _log.info("term %s: slots %s on the backend", fleet.term, slots)
        self.mirror.follow(fleet, self.membership.process.id)

    def _removed(self) -> None:
        """Forget all that this process has led: others may lead it now."""
        _log.error("the processes on the backend have gone on without this one, which begins anew")
        self.group_configs.close()
        self._coordinators.die()
        self._persister.die()
        self._persister, self._coordinators, self._services = self._employ()
        self.mirror.lose_leaders()
        self.nodes.renew_own()

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def _publish(self, image: ClusterImage) -> None:
        """Deliver a new image to all actors."""
        self._persister.deliver(ImageChanged(image))
        self._coordinators.image_changed(image)
        if self.mirror.fleet is not None:
            self.nodes.image_changed(image)
            self.group_configs.image_changed()

    def _node(self, node: int) -> BackendNode:
        return BackendNode(
            node,
            self.client,
            self._services,
            config=self.image.broker_config,
            persist=self._persist,
            when_held=self.membership.when_held,
            when_known=self.mirror.when_known,
            view=self._view,
            loop=self._loop,
            network=self.network,
            rng=self.fork_rng(),
            stale=self.mirror.stale,
            record=partial(self._record_at, node),
            traced=self._journal.enabled,
        )

    def _view(self) -> View:
        fleet = self.mirror.fleet
        assert fleet is not None, "nodes have a fleet"
        slot = self.mirror.slot if self.mirror.slot in fleet.workers else fleet.workers[0]
        return View(self.image, fleet, slot)

    def watch(self, watcher: Callable[[int, bool], None]) -> None:
        """Call `watcher(broker_id, alive)` for a new broker. Replaces the previous watcher."""
        self.nodes.watcher = watcher

    def readdress(self, addresses: Addresses, listeners: Mapping[str, Addresses]) -> None:
        """Show these hosts and ports of this process, by broker of the backend, and those of each listener by its name.
        No address at all: it is not served."""
        self.mirror.readdress(addresses, listeners)
        self.membership.readdress(addresses, listeners)

    # ---- the present state, and changes of it ------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The metadata, as last read from the backend."""
        return self.mirror.image

    @property
    def brokers(self) -> Mapping[int, BackendNode]:
        """The nodes of this process."""
        return self.nodes.own

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, broker in self.image.brokers.items() if broker.alive)

    def create_topic(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str], done: Done
    ) -> None:
        """Create a topic of the backend; `done` gets the outcome when the image shows it."""
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=partitions, replication_factor=replication_factor, configs=tuple(configs.items())
        )

        def created(answer: Answer) -> None:
            response = answer.response
            if not isinstance(response, CreateTopicsResponse):
                done((answer.error, answer.reason or f"{self._backend} does not answer"))
                return
            (one,) = response.topics
            if one.error_code:
                done((one.error_code, one.error_message))
            else:
                self.mirror.when(lambda image: name in image.topics, lambda: done(NO_ERROR))

        self.client.call(self.mirror.controller_id, CreateTopicsRequest(topics=(topic,)), created)

    def configure_group(self, group_id: str, configs: Mapping[str, str | None], done: Done) -> None:
        """Store configurations of a group; `done` gets the outcome."""
        self.group_configs.alter(group_id, configs, done)

    # ---- journal, random generators ----------------------------------------------------------------------------------

    def fork_rng(self) -> random.Random:
        """A new generator, seeded from the cluster's."""
        return random.Random(self._rng.getrandbits(64))

    def record(self, event: Event) -> None:
        """Record an event of a client or of the cluster as a whole."""
        self._record_at(CLIENT, event)

    def _record_at(self, broker_id: int, event: Event) -> None:
        self._journal.record(self._loop.time_ms(), broker_id, event)
