"""A node of this process: the leader of share-partitions, and the way to one broker of the backend."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.forwarding import View, to_backend, to_client
from shareq.broker.backend.leader_hints import without_other_processes
from shareq.broker.backend.log_reads import RETRY_MS, LogReads
from shareq.broker.backend.processes import backend_id
from shareq.broker.backend.refused_writes import unanswered
from shareq.broker.backend.services import OF_SHARE_GROUPS, Services
from shareq.broker.backend.shard_log import BEGIN_VERSION
from shareq.broker.dead_letters import DeadLetterWriter
from shareq.broker.host import Host, gauges_of
from shareq.broker.loop import EventLoop
from shareq.broker.network import Network
from shareq.leader import make_share_leader
from shareq.model.actor import (
    ANY_NODE,
    NEWEST_VERSION,
    Answer,
    Call,
    ClientContext,
    ConnectionClosed,
    DeadLettersEnded,
    FindOffset,
    ImageChanged,
    Incoming,
    LogGrew,
    Persist,
    ReadLog,
    Respond,
    SendDeadLetters,
    StopDeadLetters,
)
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.events import Event, LogStartMoved, RecordsAppended
from shareq.model.experiments import ENABLE
from shareq.model.gauges import Gauge
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.data import DeleteRecordsRequest, ProduceRequest
from shareq.model.messages.passed import PassedRequest
from shareq.model.messages.share_browse import BrowseShareGroupRequest
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_transactions import EndShareTransactionRequest, TxnShareAcknowledgeRequest
from shareq.model.messages.transactions import InitProducerIdRequest

REQUEST_TIMEOUT_MS = 600_000
"""The time-out of a client's request at the backend: a rebalance takes minutes."""


_TELEMETRY = frozenset({71, 72})
"""The API keys of GetTelemetrySubscriptions and PushTelemetry, which pass as bytes."""


def _is_repeated(request: Request) -> bool:
    """True for what clients ask of themselves, on connections that may have share sessions: the end of one would end
    the locks of its member's records."""
    return isinstance(request, MetadataRequest) or (
        isinstance(request, PassedRequest) and request.api_key in _TELEMETRY
    )


class BackendNode:
    """A receiver of requests. Share groups are served by this process, everything else by the backend's broker.

    `when_held(call)` delays what only the present leader may do, `when_known(ids, call)` what names topics that the
    image may lack. `view()` is the cluster as clients see it.
    """

    def __init__(
        self,
        broker_id: int,
        client: BackendClient,
        services: Services,
        *,
        config: BrokerConfig,
        persist: Callable[[Host, Persist], None],
        when_held: Callable[[Callable[[], object]], object],
        when_known: Callable[[Iterable[TopicId], Callable[[], object]], object],
        view: Callable[[], View],
        loop: EventLoop,
        network: Network,
        rng: random.Random,
        stale: Callable[[], object],
        record: Callable[[Event], None],
        traced: bool,
    ) -> None:
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self._client = client
        self._services = services
        self._loop = loop
        self._network = network
        self._when_held = when_held
        self._when_known = when_known
        self._late: dict[int, int] = {}
        """Exchange id -> connection id of the fetches that wait for topics to be known."""
        self._view = view
        self._backend_id = backend_id(broker_id)
        self._record = record
        self._traced = traced
        self._image = ClusterImage()
        self._offsets: dict[TopicIdPartition, tuple[int, int]] = {}
        carriers: dict[type, Callable[[Host, Any], None]] = {
            Respond: self._respond,
            Call: self._call,
            Persist: persist,
            ReadLog: self._read_log,
            FindOffset: lambda host, effect: self._reads.find_offset(effect, host.deliver),
            SendDeadLetters: lambda _, effect: loop.post(self._letters.deliver, effect),
            StopDeadLetters: lambda _, effect: loop.post(self._letters.deliver, effect),
            DeadLettersEnded: lambda _, effect: loop.post(self._leader.deliver, effect),
        }
        self._of_share_groups = (*OF_SHARE_GROUPS, *([BrowseShareGroupRequest] if config[ENABLE] else []))
        actor = make_share_leader(broker_id, config, traced=traced, sole=True, time_of_day=loop.time_of_day)
        self._reads = LogReads(self._backend_id, client, loop, stale=stale, moved=self._moved, waits=actor.awaits)
        self._leader = Host(f"{self.name}/share-leader", actor, loop, carriers, record)
        writer = DeadLetterWriter(rng, traced=traced, describes=True, time_of_day=loop.time_of_day)
        reads = {ReadLog: lambda host, effect: self._reads.read(effect, host.deliver, None)}
        self._letters = Host(f"{self.name}/dead-letter-writer", writer, loop, carriers | reads, record)

    def gauges(self) -> Counter[Gauge]:
        """Those of the share-partition leader."""
        return gauges_of([self._leader])

    # ---- requests ----------------------------------------------------------------------------------------------------

    def receive(self, exchange_id: int, request: Request, client: ClientContext) -> None:
        """Answer a request here, or pass it to the backend's broker. Markers of the backend's transactions do not reach
        the share coordinators here, so nothing can be acknowledged in one."""
        if isinstance(request, TxnShareAcknowledgeRequest | EndShareTransactionRequest):
            self._network.fail(self, exchange_id, Errors.UNSUPPORTED_VERSION)
        elif isinstance(request, self._of_share_groups):
            self._when_held(partial(self._receive, exchange_id, request, client))
        else:
            self._serve(exchange_id, request, client, self._answer)

    def _receive(self, exchange_id: int, request: Request, client: ClientContext) -> None:
        """Take a request to share groups, for which the lease is valid now; it must be so for the answer, too."""
        if isinstance(request, ShareFetchRequest) and self._lacks(request):
            self._late[exchange_id] = client.connection_id
            known = partial(self._when_held, partial(self._deliver_late, Incoming(exchange_id, request, client)))
            self._when_known([topic.topic_id for topic in request.topics], known)
        elif isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest | BrowseShareGroupRequest):
            self._leader.deliver(Incoming(exchange_id, request, client))
        else:
            self._serve(exchange_id, request, client, self._answer_if_held)

    def _lacks(self, request: ShareFetchRequest) -> bool:
        """True if the fetch names a topic that the leader does not know: its id would stay unknown in the session."""
        return any(topic.topic_id not in self._image.topics_by_id for topic in request.topics)

    def _deliver_late(self, fetch: Incoming) -> None:
        """Let the leader answer a fetch if its client is still there."""
        if self._late.pop(fetch.id, None) is not None:
            self._leader.deliver(fetch)

    def _serve(
        self, exchange_id: int, request: Request, client: ClientContext, answer: Callable[[int, Answer], object]
    ) -> None:
        forward = partial(self._forward, client, type(request))
        self._services.serve(request, client, partial(answer, exchange_id), forward)

    def _respond(self, host: Host, effect: Respond) -> None:
        del host
        response = without_other_processes(effect.response, self.broker_id)
        self._when_held(partial(self._network.answer, self, effect.id, response))

    def _answer_if_held(self, exchange_id: int, answer: Answer) -> None:
        self._when_held(partial(self._answer, exchange_id, answer))

    def _answer(self, exchange_id: int, answer: Answer) -> None:
        if answer.response is None:
            self._network.fail(self, exchange_id, answer.error)
        else:
            self._network.answer(self, exchange_id, answer.response)

    def _forward(
        self, client: ClientContext, asked: type[Request], request: Request, done: Callable[[Answer], object]
    ) -> None:
        """Send a request to the backend, each connection on a lane of its own; what the client has `asked` in the
        client's version, if the backend has it. What any broker can answer is sent to another one if the node's does
        not. A client that begins while the backend does not answer waits: it would take connections that end for a
        refusal."""
        lane = f"client-{client.connection_id}"

        def take(node: int, answer: Answer) -> None:
            if answer.response is not None:
                self._show(request, answer, answer.response, done)
            elif not answer.error.retriable:
                done(answer)
            elif _is_repeated(request):
                again = lambda: send(ANY_NODE) if self._client.has_lane(lane) else done(answer)  # noqa: E731
                self._loop.at(self._loop.time_ms() + RETRY_MS, again)
            elif isinstance(request, FindCoordinatorRequest) and node != ANY_NODE:
                send(ANY_NODE)
            elif isinstance(request, ProduceRequest):
                done(answer._replace(response=unanswered(request)))
            else:
                done(answer)

        def send(node: int) -> None:
            self._client.call(
                node,
                to_backend(request, self._image),
                partial(take, node),
                lane=lane,
                client_id=client.client_id,
                timeout_ms=REQUEST_TIMEOUT_MS,
                version=client.api_version if isinstance(request, asked) else NEWEST_VERSION,
            )

        send(self._backend_id)

    def _show(self, request: Request, answer: Answer, response: Response, done: Callable[[Answer], object]) -> None:
        """Answer with the backend's response, in which brokers become nodes. Metadata wait for the lease: without it,
        the process may know only the leaders of a former fleet."""

        def show() -> None:
            done(answer._replace(response=to_client(request, response, self._view())))

        if isinstance(request, DeleteRecordsRequest):
            self._reads.forget()
        if isinstance(request, MetadataRequest):
            self._when_held(show)
        else:
            show()

    def connection_closed(self, connection_id: int) -> None:
        for exchange_id in [late for late, connection in self._late.items() if connection == connection_id]:
            del self._late[exchange_id]
            self._network.fail(self, exchange_id, Errors.NETWORK_EXCEPTION)
        self._leader.deliver(ConnectionClosed(connection_id))
        self._client.close_lane(f"client-{connection_id}")

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def image_changed(self, image: ClusterImage) -> None:
        self._image = image
        self._reads.image_changed(image, self.broker_id)
        for at in [at for at in self._offsets if at.topic_id not in image.topics_by_id]:
            del self._offsets[at]
        self._leader.deliver(ImageChanged(image))
        self._letters.deliver(ImageChanged(image))

    def die(self) -> None:
        """End the actor and its reads."""
        self._late.clear()
        self._reads.close()
        self._leader.die()
        self._letters.die()

    def _call(self, host: Host, effect: Call) -> None:
        """Send an actor's request. The producers of dead letters begin no transactions: a version of InitProducerId
        that Kafka 3.9 has is enough for them."""
        version = BEGIN_VERSION if isinstance(effect.request, InitProducerIdRequest) else NEWEST_VERSION
        self._network.call(host, effect, ClientContext(client_id=self.name, api_version=version))

    # ---- logs --------------------------------------------------------------------------------------------------------

    def _read_log(self, host: Host, effect: ReadLog) -> None:
        at = effect.topic_partition
        self._reads.read(effect, host.deliver, lambda: host.deliver(LogGrew(at)))

    def _moved(self, at: TopicIdPartition, start: int, end: int) -> None:
        """Record how far the log has grown and what has been removed from it."""
        topic = self._image.topics_by_id.get(at.topic_id)
        if not self._traced or topic is None:
            return
        old_start, old_end = self._offsets.get(at, (start, start))
        self._offsets[at] = start, max(end, old_end)
        if start > old_start:
            self._record(LogStartMoved(topic.name, at.partition, start))
        if end > old_end:
            self._record(RecordsAppended(topic.name, at.partition, max(old_end, start), end))
