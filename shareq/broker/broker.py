"""A broker process: it hosts actors, routes requests to them, and carries out their effects."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from shareq.broker.authorization import RULES, Filtered
from shareq.broker.controller import Controller
from shareq.broker.coordinator_log import CHUNK_BYTES, records_read
from shareq.broker.data_plane import DataPlane
from shareq.broker.dead_letters import DeadLetterWriter
from shareq.broker.fetch import FetchHandler
from shareq.broker.group_retention import GroupRetention
from shareq.broker.host import Host, gauges_of, raise_failed
from shareq.broker.loop import EventLoop
from shareq.broker.network import Network
from shareq.broker.produce import NO_VERDICTS, Verdicts, produce
from shareq.broker.routes import Hosts, routes
from shareq.broker.share_state_log import ShareStateLog
from shareq.broker.storage import Storage
from shareq.broker.transaction_verification import TransactionVerification
from shareq.coordinator.group_coordinator import GroupCoordinator
from shareq.coordinator.share_state import ShareCoordinator, ShareStateKeeper
from shareq.coordinator.transactions import TransactionCoordinator
from shareq.leader import make_share_leader
from shareq.log.records import encode_coordinator_records, record_keys
from shareq.model.actor import (
    BROKER,
    Actor,
    Admit,
    Answer,
    Appended,
    AppendRecords,
    Call,
    CleanByGroups,
    ClientContext,
    ConnectionClosed,
    CreateInternalTopic,
    DeadLettersEnded,
    DeleteRecordsBefore,
    Effect,
    FindOffset,
    ImageChanged,
    Incoming,
    LogGrew,
    LogRead,
    MarkerAppended,
    MarkerWritten,
    OffsetFound,
    Persist,
    ReadLog,
    ReadRecords,
    RecordsDeleted,
    RecordsRead,
    Respond,
    SendDeadLetters,
    ShardElected,
    ShardResigned,
    StopDeadLetters,
    isolated,
)
from shareq.model.errors import Errors
from shareq.model.events import Event, RecordsAppended
from shareq.model.experiments import ENABLE
from shareq.model.gauges import Gauge
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from shareq.model.image import ClusterImage, PartitionImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.rights import Rights
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of
from shareq.model.states import IsolationLevel
from shareq.persister import make_persister


class Broker:
    """A running broker. A killed broker is discarded; a restart creates a new one."""

    def __init__(
        self,
        broker_id: int,
        *,
        loop: EventLoop,
        network: Network,
        controller: Controller,
        storage: Storage,
        rng: random.Random,
        record: Callable[[int, Event], None],
        traced: bool,
    ) -> None:
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self._loop = loop
        self._network = network
        self._controller = controller
        self._storage = storage
        self._record: Callable[[Event], None] = partial(record, broker_id)
        self._traced = traced
        self._data = DataPlane(broker_id, storage, controller.image)
        self._context = ClientContext(client_id=self.name, principal=BROKER)
        self._persisting: dict[int, tuple[Host, int]] = {}
        self._persist_ids = 0
        self._undelivered_markers: list[tuple[TopicPartition, int]] = []  # (partition, producer id)
        self._stalled: list[tuple[Host, AppendRecords]] = []  # appends that wait for replicas to be in sync
        self._led: dict[TopicPartition, int] = {}
        self._hosts: list[Host] = []
        config = controller.image.broker_config

        def host(name: str, actor: Actor) -> Host:
            carriers = self._carriers()
            if isinstance(actor, ShareStateKeeper):
                carriers |= ShareStateLog(self._data, loop, self._answer_append, self.log_grew).carriers
            self._hosts.append(Host(f"{self.name}/{name}", actor, loop, carriers, self._record))
            return self._hosts[-1]

        common: dict[str, Any] = {"traced": traced, "time_of_day": loop.time_of_day}
        self._share_leader = make_share_leader(broker_id, config, **common)
        self._leader = host("share-leader", self._share_leader)
        self._groups = host("group-coordinator", GroupCoordinator(broker_id, rng, **common))
        keeps = design_of(config[PERSISTER_CLASS]) is StateDesign.CONTROL_RECORDS
        state_actor = ShareStateKeeper if keeps else ShareCoordinator
        self._states = host("share-coordinator", state_actor(broker_id, **common))
        self._persister = host("persister", make_persister(config[PERSISTER_CLASS], broker_id, rng))
        self._letters = host("dead-letter-writer", DeadLetterWriter(rng, **common))
        self._retention = host("group-retention", GroupRetention(broker_id)) if config[ENABLE] else None
        self._fetcher = FetchHandler(self._data, rng)
        self._fetches = host("fetcher", self._fetcher)
        self._transactions = host("transaction-coordinator", TransactionCoordinator(broker_id, **common))
        self._verification = host("transaction-verification", TransactionVerification(self._data, loop.time_of_day))
        self._coordinators = {
            GROUP_METADATA_TOPIC: self._groups,
            TRANSACTION_STATE_TOPIC: self._transactions,
        } | ({} if keeps else {SHARE_STATE_TOPIC: self._states})
        hosts = Hosts(self._leader, self._groups, self._states, self._fetches, self._transactions, self._verification)
        self.routes = routes(hosts, self._produce, controller, self._data)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def receive(self, exchange_id: int, request: Request, client: ClientContext) -> None:
        """Route a request to its actor, or answer it. After a kill, requests in flight are dropped."""
        if not self._leader.alive:
            return
        if type(request) not in self.routes:  # an experiment's, which is not enabled
            self._network.fail(self, exchange_id, Errors.UNSUPPORTED_VERSION)
            return
        if self._controller.image.authorizer is not None and client.principal != BROKER:
            admitted = self._authorize(exchange_id, request, client)
            if admitted is None:
                return
            request = admitted
        route = self.routes[type(request)]
        if isinstance(request, ProduceRequest) and request.transactional_id is not None:
            route = self._verification
        if isinstance(route, Host):
            route.deliver(Incoming(exchange_id, request, client))
        else:
            self._answer(exchange_id, request, route(request, client))

    def _answer(self, exchange_id: int, request: Request, response: Response) -> None:
        """Answer a request, of a producer after the delay of its topics."""
        delays_ms = self._storage.delays_ms
        delay_ms = 0
        if delays_ms and isinstance(request, ProduceRequest):
            known = self._controller.image.topics_by_id
            names = [known[t.topic_id].name if t.topic_id in known else t.name for t in request.topics]
            delay_ms = max([delays_ms.get(name, 0) for name in names], default=0)
        if delay_ms:
            due_ms = self._loop.time_ms() + delay_ms
            self._loop.at(due_ms, lambda: self._network.answer(self, exchange_id, response))
        else:
            self._network.answer(self, exchange_id, response)

    def _authorize(self, exchange_id: int, request: Request, client: ClientContext) -> Request | None:
        """What its sender may make of a request; None if it was refused. What is refused of it is added to the
        response."""
        rights = Rights(self._controller.image, client, type(request), self._record)
        ruling = RULES[type(request)](request, rights)
        if isinstance(ruling, Response):
            self._network.answer(self, exchange_id, ruling)
            return None
        if isinstance(ruling, Filtered):
            self._network.complete(self, exchange_id, ruling.complete)
            return ruling.request
        return ruling

    def connection_closed(self, connection_id: int) -> None:
        self._leader.deliver(ConnectionClosed(connection_id))
        self._fetches.deliver(ConnectionClosed(connection_id))

    def _produce(
        self, request: ProduceRequest, client: ClientContext, verdicts: Verdicts = NO_VERDICTS
    ) -> ProduceResponse:
        response, grown = produce(self._data, request, client, self._loop.now_ms(), verdicts)
        for at, first, end in grown:
            self.log_grew(at, first, end)
        return response

    def log_grew(self, at: TopicPartition, first: int, end: int) -> None:
        """Record an append, and deliver it to the share-partition leader and to waiting fetches."""
        if self._traced:
            self._record(RecordsAppended(at.topic, at.partition, first, end))
        if self._share_leader.watches(at):
            self._loop.post(self._leader.deliver, LogGrew(at))
        if self._fetcher.waits_for(at):
            self._loop.post(self._fetches.deliver, LogGrew(at))

    def gauges(self) -> Counter[Gauge]:
        """Those of all actors."""
        return gauges_of(self._hosts)

    def clean_by_groups(self) -> None:
        """Delete what all groups have finished, of the topics that want it (an experiment)."""
        if self._retention is not None:
            self._retention.deliver(CleanByGroups())

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def image_changed(self, image: ClusterImage) -> None:
        """Deliver the new image to all actors, and elected and resigned shards to the coordinators. Appends that wait
        for in-sync replicas are retried; they fail if this broker no longer leads the partition."""
        if not self._leader.alive:
            return
        self._data.image = image
        failed: list[Effect] = []  # the other actors, shards and appends need the image all the same
        for host in self._hosts:
            isolated(failed, host.deliver, ImageChanged(image))
        for topic, host in self._coordinators.items():
            found = image.topics.get(topic)
            for index, partition in enumerate(found.partitions if found else ()):
                isolated(failed, self._lead_shard, host, TopicPartition(topic, index), partition)
        stalled, self._stalled = self._stalled, []
        for host, append in stalled:
            isolated(failed, self._append_records, host, append)
        raise_failed(failed, self._loop)

    def _lead_shard(self, host: Host, shard: TopicPartition, partition: PartitionImage) -> None:
        epoch = self._led.get(shard)
        if partition.leader == self.broker_id:
            if epoch != partition.leader_epoch:
                self._led[shard] = partition.leader_epoch
                host.deliver(ShardElected(shard.partition, partition.leader_epoch))
        elif epoch is not None:
            del self._led[shard]
            host.deliver(ShardResigned(shard.partition))

    def die(self) -> None:
        """End the process: all actors stop."""
        for host in self._hosts:
            host.die()

    # ---- effects -----------------------------------------------------------------------------------------------------

    def _carriers(self) -> dict[type, Callable[[Host, Any], None]]:
        return {
            Respond: self._respond,
            Call: self._call,
            Persist: self._persist,
            ReadLog: self._read_log,
            FindOffset: self._find_offset,
            AppendRecords: self._append_records,
            ReadRecords: self._read_records,
            DeleteRecordsBefore: self._delete_records_before,
            CreateInternalTopic: self._create_internal_topic,
            Admit: self._admit,
            MarkerAppended: self._marker_appended,
            SendDeadLetters: self._to_letters,
            StopDeadLetters: self._to_letters,
            DeadLettersEnded: self._letters_ended,
        }

    def _respond(self, host: Host, effect: Respond) -> None:
        if host is not self._persister:
            self._network.answer(self, effect.id, effect.response)
            return
        asker, call_id = self._persisting.pop(effect.id)
        self._loop.post(asker.deliver, Answer(call_id, effect.response))

    def _call(self, host: Host, effect: Call) -> None:
        self._network.call(host, effect, self._context, self.broker_id)

    def _to_letters(self, host: Host, effect: SendDeadLetters | StopDeadLetters) -> None:
        del host
        self._loop.post(self._letters.deliver, effect)

    def _letters_ended(self, host: Host, effect: DeadLettersEnded) -> None:
        del host
        self._loop.post(self._leader.deliver, effect)

    def _persist(self, host: Host, effect: Persist) -> None:
        self._persist_ids += 1
        self._persisting[self._persist_ids] = (host, effect.id)
        self._loop.post(self._persister.deliver, Incoming(self._persist_ids, effect.request))

    def _read_log(self, host: Host, effect: ReadLog) -> None:
        error, log, _ = self._data.led_log(*effect.topic_partition)
        if log is None:
            result = LogRead(effect.id, error)
        else:
            isolation = IsolationLevel(effect.isolation_level)
            read = log.read(
                effect.offset, max_bytes=effect.max_bytes, isolation=isolation, end_offset=effect.end_offset
            )
            result = LogRead(
                effect.id,
                read.error,
                read.batches,
                read.high_watermark,
                read.log_start_offset,
                read.last_stable_offset,
                read.aborted,
                record_keys(read.batches) if effect.keys else (),
            )
        self._loop.post(host.deliver, result)

    def _find_offset(self, host: Host, effect: FindOffset) -> None:
        error, log, _ = self._data.led_log(*effect.topic_partition)
        offset = -1
        if log is not None:
            found = log.offset_for_timestamp(effect.timestamp, IsolationLevel.READ_UNCOMMITTED)
            error, offset = found.error, found.offset
        self._loop.post(host.deliver, OffsetFound(effect.id, error, offset))

    def _admit(self, host: Host, effect: Admit) -> None:
        del host
        exchange_id, request, client = effect.incoming
        assert isinstance(request, ProduceRequest), "only produce requests are verified"
        self._answer(exchange_id, request, self._produce(request, client, effect.verdicts))

    def _marker_appended(self, host: Host, effect: MarkerAppended) -> None:
        """Deliver a marker to the coordinator of its partition after earlier appends, in the order of the log."""
        del host
        at, offset, producer_id, _ = effect
        self.log_grew(at, offset, offset + 1)
        coordinator = self._coordinators.get(at.topic)
        if coordinator is not None:
            self._undelivered_markers.append((at, producer_id))
            self._loop.post(self._deliver_marker, coordinator, effect)

    def _deliver_marker(self, coordinator: Host, marker: MarkerAppended) -> None:
        at, _, producer_id, committed = marker
        self._undelivered_markers.remove((at, producer_id))
        coordinator.deliver(MarkerWritten(at.partition, producer_id, committed))

    def _append_records(self, host: Host, effect: AppendRecords) -> None:
        if (effect.topic_partition, effect.producer_id) in self._undelivered_markers:
            # The marker precedes these records in the log, and no other one would end them.
            self._loop.post(host.deliver, Appended(effect.id, Errors.INVALID_TXN_STATE))
            return
        now_ms = self._loop.now_ms()
        try:
            batch = encode_coordinator_records(
                effect.records, now_ms, producer_id=effect.producer_id, producer_epoch=effect.producer_epoch
            )
        except Exception:
            self._loop.post(host.deliver, Appended(effect.id, Errors.UNKNOWN_SERVER_ERROR))
            raise
        done = self._data.append(*effect.topic_partition, batch, now_ms)
        if done is None:
            self._stalled.append((host, effect))
            return
        self._answer_append(host, effect.topic_partition, Appended(effect.id, done.error, done.base_offset))

    def _answer_append(self, host: Host, at: TopicPartition, done: Appended) -> None:
        """Deliver the result of an append, after the delay of its topic. A coordinator appends to a partition one by
        one, so results keep their order."""
        delay_ms = self._storage.delays_ms.get(at.topic)
        if delay_ms:
            self._loop.at(self._loop.time_ms() + delay_ms, lambda: host.deliver(done))
        else:
            self._loop.post(host.deliver, done)

    def _read_records(self, host: Host, effect: ReadRecords) -> None:
        error, log, _ = self._data.led_log(*effect.topic_partition)
        if log is None:
            result = RecordsRead(effect.id, error)
        else:
            offset = max(effect.offset, log.log_start_offset)
            read = log.read(offset, max_bytes=CHUNK_BYTES, isolation=IsolationLevel.READ_UNCOMMITTED)
            result = records_read(effect.id, read, offset)
        self._loop.post(host.deliver, result)

    def _delete_records_before(self, host: Host, effect: DeleteRecordsBefore) -> None:
        error, _, _ = self._data.led_log(*effect.topic_partition)
        if not error:
            error, _ = self._storage.delete_records(effect.topic_partition, effect.offset)
        self._loop.post(host.deliver, RecordsDeleted(effect.id, error))

    def _create_internal_topic(self, host: Host, effect: CreateInternalTopic) -> None:
        del host
        self._controller.create_internal_topic(effect.topic)
