"""One broker of a cluster on a backend: the leader of share-partitions, and the way to the broker of the same id."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.forwarding import to_backend, to_client
from shareq.broker.backend.log_reads import LogReads
from shareq.broker.backend.services import Services
from shareq.broker.host import Host
from shareq.broker.loop import EventLoop
from shareq.broker.network import Network
from shareq.leader import ShareLeader
from shareq.model.actor import (
    NEWEST_VERSION,
    Answer,
    Call,
    ClientContext,
    ConnectionClosed,
    FindOffset,
    ImageChanged,
    Incoming,
    LogGrew,
    Persist,
    ReadLog,
    Respond,
)
from shareq.model.events import Event, LogStartMoved, RecordsAppended
from shareq.model.ids import TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest

REQUEST_TIMEOUT_MS = 600_000
"""The time-out of a client's request at the backend: a rebalance takes minutes."""


class BackendNode:
    """A receiver of requests. Share groups are served by this process, everything else by the backend's broker."""

    def __init__(
        self,
        broker_id: int,
        client: BackendClient,
        services: Services,
        *,
        persist: Callable[[Host, Persist], None],
        loop: EventLoop,
        network: Network,
        stale: Callable[[], object],
        record: Callable[[Event], None],
        traced: bool,
    ) -> None:
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self._client = client
        self._services = services
        self._network = network
        self._record = record
        self._traced = traced
        self._image = ClusterImage()
        self._offsets: dict[TopicIdPartition, tuple[int, int]] = {}
        self._reads = LogReads(broker_id, client, loop, stale=stale, moved=self._moved)
        carriers = {
            Respond: lambda _, effect: network.answer(self, effect.id, effect.response),
            Call: lambda host, effect: network.call(host, effect, ClientContext(client_id=self.name)),
            Persist: persist,
            ReadLog: self._read_log,
            FindOffset: lambda host, effect: self._reads.find_offset(effect, host.deliver),
        }
        actor = ShareLeader(broker_id, traced=traced)
        self._leader = Host(f"{self.name}/share-leader", actor, loop, carriers, record)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def receive(self, exchange_id: int, request: Request, client: ClientContext) -> None:
        """Answer a request here, or pass it to the backend's broker."""
        if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            self._leader.deliver(Incoming(exchange_id, request, client))
        else:
            answer = partial(self._answer, exchange_id)
            self._services.serve(request, client, answer, partial(self._forward, client, type(request)))

    def _answer(self, exchange_id: int, answer: Answer) -> None:
        if answer.response is None:
            self._network.fail(self, exchange_id, answer.error)
        else:
            self._network.answer(self, exchange_id, answer.response)

    def _forward(
        self, client: ClientContext, asked: type[Request], request: Request, done: Callable[[Answer], object]
    ) -> None:
        """Send a request to the backend, each connection on a lane of its own; what the client has `asked` in the
        client's version, if the backend has it."""

        def take(answer: Answer) -> None:
            response = answer.response
            done(answer if response is None else answer._replace(response=to_client(response, self._image)))

        lane = f"client-{client.connection_id}"
        self._client.call(
            self.broker_id,
            to_backend(request, self._image),
            take,
            lane=lane,
            client_id=client.client_id,
            timeout_ms=REQUEST_TIMEOUT_MS,
            version=client.api_version if isinstance(request, asked) else NEWEST_VERSION,
        )

    def connection_closed(self, connection_id: int) -> None:
        self._leader.deliver(ConnectionClosed(connection_id))
        self._client.close_lane(f"client-{connection_id}")

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def image_changed(self, image: ClusterImage) -> None:
        self._image = self._reads.image = image
        self._leader.deliver(ImageChanged(image))

    def die(self) -> None:
        """End the actor."""
        self._leader.die()

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
