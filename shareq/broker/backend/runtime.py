"""The runtime of a cluster on a backend: metadata, coordinators, persister, and a node for each broker."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.coordinators import Carriers, Coordinators
from shareq.broker.backend.group_configs import FENCE, GroupConfigs
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.node import BackendNode
from shareq.broker.backend.services import Exchanges, Services
from shareq.broker.backend.shard_log import RETRY_MS, ShardLog
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC, IN_BACKEND
from shareq.broker.broker import PERSISTER_CLASS
from shareq.broker.cluster_runtime import CLIENT, Done
from shareq.broker.controller import Controller
from shareq.broker.host import Host
from shareq.broker.loop import EventLoop
from shareq.broker.network import Network
from shareq.broker.placement import NO_ERROR
from shareq.broker.storage import Storage
from shareq.model.actor import Answer, Call, ClientContext, ImageChanged, Persist, Respond
from shareq.model.configs import BrokerConfig
from shareq.model.errors import IllegalStateException, KafkaError, KafkaException
from shareq.model.events import Event
from shareq.model.ids import TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Response
from shareq.model.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from shareq.persister import make_persister
from shareq.trace import Journal
from shareq.version import __version__

START_S = 60
"""How long the start waits for the backend, in seconds of the wall clock."""

SHARDS = {"offsets.topic.num.partitions": 4, "share.coordinator.state.topic.num.partitions": 4}
"""Partitions of the coordinators' topics. Each has a writer, so there are fewer than Kafka's 50; they are fixed when
the topics are created."""

_log = logging.getLogger("shareq.backend")

CONTEXT = ClientContext(client_id="shareq")


class BackendRuntime:
    """What runs on the event loop of such a cluster. `brokers` has a node for each broker of the backend."""

    def __init__(
        self,
        bootstrap_servers: str,
        config: Mapping[str, object],
        *,
        loop: EventLoop,
        journal: Journal,
        rng: random.Random,
        trace_messages: bool,
    ) -> None:
        broker_config = BrokerConfig({**SHARDS, **config})
        self._backend = bootstrap_servers
        self._loop = loop
        self._journal = journal
        self._rng = rng
        self.network = Network(loop, self.record, trace_messages=trace_messages and journal.enabled)
        self.client = BackendClient(bootstrap_servers, loop, self.fork_rng(), CONTEXT.client_id)
        self.versions: ApiVersionsResponse | None = None
        """The APIs and features of the backend."""
        self.superseded = False
        """True if another process has become the writer of a shard."""
        self.brokers: dict[int, BackendNode] = {}
        self.mirror = MetadataMirror(self.client, loop, broker_config, publish=self._publish, record=self.record)
        exchanges, persisted = Exchanges(), Exchanges()
        call: Carriers = {Call: lambda host, effect: self.network.call(host, effect, CONTEXT)}
        persister = make_persister(broker_config[PERSISTER_CLASS], 0, self.fork_rng())
        self._persister = Host("persister", persister, loop, {**call, Respond: persisted.respond}, self.record)

        def persist(host: Host, effect: Persist) -> None:
            def done(response: Response) -> None:
                loop.post(host.deliver, Answer(effect.id, response))

            loop.post(persisted.ask, self._persister, effect.request, CONTEXT, done)

        self._persist = persist
        self._coordinators = Coordinators(
            self.mirror,
            self.client,
            loop,
            self.fork_rng(),
            carriers={**call, Respond: exchanges.respond, Persist: persist},
            record=self.record,
            traced=journal.enabled,
            superseded=self._stand_down,
        )
        self._configs_log = ShardLog(TopicPartition(GROUP_CONFIGS_TOPIC, 0), FENCE, self.client, loop, self.mirror)
        self.group_configs = GroupConfigs(self._configs_log, self.mirror, self.record)
        self._services = Services(
            self._coordinators.groups,
            self._coordinators.states,
            self.group_configs,
            exchanges,
            mirror=self.mirror,
        )
        self._watcher: Callable[[int, bool], None] | None = None

    # ---- life --------------------------------------------------------------------------------------------------------

    def start_all(self) -> None:
        """Begin to read metadata, and the configurations of groups."""
        self._ask_versions()
        self.mirror.start()
        self.group_configs.load()

    def await_start(self) -> None:
        """Wait until share groups can be served. KafkaException if the backend does not answer."""
        limit_ms = START_S * 1000 * self._loop.scale  # type: ignore[attr-defined]    # a clock that runs has one
        if not self._loop.wait(lambda: self._ready, limit_ms):
            why = self.mirror.trouble or "its topics for share groups could not be read"
            text = f"backend={self._backend!r}: not ready within {START_S} s: {why}"
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, text))

    @property
    def _ready(self) -> bool:
        """True if the coordinators and the configurations of groups are loaded."""
        return self.versions is not None and self.group_configs.loaded and self._coordinators.ready

    def _ask_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name=CONTEXT.client_id, client_software_version=__version__)
        self.client.call_any(request, self._take_versions)

    def _take_versions(self, answer: Answer) -> None:
        if isinstance(answer.response, ApiVersionsResponse) and not answer.response.error_code:
            self.versions = answer.response
        else:
            self._loop.at(self._loop.now_ms() + RETRY_MS, self._ask_versions)

    def close(self) -> None:
        """End all actors, and close the connections to the backend."""
        self._loop.enter(self._end)
        self.client.close()

    def _end(self) -> None:
        self.mirror.close()
        self._configs_log.close()
        self._coordinators.die()
        self._persister.die()
        for node in self.brokers.values():
            node.die()

    # ---- brokers and logs, which are not here ------------------------------------------------------------------------

    @property
    def controller(self) -> Controller:
        """IllegalStateException: it is the backend's."""
        raise self._not_here()

    @property
    def storage(self) -> Storage:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here()

    def kill(self, broker_id: int) -> None:
        """IllegalStateException: the brokers are the backend's."""
        raise self._not_here(f"broker {broker_id}: ")

    start = stop = kill

    def _not_here(self, what: str = "") -> IllegalStateException:
        return IllegalStateException(f"{what}the brokers and logs of this cluster are those of {self._backend}")

    def _stand_down(self) -> None:
        """Serve share groups no longer: another process has become the writer of their logs."""
        if self.superseded:
            return
        self.superseded = True
        _log.error("another process serves the share groups of the backend now; this one passes requests on only")
        self._coordinators.resign()
        self.mirror.lose_leaders()
        for broker_id, node in self.brokers.items():  # clients do not wait for states that can no longer be written
            self.network.leave(broker_id)
            self.network.join(node)

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def _publish(self, image: ClusterImage) -> None:
        """Deliver a new image to all actors; a new broker of the backend gets a node."""
        for name in (*IN_BACKEND, GROUP_CONFIGS_TOPIC):
            self.mirror.create(name)
        self._persister.deliver(ImageChanged(image))
        self._coordinators.image_changed(image)
        for broker_id in image.brokers:
            if broker_id not in self.brokers:
                self.brokers[broker_id] = self._node(broker_id)
                self.network.join(self.brokers[broker_id])
                if self._watcher is not None:
                    self._watcher(broker_id, True)
            self.brokers[broker_id].image_changed(image)

    def _node(self, broker_id: int) -> BackendNode:
        return BackendNode(
            broker_id,
            self.client,
            self._services,
            persist=self._persist,
            loop=self._loop,
            network=self.network,
            stale=self.mirror.stale,
            record=lambda event: self._journal.record(self._loop.now_ms(), broker_id, event),
            traced=self._journal.enabled,
        )

    def watch(self, watcher: Callable[[int, bool], None]) -> None:
        """Call `watcher(broker_id, alive)` for a new broker. Replaces the previous watcher."""
        self._watcher = watcher

    def readdress(self, addresses: Mapping[int, tuple[str, int]]) -> None:
        """Show these hosts and ports of brokers in the metadata."""
        self.mirror.readdress(addresses)

    # ---- the present state, and changes of it ------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The metadata, as last read from the backend."""
        return self.mirror.image

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, broker in self.image.brokers.items() if broker.alive)

    def create_topic(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str], done: Done
    ) -> None:
        """Create a topic of the backend; `done` gets the outcome when the image shows it."""
        topic = CreateTopicsRequest.Topic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=tuple(configs.items()),
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

        self.client.call(self.image.controller_id, CreateTopicsRequest(topics=(topic,)), created)

    def configure_group(self, group_id: str, configs: Mapping[str, str | None], done: Done) -> None:
        """Store configurations of a group; `done` gets the outcome."""
        self.group_configs.alter(group_id, configs, done)

    # ---- journal, random generators ----------------------------------------------------------------------------------

    def fork_rng(self) -> random.Random:
        """A new generator, seeded from the cluster's."""
        return random.Random(self._rng.getrandbits(64))

    def record(self, event: Event) -> None:
        """Record an event of a client or of the cluster as a whole."""
        self._journal.record(self._loop.now_ms(), CLIENT, event)
