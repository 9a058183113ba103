"""Dead-letter queues of a cluster on virtual time: Kafka's worked examples, and what shareq does differently.

`tests/pairings/dead_letter_examples.py` has the examples that need no faults; they also run on Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer, metrics, view
from shareq.log.records import decode
from shareq.model.errors import ConfigException, Errors, KafkaException
from shareq.model.events import (
    DeadLettersGivenUp,
    DeadLettersWaiting,
    RequestSent,
    SharePartitionDropped,
    StateWritePrepared,
)
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.share_state import ReadShareGroupStateRequest
from shareq.model.states import IsolationLevel
from tests.broker.requester import Requester
from tests.budgets import cases
from tests.pairings.dead_letter_examples import EXAMPLES
from tests.pairings.dead_letter_scenarios import (
    differing_letters,
    differing_states,
    disorder,
    folded,
    plan,
    run,
    state_records_of,
)
from tests.pairings.dead_letters import ACCEPT, AUTO_CREATE, ENABLED, NAME, PREFIX, REJECT, RELEASE, DeadLetterStage
from tests.polling import take

GIVE_UP = [name for name in EXAMPLES if name.startswith(("example_10", "example_14", "example_19"))]


@pytest.mark.parametrize(
    ("name", "unavailable"),
    [(name, way) for name in EXAMPLES for way in ("wait", "archive") if way == "archive" or name not in GIVE_UP],
)
def test_worked_examples(name: str, unavailable: str) -> None:
    body, expected, _ = EXAMPLES[name]
    with Cluster(brokers=1, seed=7) as cluster:
        stage = DeadLetterStage(
            cluster.bootstrap_servers,
            lambda what: what,
            unavailable=unavailable,
            pass_time=lambda: cluster.advance(100),
        )
        with stage.stack:
            assert body(stage) == expected


@pytest.mark.parametrize("number", range(cases(20, 200, "SHAREQ_SCENARIOS")))
def test_scenarios_have_the_letters_and_states_that_follow_from_them(seed: int, number: int, persister: str) -> None:
    """Each letter is in the queue once, in the order in which the records left; each record has had the states that its
    plan has. State writes are quick or slow, so that connections close before and after them."""
    scenario = plan(f"{seed}/{number}")
    with Cluster(brokers=1, seed=number) as cluster:
        cluster.delay_appends(SHARE_STATE_TOPIC, (0, 30, 700)[number % 3])
        stage = DeadLetterStage(
            cluster.bootstrap_servers,
            lambda what: what,
            unavailable=("wait", "archive")[number % 2],
            pass_time=lambda: cluster.advance(1000),
        )
        with stage.stack:
            letters = run(stage, scenario)
            differing = differing_letters(scenario, letters)
            if persister != "control-records":  # it has no topic of states
                durable = folded(state_records_of(cluster))[stage.group]
                differing += [*differing_states(scenario, durable), *disorder(letters, durable)]
            assert not differing, "\n".join([*differing, str(scenario)])


# ---- examples that need faults ---------------------------------------------------------------------------------------

UNAVAILABLE = "errors.deadletterqueue.unavailable"
HOUR_MS = 3_600_000
MISSING = f"topic dlq.t does not exist, and {AUTO_CREATE} is false"


class Orders:
    """A cluster with the topic "t", a group "g" with locks of an hour, and one consumer. The queue is "dlq.t", missing
    unless it is created: with several brokers on another one than "t"."""

    def __init__(self, *, brokers: int = 1, group: dict[str, object] | None = None, replicas: int = 0) -> None:
        hour = {"group.share.max.record.lock.duration.ms": HOUR_MS, "group.share.record.lock.duration.ms": HOUR_MS}
        self.cluster = Cluster(brokers=brokers, seed=11, config=hour)
        self.cluster.create_topic("t", replication_factor=brokers)
        if replicas:
            self.cluster.create_topic("dlq.t", configs=ENABLED, replication_factor=replicas)
        first: dict[str, object] = {"share.auto.offset.reset": "earliest", NAME: "dlq.t"}
        copy = {"errors.deadletterqueue.copy.record.enable": "true"}
        self.configure({**first, **copy, **(group or {})})
        self.conf = {"bootstrap.servers": self.cluster.bootstrap_servers}
        self.consumer = self.join()
        self.held: dict[int, Any] = {}

    def create_queue(self, **configs: str) -> None:
        self.cluster.create_topic("dlq.t", configs={**ENABLED, **configs})
        self.cluster.advance(1000)

    def configure(self, configs: dict[str, object]) -> None:
        self.cluster.configure_group("g", configs)

    def configure_brokers(self, configs: dict[str, str | None]) -> None:
        with Admin(self.conf) as admin:
            admin.incremental_alter_configs("broker", "", configs)

    def produce(self, *values: str, transaction: str = "") -> None:
        """Produce one batch; a transaction is committed or aborted ("commit", "abort")."""
        conf = {**self.conf, "linger.ms": 1000, **({"transactional.id": "x"} if transaction else {})}
        with Producer(conf) as producer:
            if transaction:
                producer.init_transactions()
                producer.begin_transaction()
            for value in values:
                producer.produce("t", value)
            assert producer.flush(60) == 0
            if transaction:
                getattr(producer, f"{transaction}_transaction")()

    def join(self) -> ShareConsumer:
        consumer = ShareConsumer({**self.conf, "group.id": "g", "share.acknowledgement.mode": "explicit"})
        consumer.subscribe(["t"])
        return consumer

    def deliver_too_often(self, count: int) -> None:
        """Two consumers, one after the other, take `count` records and crash. They do not acknowledge gaps either."""
        for _ in range(2):
            self.take(count)
            self.cluster.crash(self.consumer)
            self.cluster.advance(HOUR_MS)
            self.consumer = self.join()
        assert len(self.consumer.poll(10)) == 0

    def restart(self, **configs: str) -> None:
        """Kill the broker and the consumer, and start others."""
        self.cluster.crash(self.consumer)
        self.cluster.kill_broker(0)
        if configs:
            self.configure({NAME: configs["name"]})
        self.cluster.start_broker(0)
        self.consumer = self.join()

    def leader(self, topic: str) -> int:
        return self.cluster.image.topics[topic].partitions[0].leader

    def take(self, count: int) -> list[int]:
        self.held = {message.offset(): message for message in take(self.consumer, count)}
        return sorted(self.held)

    def acknowledge(self, kind: int, *offsets: int) -> None:
        """Acknowledge held records: success within the time of a state write."""
        for offset in offsets:
            self.consumer.acknowledge(self.held.pop(offset), kind)
        assert not any(self.consumer.commit_sync().values())

    def ten(self) -> None:
        self.produce(*(f"value {n}" for n in range(10)))
        self.take(10)

    # ---- observations ------------------------------------------------------------------------------------------------

    def letters(self) -> list[tuple[int, bytes | None]]:
        """(source offset, value) of all records in the queue, in order."""
        log = self.cluster.log("dlq.t", 0)
        batches = log.read(0, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED).batches
        return [
            (int(dict(record.headers)["__dlq.errors.offset"] or b""), record.value)
            for batch in batches
            for record in decode(batch)
        ]

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.letters()]

    def events(self, kind: type) -> list[Any]:
        return [entry.event for entry in self.cluster.journal.select(kind, group="g")]

    def written(self) -> list[str]:
        """The state writes, as Kafka's examples show them: start offset, batches, delivery complete count."""
        return [
            " ".join(
                [
                    str(e.start_offset),
                    *(f"{first}-{last}/{state}/{count}" for first, last, state, count in e.state_batches),
                    str(e.delivery_complete_count),
                ]
            )
            for e in self.events(StateWritePrepared)
        ]

    def meters(self) -> dict[str, float]:
        """The counts of the meters of dead-letter queues, by the part of their names that differs."""
        prefix = "DeadLetterQueue"
        found = {m: count for m, count in metrics(self.cluster).items() if m.name.startswith(prefix)}
        assert {m.tags for m in found} <= {(("group", "g"),)}
        return {m.name.removeprefix(prefix): count for m, count in found.items() if m.attribute == "Count"}

    @property
    def waits(self) -> list[str]:
        return [event.reason for event in self.events(DeadLettersWaiting)]

    @property
    def given_up(self) -> list[tuple[int, int]]:
        return [(event.first, event.end) for event in self.events(DeadLettersGivenUp)]

    @property
    def start(self) -> int:
        return view(self.cluster, "g", "t").state().spso

    def lag(self) -> int:
        with Admin(self.conf) as admin:
            return admin.lag("g").total


@pytest.fixture
def orders() -> Iterator[Orders]:
    made = Orders()
    with made.cluster:
        yield made


def test_example_20_letters_wait_for_their_queue(orders: Orders) -> None:
    """Other records of the share-partition go on meanwhile; the journal has the reason of the wait."""
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.acknowledge(ACCEPT, 3)
    orders.cluster.advance(600_000)
    assert orders.written() == ["0 0-2/3/1 0", "0 3-3/2/1 1"]
    assert orders.waits == [MISSING]
    assert (orders.start, orders.lag()) == (0, 9)
    orders.produce("value 10")
    assert [message.offset() for message in take(orders.join(), 1)] == [10]
    in_flight = [count for m, count in metrics(orders.cluster).items() if m.name == "InFlightMessageCount"]
    assert in_flight == [11], "as Kafka's 7: all from the SPSO on, 3 and the archiving ones included"
    orders.create_queue()
    assert orders.letters() == [(0, b"value 0"), (1, b"value 1"), (2, b"value 2")]
    assert orders.written()[2:] == ["0 0-2/4/1 4"]
    assert orders.start == 4


def test_records_in_the_queue_and_requests_to_it_are_counted(orders: Orders) -> None:
    """A check that fails counts nowhere. Both letters travel in one request: Kafka would count two."""
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 5)
    orders.cluster.advance(10_000)
    assert orders.waits == [MISSING]
    assert orders.meters() == {}
    orders.create_queue()
    assert orders.meters() == {"RecordCount": 3, "TotalProduceRequestsPerSec": 1}


def test_example_16_requests_are_counted_by_rounds(orders: Orders) -> None:
    """The counts of Kafka."""
    orders.configure({"errors.deadletterqueue.copy.record.enable": "false"})
    orders.create_queue(**{"max.message.bytes": "1000"})
    orders.produce(*map(str, range(12)))
    orders.take(12)
    orders.acknowledge(REJECT, *range(12))
    orders.cluster.advance(1000)
    assert orders.meters() == {"RecordCount": 12, "TotalProduceRequestsPerSec": 3}


@pytest.mark.parametrize(("unavailable", "records"), [("archive", 0), ("wait", 1)])
def test_requests_that_kafka_gives_up_are_counted_as_failed(unavailable: str, records: int) -> None:
    """Those that Kafka repeats are not, up to the fifth."""
    made = Orders(group={UNAVAILABLE: unavailable})
    with made.cluster:
        made.ten()
        made.create_queue()
        made.cluster.fail_appends("dlq.t", Errors.NOT_LEADER_OR_FOLLOWER, 6 if records else 5)
        made.acknowledge(REJECT, 0)
        made.cluster.advance(14_000)
        assert made.meters() == {"TotalProduceRequestsPerSec": 4}
        made.cluster.advance(120_000)
        written = {"RecordCount": 1} if records else {}
        total = 7 if records else 5
        assert made.meters() == {**written, "TotalProduceRequestsPerSec": total, "FailedProduceRequestsPerSec": 1}
        made.cluster.fail_appends("dlq.t", Errors.TOPIC_AUTHORIZATION_FAILED)
        made.acknowledge(REJECT, 1)
        made.cluster.advance(1)
        assert made.meters()["FailedProduceRequestsPerSec"] == 2


def test_example_21_letters_go_on_after_a_restart(orders: Orders) -> None:
    """The first fetch resumes them; they are written once."""
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.acknowledge(ACCEPT, 3)
    orders.restart()
    orders.create_queue()
    assert orders.offsets == []
    orders.take(6)
    orders.cluster.advance(1000)
    assert orders.letters() == [(0, b"value 0"), (1, b"value 1"), (2, b"value 2")]
    assert orders.written() == ["0 0-2/3/1 0", "0 3-3/2/1 1", "0 0-2/4/1 4"]
    assert orders.start == 4
    orders.acknowledge(ACCEPT, 4, 5, 6)
    assert orders.written()[3:] == ["4 4-6/2/1 3"]


def test_example_22_a_queue_that_is_taken_away_ends_the_wait(orders: Orders) -> None:
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.configure({NAME: ""})
    orders.cluster.advance(1000)
    assert orders.given_up == [(0, 3)]
    assert (orders.start, orders.lag()) == (3, 7)


def test_example_22_a_queue_that_is_taken_away_before_a_restart(orders: Orders) -> None:
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.restart(name="")
    orders.take(7)
    orders.cluster.advance(1000)
    assert orders.given_up == [(0, 3)]
    assert orders.start == 3


def test_example_23_a_reload_writes_no_duplicates(orders: Orders) -> None:
    """The last member leaves and its connection closes: the share-partition is dropped, and loaded by the next one.
    Kafka writes the letters twice."""
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2, 3)
    orders.cluster.advance(70_000)
    orders.consumer.close()
    orders.consumer = orders.join()
    joined_ms = orders.cluster.now_ms
    orders.take(6)
    assert orders.cluster.now_ms - joined_ms < 6000, "the reload has waited for an attempt to write letters"
    orders.create_queue()
    assert orders.offsets == [0, 1, 2, 3]
    assert orders.start == 4


def test_letters_go_on_after_the_last_member_has_left(orders: Orders) -> None:
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2, 3)
    orders.consumer.close()
    orders.cluster.advance(1000)
    orders.create_queue()
    assert orders.offsets == [0, 1, 2, 3]
    assert orders.lag() == 6
    orders.consumer = orders.join()
    assert orders.take(6) == [4, 5, 6, 7, 8, 9]
    assert orders.start == 4


def close(cluster: Cluster, consumer: ShareConsumer) -> None:
    consumer.close()
    cluster.advance(10_000)


def crash(cluster: Cluster, consumer: ShareConsumer) -> None:
    cluster.crash(consumer)
    cluster.advance(HOUR_MS)


@pytest.mark.parametrize("leave", [close, crash])
def test_letters_go_on_if_the_last_member_leaves_before_their_state_is_durable(orders: Orders, leave: Any) -> None:
    """Its connection closes while the state write of its session's end is under way: the share-partition is dropped."""
    orders.create_queue()
    orders.configure({"share.delivery.count.limit": 2})
    orders.cluster.delay_appends(SHARE_STATE_TOPIC, 500)
    orders.produce(*"abcd")
    orders.take(4)
    leave(orders.cluster, orders.consumer)
    orders.consumer = orders.join()
    orders.take(4)
    leave(orders.cluster, orders.consumer)
    assert orders.offsets == [0, 1, 2, 3]
    assert orders.lag() == 0


class HeldAnswers:
    """Answers to produce requests, held on the way back to the writer of the queue."""

    def __init__(self, orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
        self._network = orders.cluster.network
        self._answer = self._network.answer
        self._held: list[tuple[Any, int, Any]] = []
        self._holding = True
        monkeypatch.setattr(self._network, "answer", self._take)

    def _take(self, broker: Any, exchange_id: int, response: Any) -> None:
        if self._holding and isinstance(response, ProduceResponse):
            self._held.append((broker, exchange_id, response))
        else:
            self._answer(broker, exchange_id, response)

    def until_held(self, orders: Orders) -> None:
        """Wait for the first round: the first producer of a cluster waits for its coordinator."""
        assert orders.cluster.wait(lambda: bool(self._held), 5)

    def release(self, *, lose: bool = False) -> None:
        """Deliver the held answers, or lose them; later ones are not held."""
        self._holding = False
        for held in () if lose else self._held:
            self._answer(*held)


def test_a_reload_waits_for_the_request_that_is_under_way(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue has the letters when the share-partition is dropped, the state does not show it yet."""
    orders.ten()
    orders.create_queue()
    answers = HeldAnswers(orders, monkeypatch)
    orders.acknowledge(REJECT, 0, 1, 2, 3)
    answers.until_held(orders)
    orders.consumer.close()
    orders.consumer = orders.join()
    assert len(orders.consumer.poll(5)) == 0
    answers.release()
    orders.take(6)
    orders.cluster.advance(10_000)
    assert orders.offsets == [0, 1, 2, 3]
    assert orders.start == 4


def test_a_round_whose_answer_is_lost_is_not_written_twice(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent again as it was, and the log recognizes it. Kafka writes it twice."""
    orders.ten()
    orders.create_queue()
    answers = HeldAnswers(orders, monkeypatch)
    orders.acknowledge(REJECT, 0, 1, 2, 3)
    orders.acknowledge(REJECT, 4)
    orders.cluster.advance(20_000)
    answers.release(lose=True)
    orders.cluster.advance(60_000)
    assert orders.waits == ["dlq.t-0 does not answer: REQUEST_TIMED_OUT"]
    assert orders.offsets == [0, 1, 2, 3, 4]
    assert orders.start == 5


# ---- another broker leads --------------------------------------------------------------------------------------------


class LateRounds:
    """Produce requests to the queue that are held on their way."""

    def __init__(self, orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
        self._orders = orders
        self._deliver = orders.cluster.network._hand_over
        self._held: list[tuple[Any, ...]] = []
        self._holding = True
        monkeypatch.setattr(orders.cluster.network, "_hand_over", self._take)

    def _take(self, broker: Any, exchange_id: int, request: Any, client: Any) -> None:
        if self._holding and isinstance(request, ProduceRequest):
            self._held.append((broker, exchange_id, request, client))
        else:
            self._deliver(broker, exchange_id, request, client)

    def until_held(self) -> None:
        """Wait for the first one; later ones are not held."""
        assert self._orders.cluster.wait(lambda: bool(self._held), 5)
        self._holding = False

    def arrive(self) -> None:
        for held in self._held:
            self._orders.cluster.loop.enter(lambda held=held: self._deliver(*held))  # type: ignore[misc]
        self._orders.cluster.advance(60_000)


def kill(orders: Orders) -> None:
    orders.cluster.kill_broker(orders.leader("t"))


def elect_another(orders: Orders) -> None:
    """The leader goes on as a broker."""
    before = orders.leader("t")
    orders.cluster.elect_preferred_leaders()
    assert orders.leader("t") != before


def take_over(orders: Orders) -> None:
    """Another consumer lets the next leader load the share-partition."""
    orders.cluster.crash(orders.consumer)
    orders.consumer = orders.join()


@pytest.fixture
def moving() -> Iterator[Orders]:
    """A leader that is not the preferred one, with ten records acquired; the queue is on another broker."""
    orders = Orders(brokers=3, replicas=1)
    with orders.cluster:
        others = {orders.leader("t"), orders.leader("dlq.t")}
        for broker in others:
            orders.cluster.kill_broker(broker)
        for broker in others:
            orders.cluster.start_broker(broker)
        assert orders.leader("t") not in others
        orders.ten()
        yield orders


@pytest.mark.parametrize("move", [kill, elect_another])
def test_a_round_that_arrives_after_those_of_the_next_leader_is_refused(
    moving: Orders, monkeypatch: pytest.MonkeyPatch, move: Callable[[Orders], None]
) -> None:
    """BEHAVIOUR.md, 2.15.10. Kafka writes the letters twice."""
    late = LateRounds(moving, monkeypatch)
    moving.acknowledge(REJECT, 0, 1, 2, 3)
    late.until_held()
    moving.acknowledge(REJECT, 4)
    move(moving)
    take_over(moving)
    assert moving.take(5) == [5, 6, 7, 8, 9]
    moving.cluster.advance(10_000)
    assert moving.offsets == [0, 1, 2, 3, 4]
    late.arrive()
    assert moving.offsets == [0, 1, 2, 3, 4]
    assert moving.start == 5
    moving.acknowledge(REJECT, 5)
    moving.cluster.advance(10_000)
    assert moving.offsets == [0, 1, 2, 3, 4, 5]


def test_a_round_that_is_stored_before_that_of_the_next_leader_is_written_again(
    moving: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEHAVIOUR.md, 2.15.16: the state does not show that it is in the queue."""
    answers = HeldAnswers(moving, monkeypatch)
    moving.acknowledge(REJECT, 0, 1, 2, 3)
    answers.until_held(moving)
    answers.release(lose=True)
    kill(moving)
    take_over(moving)
    moving.take(6)
    moving.cluster.advance(10_000)
    assert moving.offsets == [0, 1, 2, 3, 0, 1, 2, 3]
    assert moving.start == 4


@pytest.mark.parametrize("connected", [True, False])
def test_a_leader_that_has_a_successor_gives_its_letters_up_to_it(orders: Orders, connected: bool) -> None:
    """It learns that from its writer, before metadata show it; with `connected`, it drops the share-partition."""
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2, 3)
    if not connected:
        orders.consumer.close()
    topic_id = orders.cluster.image.topics["t"].topic_id
    part = ReadShareGroupStateRequest.Partition(partition=0, leader_epoch=9)
    topic = ReadShareGroupStateRequest.Topic(topic_id=topic_id, partitions=(part,))
    read = Requester(orders.cluster).ask(ReadShareGroupStateRequest(group_id="g", topics=(topic,)), 0)
    assert read.results[0].partitions[0].error_code is Errors.NONE
    orders.create_queue()
    orders.cluster.advance(60_000)
    assert orders.offsets == []
    reasons = [event.reason for event in orders.events(SharePartitionDropped)]
    assert reasons[:1] == ["a later leader has read its state" if connected else "no member of the group is connected"]
    if connected:
        orders.cluster.crash(orders.consumer)
    orders.consumer = orders.join()
    orders.consumer.poll(10)
    reasons = [event.reason for event in orders.events(SharePartitionDropped)]
    assert reasons[-1] == "its state could not be read: FENCED_LEADER_EPOCH"


def test_one_request_creates_the_queue_for_all_share_partitions() -> None:
    """In Kafka each letter that waits sends its own."""
    with Cluster(brokers=1, seed=7, trace_messages=True) as cluster:
        stage = DeadLetterStage(cluster.bootstrap_servers, lambda what: what, unavailable="wait")
        with stage.stack:
            stage.create(5, queue=None)
            for partition in range(5):
                stage.write("a", "b", partition=partition)
            stage.reject_as_they_come(10)
            stage.admin.incremental_alter_configs("broker", "", {AUTO_CREATE: "true"})
        cluster.advance(10_000)
        sent: list[Any] = [entry.event for entry in cluster.journal.select(RequestSent)]
        apis = [event.api for event in sent if event.source.endswith("dead-letter-writer")]
        assert apis.count("CreateTopicsRequest") == 1
        assert cluster.log("dlq.source", 0).log_end_offset == 10


def test_example_24_letters_keep_what_the_log_has_lost(orders: Orders) -> None:
    """The log is cut while letters wait: the queue gets their content."""
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.acknowledge(RELEASE, 3, 4, 5)
    with Admin(orders.conf) as admin:
        admin.delete_records({("t", 0): 5})
    (again,) = take(other := orders.join(), 1)
    assert (again.offset(), again.delivery_count()) == (5, 2)
    orders.acknowledge(ACCEPT, 6)
    assert orders.written()[2:] == ["5 6-6/2/1 1"]
    orders.create_queue()
    assert orders.letters() == [(0, b"value 0"), (1, b"value 1"), (2, b"value 2")]
    assert orders.written()[3:] == ["5 1"]
    other.acknowledge(again, ACCEPT)
    other.commit_sync()
    orders.acknowledge(ACCEPT, *orders.held)
    assert orders.start == 10


def test_records_that_the_log_has_lost_before_a_restart_go_without_content(orders: Orders) -> None:
    orders.ten()
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.restart()
    with Admin(orders.conf) as admin:
        admin.delete_records({("t", 0): 2})
    orders.take(7)
    orders.create_queue()
    assert orders.letters() == [(0, None), (1, None), (2, b"value 2")]


@pytest.mark.without("control-records", "its own records take offsets")
def test_example_25_letters_count_as_locks() -> None:
    made = Orders(group={"share.partition.max.record.locks": 100})
    with made.cluster:
        made.produce(*map(str, range(120)))
        made.take(120)
        made.acknowledge(REJECT, *range(120))
        made.produce("more")
        assert len(made.consumer.poll(5)) == 0
        made.create_queue()
        assert made.take(1) == [120]
        assert made.offsets == list(range(120))


def test_example_26_a_queue_without_a_leader() -> None:
    """Its only broker is away for longer than Kafka retries; the letters are written when it is back."""
    made = Orders(brokers=3, replicas=1)
    with made.cluster:
        made.ten()
        away = made.leader("dlq.t")
        assert away != made.leader("t")
        made.cluster.kill_broker(away)
        made.cluster.advance(5000)
        made.acknowledge(REJECT, 0, 1)
        made.cluster.advance(120_000)
        assert made.waits == ["partition 0 of dlq.t has no leader"]
        made.cluster.start_broker(away)
        made.cluster.advance(1000)
        assert made.offsets == [0, 1]


def test_example_26_with_the_retries_of_kafka() -> None:
    """Five attempts: 2, 4, 8 and 16 s, each a fifth more or less, then the letters are given up."""
    made = Orders(group={UNAVAILABLE: "archive"})
    with made.cluster:
        made.ten()
        made.create_queue()
        made.cluster.fail_appends("dlq.t", Errors.NOT_LEADER_OR_FOLLOWER, 4)
        made.acknowledge(REJECT, 0)
        made.cluster.advance(37_000)
        assert made.offsets == [0]
        made.cluster.fail_appends("dlq.t", Errors.NOT_LEADER_OR_FOLLOWER, 5)
        made.acknowledge(REJECT, 1)
        made.cluster.advance(23_900)
        assert made.given_up == []
        made.cluster.advance(13_000)
        assert made.given_up == [(1, 2)]
        assert made.offsets == [0]
        assert made.start == 2


@pytest.mark.parametrize(
    "error", [Errors.NOT_ENOUGH_REPLICAS, Errors.TOPIC_AUTHORIZATION_FAILED], ids=["replicas", "example 28"]
)
def test_other_refusals_are_final_in_kafka_and_waited_for_here(error: Errors) -> None:
    made = Orders()
    with made.cluster:
        made.ten()
        made.create_queue()
        made.cluster.fail_appends("dlq.t", error)
        made.acknowledge(REJECT, 0)
        made.cluster.advance(1000)
        made.configure({UNAVAILABLE: "archive"})
        made.cluster.advance(60_000)
        assert made.offsets == [0]
        made.cluster.fail_appends("dlq.t", error)
        made.acknowledge(REJECT, 1)
        made.cluster.advance(1)
        assert made.given_up == [(1, 2)]


def test_the_order_of_offsets_is_kept(orders: Orders) -> None:
    """Example 12: the queue is created by the first of several letters. In Kafka they overtake each other."""
    orders.configure_brokers({AUTO_CREATE: "true"})
    orders.ten()
    orders.consumer.acknowledge(orders.held[0], REJECT)
    orders.consumer.acknowledge(orders.held[1], ACCEPT)
    orders.acknowledge(REJECT, 2, 3, 4, 5, 6)
    orders.cluster.advance(60_000)
    assert orders.offsets == [0, 2, 3, 4, 5, 6]
    assert orders.written()[0] == "0 0-0/3/1 1-1/2/1 2-6/3/1 1"


def test_example_8_markers_do_not_get_into_the_queue() -> None:
    """Kafka sends the markers of a batch that is delivered too often, too."""
    made = Orders(group={"share.delivery.count.limit": 2})
    with made.cluster:
        made.create_queue()
        made.produce("0", "1", transaction="commit")
        made.produce("3", "4", transaction="abort")
        made.produce("6", "7", transaction="commit")
        made.deliver_too_often(6)
        made.cluster.advance(1000)
        assert made.letters() == [(n, str(n).encode()) for n in (0, 1, 3, 4, 6, 7)]
        assert made.lag() == 0


def test_example_9_compacted_offsets_do_not_get_into_the_queue() -> None:
    made = Orders(group={"share.delivery.count.limit": 2})
    with made.cluster, Admin(made.conf) as admin, Producer({**made.conf, "linger.ms": 1000}) as producer:
        made.create_queue()
        admin.incremental_alter_configs(
            "topic", "t", {"cleanup.policy": "compact", "segment.bytes": "14", "min.cleanable.dirty.ratio": "0"}
        )
        for key in ("a", "b", "a", "c", "b", "d", "e"):
            producer.produce("t", key, key)
        producer.flush(60)
        producer.produce("t", "end", "z")
        producer.flush(60)
        made.cluster.clean_logs()
        made.deliver_too_often(6)
        made.cluster.advance(1000)
        assert made.offsets == [2, 3, 4, 5, 6, 7]


def test_example_15_a_record_that_is_too_large_goes_without_content(orders: Orders) -> None:
    """Kafka loses it with all that follow it. Its 1,750 bytes fit here, as the names in the headers are shorter."""
    orders.create_queue(**{"max.message.bytes": "2000"})
    orders.produce(*("v" * size for size in (100, 1500, 1850, 1985, 3000, 100)))
    orders.take(6)
    orders.acknowledge(REJECT, *range(6))
    orders.cluster.advance(1000)
    assert [(offset, value and len(value)) for offset, value in orders.letters()] == [
        (0, 100),
        (1, 1500),
        (2, None),
        (3, None),
        (4, None),
        (5, 100),
    ]
    assert orders.start == 6


def test_example_14_other_records_of_a_batch_are_not_lost(orders: Orders) -> None:
    """A compacted queue refuses one record of a batch: in Kafka all of them are lost."""
    orders.configure({UNAVAILABLE: "archive"})
    orders.create_queue(**{"cleanup.policy": "compact"})
    with Producer({**orders.conf, "linger.ms": 1000}) as producer:
        for number in range(6):
            producer.produce("t", "v", None if number == 2 else str(number))
        producer.flush(60)
    orders.take(6)
    orders.acknowledge(REJECT, *range(6))
    orders.cluster.advance(1000)
    assert orders.offsets == [0, 1, 3, 4, 5]
    assert orders.given_up == [(2, 3)]


def test_a_refused_record_waits_with_those_behind_it(orders: Orders) -> None:
    orders.create_queue(**{"cleanup.policy": "compact"})
    orders.ten()
    orders.acknowledge(REJECT, 0, 1)
    orders.cluster.advance(100_000)
    assert orders.waits == ["the dead-letter queue is compacted, and the record has no key"]
    with Admin(orders.conf) as admin:
        admin.incremental_alter_configs("topic", "dlq.t", {"cleanup.policy": "delete"})
    orders.cluster.advance(1000)
    assert orders.offsets == [0, 1]


@pytest.mark.without("control-records", "its own records are in the log")
def test_example_19_the_source_is_no_dead_letter_queue_of_itself(orders: Orders) -> None:
    """In Kafka each rejected copy is rejected again, for ever."""
    orders.configure_brokers({PREFIX: ""})
    orders.configure({NAME: "t"})
    orders.ten()
    orders.acknowledge(REJECT, 0)
    orders.cluster.advance(60_000)
    assert orders.waits == ["the dead-letter queue is the topic of the records"]
    assert orders.cluster.log("t", 0).log_end_offset == 10


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("__consumer_offsets", "DLQ topic name must not start with '__'", id="internal"),
        pytest.param("dlq.bad name!", "'dlq.bad name!' is not a legal topic name", id="example 11"),
        pytest.param("dlq." + "x" * 300, "is not a legal topic name", id="too long"),
        pytest.param("letters", f"'letters' does not start with 'dlq.' ({PREFIX})", id="foreign prefix"),
    ],
)
def test_a_name_that_no_queue_can_have_is_refused(orders: Orders, name: str, why: str) -> None:
    with pytest.raises(KafkaException) as refused:
        orders.configure({NAME: name})
    error = refused.value.args[0]
    assert error.code() == Errors.INVALID_CONFIG
    assert why in error.str()


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        pytest.param({}, f"topic dlq.t is not a dead-letter queue: {'.'.join(ENABLED)} is not true", id="not enabled"),
        pytest.param({**ENABLED}, f"'dlq.t' does not start with 'other' ({PREFIX})", id="a new prefix"),
    ],
)
def test_example_10_a_queue_that_may_not_be_written(orders: Orders, prepare: dict[str, str], why: str) -> None:
    orders.cluster.create_topic("dlq.t", configs=prepare)
    if prepare:
        orders.configure_brokers({PREFIX: "other"})
    orders.ten()
    orders.acknowledge(REJECT, 0)
    orders.cluster.advance(1000)
    assert orders.waits == [why]
    assert orders.written() == ["0 0-0/3/1 0"]
    with Admin(orders.conf) as admin:
        admin.incremental_alter_configs("topic", "dlq.t", ENABLED)
    orders.configure_brokers({PREFIX: "dlq."})
    orders.cluster.advance(1000)
    assert orders.offsets == [0]


def test_bad_configurations_are_refused(orders: Orders) -> None:
    copy = "errors.deadletterqueue.copy.record.enable"
    with pytest.raises(KafkaException) as refused:
        orders.configure({copy: "yes"})
    error = refused.value.args[0]
    assert (error.code(), error.str()) == (Errors.INVALID_CONFIG, f"{copy}='yes': must be true or false")
    with pytest.raises(ConfigException, match=r"manager\.class\.name='x': unknown broker configuration"):
        Cluster(brokers=1, config={"group.share.dlq.manager.class.name": "x"})


def test_letters_are_written_now_and_uncompressed(orders: Orders) -> None:
    """As in Kafka, except for the producer id, by which the log recognizes a repeated round."""
    orders.ten()
    orders.cluster.advance(10_000)
    orders.create_queue()
    began_ms = orders.cluster.now_ms
    orders.acknowledge(REJECT, 0, 1, 2)
    orders.cluster.advance(1000)
    read = orders.cluster.log("dlq.t", 0).read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED)
    (batch,) = read.batches
    assert (batch.data[16], batch.attributes, batch.record_count) == (2, 0, 3), "magic, no compression, no transaction"
    assert batch.producer_id >= 0
    times = {record.timestamp for record in decode(batch)}
    assert len(times) == 1
    assert began_ms <= times.pop() <= orders.cluster.now_ms - 900, "not those of the source"


def test_letters_of_different_groups_share_a_queue(orders: Orders) -> None:
    orders.create_queue()
    orders.cluster.configure_group("h", {"share.auto.offset.reset": "earliest", NAME: "dlq.t"})
    orders.ten()
    orders.acknowledge(REJECT, 0)
    other = ShareConsumer({**orders.conf, "group.id": "h", "share.acknowledgement.mode": "explicit"})
    other.subscribe(["t"])
    for message in take(other, 10)[:2]:
        other.acknowledge(message, REJECT)
    other.commit_sync()
    orders.cluster.advance(1000)
    assert orders.letters() == [(0, b"value 0"), (0, None), (1, None)]
