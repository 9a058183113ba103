"""Order by key, rests and transactions in one group: the last example of lesson 18."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from shareq.consumer import ShareConsumer
from shareq.lessons.bench import Bench, settle
from shareq.lessons.beyond import CUSTOMERS, ENABLED, EVENTS, event_of, produce_events
from shareq.lessons.exactly_once import RESULTS, committed
from shareq.model.experiments import BACKOFF_MS, KEY_ORDERING
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer

__all__ = ["Fulfilment"]

REST_MS = 60_000
_RETRY_S = 120
"""A group that is idle for so long has no record to deliver: more than a rest."""


@dataclass
class Fulfilment:
    """A worker handles the events of three customers. It writes a result for each, in the transaction that has its
    acknowledgement. The first event of bea fails `failures` times, is released, and rests for a minute each time. The
    worker is killed in its second turn, before it commits; another one takes over.
    """

    failures: int = 1
    results: dict[str, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    """The results of each customer for a reader of committed ones: the event, and the seconds since the first turn."""

    def __post_init__(self) -> None:
        self.bench = Bench(configs={BACKOFF_MS: REST_MS, KEY_ORDERING: "key"}, config=ENABLED)
        self._failing = self.failures
        cluster = self.bench.cluster
        cluster.create_topic(RESULTS)
        produce_events(self.bench)
        began_ms = cluster.now_ms
        first = self._worker("first")
        self._turn(*first)
        self._turn(*first, killed=True)
        for client in first:
            cluster.crash(client)
        second = self._worker("second")
        while self._turn(*second):
            pass
        for message in committed(cluster, RESULTS):
            customer, event = event_of(message)
            self.results[customer].append((event, (message.timestamp()[1] - began_ms) // 1000))

    def _worker(self, name: str) -> tuple[ShareConsumer, Producer]:
        consumer = self.bench.consumer(name, most=len(CUSTOMERS), share_acquire_mode="record_limit")
        conf = {"bootstrap.servers": self.bench.cluster.bootstrap_servers, "client.id": name}
        producer = Producer({**conf, "transactional.id": "fulfilment"})
        producer.init_transactions()  # aborts a transaction that a killed worker has left open
        return consumer, producer

    def _turn(self, consumer: ShareConsumer, producer: Producer, *, killed: bool = False) -> bool:
        """Handle the next events. False if there are none."""
        messages = consumer.poll(_RETRY_S)
        failed = [message for message in messages if self._failing and event_of(message) == ("bea", EVENTS[0])]
        self._failing -= len(failed)
        if failed:
            settle(consumer, failed, AcknowledgeType.RELEASE)
        done = [message for message in messages if message not in failed]
        if done:
            producer.begin_transaction()
            for message in done:
                producer.produce(RESULTS, message.value(), key=message.key())
            producer.send_share_acknowledgements_to_transaction(done, consumer.share_group_metadata())
            if not killed:
                producer.commit_transaction()
        return bool(messages)

    def __str__(self) -> str:
        return "\n".join(
            f"{customer}: {', '.join(f'{event} after {seconds} s' for event, seconds in self.results[customer])}"
            for customer in CUSTOMERS
        )
