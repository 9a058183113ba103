"""Any value for any parameter of any public method causes a clear error or the right effect, and the client goes on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shareq import Admin, Cluster, Messages, Producer, ShareConsumer
from shareq.client.config import COMMON, SOCKETS
from shareq.consumer.config import DEFINITIONS as CONSUMER_KEYS
from shareq.log.records import decode
from shareq.model.states import IsolationLevel
from shareq.producer.config import DEFINITIONS as PRODUCER_KEYS
from tests.client.any_value import ADMIN, ANYTHING, CONSUMER, PRODUCER, AnyCall, calls, is_hashable, make, value

PATIENCE_S = 60
QUICK = {f"group.share.{key}": 200 for key in ("min.heartbeat.interval.ms", "heartbeat.interval.ms")}
QUICK["group.share.assignment.interval.ms"] = 0
"""Configurations with which members receive their partitions immediately."""


class AnyValueStage:
    """A cluster with topic `t`, and the configuration of its clients. Groups start at the earliest record."""

    def __init__(self, stack: ExitStack, *, tcp: bool) -> None:
        clock = "wall" if tcp else "virtual"
        self.cluster = stack.enter_context(Cluster(brokers=1, clock=clock, config=QUICK, journal=False))
        self.cluster.create_topic("t", partitions=1)
        self.conf = {"bootstrap.servers": self.cluster.bootstrap_servers}
        if tcp:
            self.conf = {"bootstrap.servers": stack.enter_context(self.cluster.serve()).bootstrap_servers}
        self.marks = 0

    def unique_value(self) -> bytes:
        """A value that no other record has."""
        self.marks += 1
        return f"mark {self.marks}".encode()

    def delete_records(self) -> None:
        """Delete the records of earlier examples, which each new group would read again."""
        with Admin(self.conf) as admin:
            admin.delete_records({("t", 0): -1}, timeout=PATIENCE_S).check()

    def values(self) -> set[bytes | None]:
        """Values of all records in the topic's log."""
        log = self.cluster.log("t", 0)
        offset, seen = log.log_start_offset, set()
        while offset < log.log_end_offset:
            read = log.read(offset, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED)
            seen |= {record.value for batch in read.batches for record in decode(batch)}
            offset = read.batches[-1].last_offset + 1
        return seen


@pytest.fixture(scope="module", params=["in process", "tcp"])
def stage(request: pytest.FixtureRequest) -> Iterator[AnyValueStage]:
    with ExitStack() as stack:
        yield AnyValueStage(stack, tcp=request.param == "tcp")


def examples(stage: AnyValueStage) -> settings:
    """Fewer examples over TCP, where time is real."""
    count = settings().max_examples
    return settings(max_examples=count if stage.cluster.clock == "virtual" else count // 5)


# ---- producer --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
def test_producer_calls_with_any_value(stage: AnyValueStage, transactional: bool) -> None:
    @examples(stage)
    @given(calls(PRODUCER, 6))
    def with_any_value(made: list[AnyCall]) -> None:
        conf = {"transactional.id": stage.unique_value().decode()} if transactional else {}
        fates: list[Any] = []
        goods = [stage.unique_value(), stage.unique_value()]
        with Producer({**stage.conf, **conf}) as producer:
            if transactional:
                producer.init_transactions(PATIENCE_S)
                producer.begin_transaction()
            else:
                producer.produce("t", goods[0], on_delivery=lambda error, message: fates.append(error))
                producer.flush(PATIENCE_S)
            for call in made:
                make(producer, call)
            if transactional:
                _begin_transaction(producer)
            producer.produce("t", goods[1], on_delivery=lambda error, message: fates.append(error))
            assert producer.flush(PATIENCE_S) == 0
            if transactional:
                producer.commit_transaction(PATIENCE_S)
            assert (fates, len(producer)) == ([None] * (1 if transactional else 2), 0)
        delivered.extend(goods[1:] if transactional else goods)

    delivered: list[bytes] = []
    with_any_value()
    assert set(delivered) <= stage.values()


def _begin_transaction(producer: Producer) -> None:
    """Start a transaction, whatever state the calls have left the producer in."""
    state = producer._core.identity.state.name
    assert state != "FATAL"
    if state in ("IN_TRANSACTION", "ABORTABLE", "ABORTING"):
        producer.abort_transaction(PATIENCE_S)
    elif state == "COMMITTING":
        producer.commit_transaction(PATIENCE_S)
    producer.begin_transaction()


# ---- share consumer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_share_consumer_calls_with_any_value(stage: AnyValueStage, mode: str) -> None:
    producer = Producer(stage.conf)

    @examples(stage)
    @given(calls(CONSUMER, 6))
    def with_any_value(made: list[AnyCall]) -> None:
        stage.delete_records()
        group, good = stage.unique_value().decode(), stage.unique_value()
        stage.cluster.configure_group(group, {"share.auto.offset.reset": "earliest"})
        with ShareConsumer({**stage.conf, "group.id": group, "share.acknowledgement.mode": mode}) as consumer:
            for call in made:
                _take(consumer, make(consumer, call))
            producer.produce("t", good)
            assert producer.flush(PATIENCE_S) == 0
            consumer.subscribe(["t"])
            polls = (_take(consumer, make(consumer, POLL)) for _ in range(PATIENCE_S))
            assert any(good in values for values in polls)

    with_any_value()
    producer.close()


POLL = AnyCall("poll", {"timeout": 1})
"""This poll may raise an effect of earlier calls: a wakeup, or a subscription that brokers refuse."""


def _take(consumer: ShareConsumer, result: Any) -> set[bytes | None]:
    """Values of the returned records, which are acknowledged; empty if the call returned none."""
    if not isinstance(result, Messages):
        return set()
    for message in result if consumer._core.acknowledger.explicit else ():
        consumer.acknowledge(message)
    return {message.value() for message in result}


# ---- admin -----------------------------------------------------------------------------------------------------------


def test_admin_calls_with_any_value(stage: AnyValueStage) -> None:
    with Admin(stage.conf) as admin:

        @examples(stage)
        @given(calls(ADMIN, 4))
        def with_any_value(made: list[AnyCall]) -> None:
            for call in made:
                make(admin, AnyCall(call.method, {**call.arguments, "timeout": PATIENCE_S}))
            if "t" not in admin.list_topics(timeout=PATIENCE_S):
                assert "delete_topics" in [call.method for call in made]
                stage.cluster.create_topic("t", partitions=1)

        with_any_value()


# ---- configurations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "definitions"),
    [(Producer, PRODUCER_KEYS), (ShareConsumer, CONSUMER_KEYS), (Admin, ())],
    ids=["producer", "share consumer", "admin"],
)
def test_configurations_with_any_value(stage: AnyValueStage, client: Any, definitions: Any) -> None:
    """A configuration is refused or accepted; an accepted one gives a client that can be closed."""
    keys = [definition.key for definition in (*COMMON, *SOCKETS, *definitions)]
    single = {
        definition.key: value(definition.default, definition.low, definition.high, *definition.choices)
        for definition in (*COMMON, *SOCKETS, *definitions)
        if definition.key != "bootstrap.servers"
    }
    conf = st.one_of(
        st.fixed_dictionaries({}, optional=single),
        st.dictionaries(st.one_of(st.sampled_from(keys), ANYTHING.filter(is_hashable)), ANYTHING, max_size=2),
    )

    class Maker:
        def open(self, conf: Any) -> None:
            base = {**stage.conf, **({"group.id": "g"} if client is ShareConsumer else {})}
            client({**base, **conf}).close()

    @examples(stage)
    @given(conf)
    def with_any_value(conf: dict[Any, Any]) -> None:
        make(Maker(), AnyCall("open", {"conf": conf}))

    with_any_value()


# ---- completeness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "methods"),
    [(Producer, PRODUCER), (ShareConsumer, CONSUMER), (Admin, ADMIN)],
    ids=["producer", "share consumer", "admin"],
)
def test_every_public_method_and_parameter_is_tried(client: type[Any], methods: dict[str, Any]) -> None:
    public = {name: method for name, method in inspect.getmembers(client, callable) if not name.startswith("_")}
    public.pop("close")
    assert methods.keys() - {"__len__"} == public.keys()
    for name, method in public.items():
        parameters = set(inspect.signature(method).parameters) - {"self"}
        assert parameters - {"timeout"} == set(methods[name]) - {"timeout"}, name
