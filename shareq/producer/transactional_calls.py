"""The producer's calls about transactions: confluent-kafka's, and one of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial

from shareq.client.message import Message
from shareq.client.share_group import ShareGroupMetadata
from shareq.client.shell import UntilClosed, perform
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import KafkaError, KafkaException
from shareq.producer.core import ProducerCore
from shareq.producer.transaction import ProducerTransactionEvent, ProducerTransactionState, abort_required
from shareq.producer.transaction_offsets import ConsumerGroupMetadata, committed_offsets
from shareq.producer.transaction_shares import share_acknowledgements


class TransactionalCalls(UntilClosed):
    """A producer's transactions. `_waiting`: the context of a call that waits; `_unreturned`: the step of an
    interrupted call, with which a repeated call continues."""

    _core: ProducerCore
    _waiting: AbstractContextManager[None]
    _unreturned: ProducerTransactionEvent | None

    def _run(self, call: Callable[[int], None]) -> None:
        perform(self._connection, self._core.calls, call)

    def _serve_until(self, done: Callable[[], bool], timeout: float) -> bool:
        """Run callbacks until `done()`. False if the timeout passes first."""
        raise NotImplementedError

    def init_transactions(self, timeout: float = -1) -> None:
        """Get a producer id. Fences earlier producers with the same transactional.id and aborts their transaction."""
        self._transact(ProducerTransactionEvent.INIT, timeout)

    def begin_transaction(self) -> None:
        """Start a transaction: all further records are part of it."""
        self._transact(ProducerTransactionEvent.BEGIN, 0)

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver all records, then commit them. May be called again after a time-out.

        KafkaException if a record could not be delivered: the transaction must be aborted.
        """
        self._transact(ProducerTransactionEvent.COMMIT, timeout)
        if self._core.identity.state is ProducerTransactionState.ABORTABLE:
            raise abort_required()

    def abort_transaction(self, timeout: float = -1) -> None:
        """Purge waiting records and abort the transaction: read_committed readers see none of its records."""
        self._transact(ProducerTransactionEvent.ABORT, timeout)

    def send_offsets_to_transaction(
        self, positions: Iterable[TopicPartition], group_metadata: ConsumerGroupMetadata | bytes, timeout: float = -1
    ) -> None:
        """Commit a consumer group's offsets as part of the open transaction.

        `positions`: the next offset to consume of each partition, as TopicPartitions of shareq or confluent-kafka.
        `group_metadata`: a ConsumerGroupMetadata, or the result of confluent-kafka's
        `Consumer.consumer_group_metadata()`. Share groups have no such offsets; they acknowledge records.
        KafkaException: after _TIMED_OUT call again; a fatal error ends the producer; after any other error abort.
        """
        self._check_open()
        offsets, group = committed_offsets(positions), ConsumerGroupMetadata.of(group_metadata)
        step = self._core.adding(partial(self._core.additions.send_offsets, group, offsets))
        with self._waiting:
            commit = perform(self._connection, self._core.calls, step)
            done = self._serve_until(lambda: commit.done, timeout)
        if not done:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "offsets are still in progress: call again"))
        if commit.error is not None:
            raise KafkaException(commit.error)

    def send_share_acknowledgements_to_transaction(
        self,
        acknowledgements: Iterable[Message | tuple[Message, int | str]],
        group_metadata: ShareGroupMetadata,
        timeout: float = -1,
    ) -> None:
        """Acknowledge records of a share group as part of the open transaction (an experiment of shareq).

            from shareq import Cluster, Producer, ShareConsumer

            with Cluster(config={"shareq.experiments.enable": True}) as cluster:
                cluster.create_topic("orders")
                cluster.create_topic("results")
                cluster.configure_group("work", {"share.auto.offset.reset": "earliest"})
                conf = {"bootstrap.servers": cluster.bootstrap_servers}
                with Producer(conf) as source:
                    source.produce("orders", "one")
                with Producer({**conf, "transactional.id": "loop"}) as producer:
                    producer.init_transactions()
                    with ShareConsumer({**conf, "group.id": "work"}) as consumer:
                        consumer.subscribe(["orders"])
                        messages = consumer.poll(20)
                        producer.begin_transaction()
                        for message in messages:
                            producer.produce("results", message.value().upper())
                        group = consumer.share_group_metadata()
                        producer.send_share_acknowledgements_to_transaction(messages, group)
                        producer.commit_transaction()
                print(cluster.log("results", 0))

        `acknowledgements`: records that the consumer holds, as Messages, which are accepted, or pairs of a Message and
        "ACCEPT" or "REJECT". `group_metadata`: the consumer's `share_group_metadata()`. The consumer hands the records
        over: it does not acknowledge them itself any more. They count as acknowledged when the transaction is
        committed; after an abort they are delivered again.

        IllegalStateException, and nothing is sent, without an open transaction, or for a record that the consumer does
        not hold. KafkaException: after _TIMED_OUT call again; a fatal error ends the producer; after any other error
        abort. UNSUPPORTED_VERSION: the brokers do not have `shareq.experiments.enable`, or not the state-topic
        persister. Source: KIP-1289.
        """
        self._check_open()
        wanted = share_acknowledgements(acknowledgements)
        if not isinstance(group_metadata, ShareGroupMetadata):
            what = type(group_metadata).__name__
            raise TypeError(f"group_metadata must be what share_group_metadata() of a consumer returns, not {what}")
        core = self._core
        with self._waiting:
            call = perform(self._connection, core.calls, lambda _: core.additions.shares_under_way(wanted))
            if call is None:
                topic_ids = group_metadata.hand_over(wanted)
                send = core.adding(partial(core.additions.send_shares, group_metadata, wanted, topic_ids))
                call = perform(self._connection, core.calls, send)
            shares = call
            done = self._serve_until(lambda: shares.done, timeout)
        if not done:
            why = "acknowledgements are still in progress: call again"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, why))
        if shares.error is not None:
            raise KafkaException(shares.error)

    def _transact(self, event: ProducerTransactionEvent, timeout: float) -> None:
        self._check_open()
        identity = self._core.identity
        with self._waiting:
            if self._unreturned is not event:
                self._run(self._step(event))
            settled = self._serve_until(lambda: identity.settled, timeout)
        self._unreturned = None
        if not settled:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{event} is still in progress: call again"))
        if identity.error is not None:
            raise KafkaException(identity.error)

    def _step(self, event: ProducerTransactionEvent) -> Callable[[int], None]:
        step = self._core.transaction(event)

        def begin(now_ms: int) -> None:
            step(now_ms)
            self._unreturned = event

        return begin
