"""Transactional acknowledgements on a cluster: shareq/leader/experiments/BEHAVIOUR.md, section 7, and its examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq import Admin, Cluster, Message, Producer, ShareConsumer
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.ids import SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.states import IsolationLevel
from tests.log.committed import committed_values

ENABLED: dict[str, object] = {"shareq.experiments.enable": True, "transaction.state.log.min.isr": 1}
LIMIT = 2


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        prepare(made)
        yield made


def prepare(made: Cluster, records: int = 5, **configs: object) -> None:
    """Topics "t" with records "0", "1", ... and "out", and the group "g" with a limit of two deliveries."""
    for topic in ("t", "out"):
        made.create_topic(topic, replication_factor=3)
    made.configure_group("g", {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": LIMIT, **configs})
    with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
        for number in range(records):
            producer.produce("t", f"{number}")
        assert producer.flush() == 0


def consumer(cluster: Cluster, mode: str = "implicit", **conf: Any) -> ShareConsumer:
    modes = {"share.acknowledgement.mode": mode}
    made = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", **modes, **conf})
    made.subscribe(["t"])
    return made


def transactional(cluster: Cluster, transactional_id: str = "loop", **conf: Any) -> Producer:
    made = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": transactional_id, **conf})
    made.init_transactions()
    return made


class Loop:
    """A consumer and a producer that read, process and write in transactions."""

    def __init__(self, cluster: Cluster, name: str = "loop", mode: str = "implicit", **conf: Any) -> None:
        self.cluster = cluster
        self.consumer = consumer(cluster, mode, **conf)
        self.producer = transactional(cluster, name)
        self.held: dict[int | None, Message] = {}

    def poll(self, timeout: float = 20) -> list[tuple[int | None, int | None]]:
        """(offset, delivery count) of the next records."""
        messages = self.consumer.poll(timeout)
        self.held |= {message.offset(): message for message in messages}
        return [(message.offset(), message.delivery_count()) for message in messages]

    def stage(self, *offsets: int, kind: str = "ACCEPT", timeout: float = -1) -> None:
        """In a transaction: write the records to "out", and acknowledge them."""
        self.producer.begin_transaction()
        for offset in offsets:
            self.producer.produce("out", self.held[offset].value())
        self.send(*offsets, kind=kind, timeout=timeout)

    def send(self, *offsets: int, kind: str = "ACCEPT", timeout: float = -1) -> None:
        pairs = [(self.held[offset], kind) for offset in offsets]
        self.producer.send_share_acknowledgements_to_transaction(pairs, self.consumer.share_group_metadata(), timeout)

    def refused(self, *offsets: int, **more: Any) -> int:
        with pytest.raises(KafkaException) as failure:
            self.send(*offsets, **more)
        code = failure.value.error.code()
        assert isinstance(code, int)
        return code


def runs(cluster: Cluster) -> str:
    """What the leader has in flight, and below: "0-2 ACQUIRED(1) staged, 3-4 ACQUIRED(1)"."""
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        first = admin.browse("g", "t", 0).first
        found = []
        for run in first.runs.values():
            span = f"{run.first_offset}-{run.last_offset}" if run.first_offset < run.last_offset else run.first_offset
            staged = " staged" if run.reason else ""
            found.append(f"{span} {run.state}({run.delivery_count}){staged}")
        return f"{first.spso}: " + ", ".join(found)


def lag(cluster: Cluster) -> int | None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        (found,) = admin.list_share_group_offsets("g").values()
        return found.lag


def output(cluster: Cluster) -> list[str]:
    """What readers of committed records see of "out"."""
    return committed_values(cluster.log("out", 0))


def settled(cluster: Cluster, image: str) -> None:
    """Wait until the leader has this in flight."""
    for _ in range(100):
        if runs(cluster) == image:
            return
        cluster.advance(50)
    assert runs(cluster) == image


# ---- the worked examples ---------------------------------------------------------------------------------------------


def test_example_1_staged_records_are_in_flight_and_not_done(cluster: Cluster) -> None:
    loop = Loop(cluster)
    assert loop.poll() == [(n, 1) for n in range(5)]
    loop.stage(0, 1, 2)
    assert runs(cluster) == "0: 0-2 ACQUIRED(1) staged, 3-4 ACQUIRED(1)"
    assert lag(cluster) == 5
    assert loop.consumer.commit_sync() != {}, "the consumer accepts the others"
    assert runs(cluster) == "0: 0-2 ACQUIRED(1) staged, 3-4 ACKNOWLEDGED(1)"
    assert lag(cluster) == 3
    loop.producer.commit_transaction()
    settled(cluster, "5: ")
    assert lag(cluster) == 0
    assert output(cluster) == ["0", "1", "2"]


def test_example_2_the_lock_may_end_meanwhile(cluster: Cluster) -> None:
    loop, other = Loop(cluster), Loop(cluster, "other")
    loop.poll()
    loop.stage(0, 1, 2)
    loop.consumer.commit_sync()
    cluster.advance(40_000)
    assert other.poll(5) == []
    assert runs(cluster) == "0: 0-2 ACQUIRED(1) staged, 3-4 ACKNOWLEDGED(1)"
    loop.producer.commit_transaction()
    settled(cluster, "5: ")


def test_example_3_after_an_abort_another_member_commits(cluster: Cluster) -> None:
    loop, other = Loop(cluster), Loop(cluster, "other")
    loop.poll()
    loop.stage(0, 1, 2)
    loop.consumer.commit_sync()
    loop.producer.abort_transaction()
    settled(cluster, "0: 0-2 AVAILABLE(1), 3-4 ACKNOWLEDGED(1)")
    assert other.poll() == [(0, 2), (1, 2), (2, 2)]
    other.stage(0, 1, 2)
    other.producer.commit_transaction()
    settled(cluster, "5: ")
    assert output(cluster) == ["0", "1", "2"]


def test_example_5_other_types_cannot_be_staged(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.producer.begin_transaction()
    with pytest.raises(ValueError, match=r"ack_type='RELEASE': must be ACCEPT \(1\) or REJECT \(3\)"):
        loop.send(0, kind="RELEASE")
    assert runs(cluster) == "0: 0-4 ACQUIRED(1)"


def test_example_6_an_abort_at_the_delivery_count_limit_archives(cluster: Cluster) -> None:
    loop = Loop(cluster)
    for count in (1, 2):
        assert loop.poll() == [(n, count) for n in range(5)]
        loop.stage(0, 1, 2, 3, 4)
        loop.producer.abort_transaction()
    settled(cluster, "5: ")
    cluster.advance(100)
    assert lag(cluster) == 0
    assert output(cluster) == []


def test_example_7_the_log_start_moves_meanwhile(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.stage(0, 1, 2, 3)
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.delete_records({("t", 0): 2}).check()
    loop.consumer.poll(1)
    loop.producer.commit_transaction()
    settled(cluster, "5: ")


@pytest.mark.parametrize("committed", [True, False])
def test_example_8_the_leader_moves(cluster: Cluster, committed: bool) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.stage(0, 1, 2)
    loop.consumer.commit_sync()
    cluster.kill_broker(cluster.image.topics["t"].partitions[0].leader)
    other = Loop(cluster, "other")
    assert other.poll(5) == []
    assert runs(cluster) == "0: 0-2 ACQUIRED(1) staged, 3-4 ACKNOWLEDGED(1)"
    if committed:
        loop.producer.commit_transaction()
        settled(cluster, "5: ")
    else:
        loop.producer.abort_transaction()
        assert other.poll() == [(0, 2), (1, 2), (2, 2)]
    assert output(cluster) == (["0", "1", "2"] if committed else [])


def test_a_rejected_record_is_archived_by_the_commit(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.producer.begin_transaction()
    loop.send(1, kind="REJECT")
    loop.producer.commit_transaction()
    settled(cluster, "0: 0 ACQUIRED(1), 1 ARCHIVED(1), 2-4 ACQUIRED(1)")


# ---- failovers -------------------------------------------------------------------------------------------------------


def coordinator_of(image: ClusterImage, topic: str, key: str) -> int:
    found = image.coordinator(topic, key)
    assert found is not None
    return found.broker_id


def state_key(cluster: Cluster) -> str:
    return str(SharePartitionKey("g", cluster.image.topics["t"].topic_id, 0))


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("topic", [SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC])
def test_a_coordinator_is_killed_while_the_transaction_is_open(cluster: Cluster, topic: str, committed: bool) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.stage(0, 1, 2)
    loop.consumer.commit_sync()
    key = "loop" if topic == TRANSACTION_STATE_TOPIC else state_key(cluster)
    cluster.kill_broker(coordinator_of(cluster.image, topic, key))
    (loop.producer.commit_transaction if committed else loop.producer.abort_transaction)()
    if committed:
        settled(cluster, "5: ")
    else:
        assert Loop(cluster, "other").poll() == [(0, 2), (1, 2), (2, 2)]
    assert output(cluster) == (["0", "1", "2"] if committed else [])


@pytest.mark.parametrize("committed", [True, False])
def test_7_12_the_leader_finds_the_end_that_a_coordinator_has_not_sent(committed: bool) -> None:
    """The share coordinator is on another broker than the leader, its messages to the leader are lost, and it dies."""
    with Cluster(brokers=3, seed=8, config=ENABLED) as cluster:
        prepare(cluster)
        loop = Loop(cluster)
        loop.poll()
        loop.stage(0, 1, 2)
        loop.consumer.commit_sync()
        leader = cluster.image.topics["t"].partitions[0].leader
        coordinator = coordinator_of(cluster.image, SHARE_STATE_TOPIC, state_key(cluster))
        assert leader != coordinator
        assert coordinator_of(cluster.image, TRANSACTION_STATE_TOPIC, "loop") != leader
        cluster.messages.cut(coordinator, leader)
        (loop.producer.commit_transaction if committed else loop.producer.abort_transaction)()
        cluster.advance(2_000)
        assert runs(cluster) == "0: 0-2 ACQUIRED(1) staged, 3-4 ACKNOWLEDGED(1)"
        cluster.kill_broker(coordinator)
        cluster.clear_faults()
        settled(cluster, "5: " if committed else "0: 0-2 AVAILABLE(1), 3-4 ACKNOWLEDGED(1)")


def test_x4_a_transaction_of_a_dead_client_is_aborted(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.producer.close()
    loop.producer = transactional(cluster, "short", **{"transaction.timeout.ms": 20_000})
    loop.poll()
    loop.stage(0, 1, 2)
    cluster.crash(loop.producer)
    cluster.crash(loop.consumer)
    cluster.advance(60_000)
    assert Loop(cluster, "other").poll() == [(n, 2) for n in range(5)]


# ---- clients ---------------------------------------------------------------------------------------------------------


def test_the_consumer_has_handed_the_records_over(cluster: Cluster) -> None:
    loop = Loop(cluster, mode="explicit")
    loop.poll()
    loop.stage(0, 1, 2)
    with pytest.raises(IllegalStateException, match=r"t \[0\] offset 1 is not in flight"):
        loop.consumer.acknowledge(loop.held[1])
    with pytest.raises(IllegalStateException, match="2 records of the last poll are not acknowledged"):
        loop.consumer.poll(0)
    for offset in (3, 4):
        loop.consumer.acknowledge(loop.held[offset])
    assert loop.poll(0) == []
    loop.producer.commit_transaction()
    settled(cluster, "5: ")


def test_a_record_that_the_consumer_does_not_hold_is_refused_before_anything_is_sent(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.consumer.commit_sync()
    loop.producer.begin_transaction()
    with pytest.raises(IllegalStateException, match=r"t \[0\] offset 0 is not in flight"):
        loop.send(0)
    loop.producer.commit_transaction()


def test_without_a_transaction_nothing_is_handed_over(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    with pytest.raises(IllegalStateException, match="send_share_acknowledgements_to_transaction is not possible"):
        loop.send(0)
    assert set(loop.consumer.commit_sync().values()) == {None}
    assert runs(cluster) == "5: "


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        ([b"record"], TypeError, "must be Messages, or pairs of a Message and its type, not bytes"),
        ("records", TypeError, "acknowledgements must be a list"),
        ([Message("t", 0, 0), (Message("t", 0, 0), "REJECT")], ValueError, "has two acknowledge types"),
        ([Message("t", 0)], ValueError, "offset=None is not a record's position"),
        ([(Message("t", 0, 0), 9)], ValueError, r"ack_type=9: must be ACCEPT \(1\) or REJECT \(3\)"),
    ],
)
def test_invalid_arguments(cluster: Cluster, given: Any, error: type[Exception], why: str) -> None:
    loop = Loop(cluster)
    loop.producer.begin_transaction()
    with pytest.raises(error, match=why):
        loop.producer.send_share_acknowledgements_to_transaction(given, loop.consumer.share_group_metadata())
    with pytest.raises(TypeError, match="group_metadata must be what share_group_metadata"):
        loop.producer.send_share_acknowledgements_to_transaction([], "g")  # type: ignore[arg-type]


def test_after_an_error_only_an_abort_is_possible(cluster: Cluster) -> None:
    """The lock of the records has ended, and another member has them."""
    loop, other = Loop(cluster), Loop(cluster, "other")
    loop.poll()
    cluster.advance(31_000)
    assert len(other.poll()) == 5
    loop.producer.begin_transaction()
    loop.producer.produce("out", "never")
    assert loop.refused(0, 1) == Errors.INVALID_RECORD_STATE
    with pytest.raises(KafkaException, match="abort_transaction"):
        loop.producer.commit_transaction()
    loop.producer.abort_transaction()
    other.stage(0, 1, 2, 3, 4)
    other.producer.commit_transaction()
    settled(cluster, "5: ")
    assert output(cluster) == ["0", "1", "2", "3", "4"]


def test_what_another_member_has_finished_below_the_spso_is_refused(cluster: Cluster) -> None:
    """Outside of transactions such an acknowledgement has no effect and no error; here its output would count twice."""
    loop, other = Loop(cluster), Loop(cluster, "other")
    loop.poll()
    cluster.advance(31_000)
    other.poll()
    other.stage(0, 1, 2, 3, 4)
    other.producer.commit_transaction()
    settled(cluster, "5: ")
    loop.producer.begin_transaction()
    loop.producer.produce("out", "twice")
    assert loop.refused(0) == Errors.INVALID_RECORD_STATE
    loop.producer.abort_transaction()
    assert output(cluster) == ["0", "1", "2", "3", "4"]


def test_a_fenced_producer_stages_nothing(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.producer.begin_transaction()
    transactional(cluster)
    assert loop.refused(0) in (Errors.PRODUCER_FENCED, Errors.INVALID_PRODUCER_EPOCH)
    assert runs(cluster) == "0: 0-4 ACQUIRED(1)"
    with pytest.raises(KafkaException):
        loop.producer.abort_transaction()


@pytest.mark.parametrize(
    ("change", "error"), [(-1, Errors.STALE_MEMBER_EPOCH), (1, Errors.FENCED_MEMBER_EPOCH)], ids=["stale", "future"]
)
def test_another_member_epoch_is_refused(cluster: Cluster, change: int, error: Errors) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.consumer._core._membership.member_epoch += change
    loop.producer.begin_transaction()
    assert loop.refused(0) == error
    assert runs(cluster) == "0: 0-4 ACQUIRED(1)"


def test_a_call_that_times_out_can_be_repeated(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    cluster.delay_appends(SHARE_STATE_TOPIC, 2_000)
    loop.producer.begin_transaction()
    assert loop.refused(0, 1, timeout=1) == KafkaError._TIMED_OUT
    with pytest.raises(IllegalStateException, match="other acknowledgements are still in progress"):
        loop.send(2)
    loop.send(0, 1)
    loop.producer.commit_transaction()
    settled(cluster, "2: 2-4 ACQUIRED(1)")


def test_a_commit_waits_for_acknowledgements_in_progress(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    cluster.delay_appends(SHARE_STATE_TOPIC, 2_000)
    loop.producer.begin_transaction()
    assert loop.refused(0, 1, timeout=1) == KafkaError._TIMED_OUT
    loop.producer.commit_transaction()
    cluster.clear_faults()
    settled(cluster, "2: 2-4 ACQUIRED(1)")


def test_an_abort_overtakes_acknowledgements_in_progress(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.stage(4)
    loop.producer.commit_transaction()
    cluster.delay_appends(SHARE_STATE_TOPIC, 2_000)
    loop.producer.begin_transaction()
    assert loop.refused(0, 1, timeout=1) == KafkaError._TIMED_OUT
    assert runs(cluster) == "0: 0-1 ACQUIRED(1) staged, 2-3 ACQUIRED(1), 4 ACKNOWLEDGED(1)"
    loop.producer.abort_transaction()
    loop.producer.begin_transaction()
    loop.producer.produce("out", "next")
    loop.producer.commit_transaction()
    settled(cluster, "0: 0-1 AVAILABLE(1), 2-3 ACQUIRED(1), 4 ACKNOWLEDGED(1)")


def test_several_calls_and_transactions(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.poll()
    loop.stage(0)
    loop.send(1, 2)
    loop.send(3, kind="REJECT")
    loop.producer.commit_transaction()
    loop.stage(4)
    loop.producer.commit_transaction()
    settled(cluster, "5: ")
    assert output(cluster) == ["0", "4"]


def test_read_committed_the_output_of_one_loop_is_the_input_of_the_next(cluster: Cluster) -> None:
    cluster.configure_group("h", {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"})
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "h"}
    with ShareConsumer(conf) as reader:
        reader.subscribe(["out"])
        assert list(reader.poll(5)) == []
        loop = Loop(cluster)
        loop.poll()
        loop.stage(0, 1)
        assert list(reader.poll(5)) == []
        loop.producer.commit_transaction()
        assert [message.value() for message in reader.poll(20)] == [b"0", b"1"]


# ---- where it is not possible ----------------------------------------------------------------------------------------


def test_0_1_without_experiments_the_request_is_unknown() -> None:
    with Cluster(brokers=1, seed=7) as plain:
        plain.create_topic("t")
        plain.create_topic("out")
        plain.configure_group("g", {"share.auto.offset.reset": "earliest"})
        with Producer({"bootstrap.servers": plain.bootstrap_servers}) as producer:
            producer.produce("t", "0")
        loop = Loop(plain)
        loop.poll()
        loop.producer.begin_transaction()
        with pytest.raises(KafkaException, match=r"UNSUPPORTED_VERSION.*need brokers of shareq with shareq\.exp"):
            loop.send(0)
        loop.producer.abort_transaction()


@pytest.mark.parametrize("persister", ["compacted-topic", "control-records", "none"])
def test_other_persisters_refuse(persister: str) -> None:
    with Cluster(brokers=3, seed=7, config=ENABLED, persister=persister) as made:
        prepare(made)
        loop = Loop(made)
        loop.poll()
        loop.producer.begin_transaction()
        with pytest.raises(KafkaException, match=f"need the persister state-topic, and this is {persister}"):
            loop.send(0)
        loop.producer.abort_transaction()
        assert runs(made) == "0: 0-4 ACQUIRED(1)"


# ---- with other experiments ------------------------------------------------------------------------------------------


def test_keys_the_lane_opens_at_the_marker() -> None:
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        made.create_topic("t")
        made.create_topic("out")
        made.configure_group("g", {"share.auto.offset.reset": "earliest", "shareq.key.ordering": "key"})
        with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for key in "AABA":
                producer.produce("t", key, key=key)
        loop = Loop(made)
        assert loop.poll() == [(0, 1), (2, 1)]
        loop.stage(0)
        assert loop.poll(5) == []
        loop.producer.commit_transaction()
        assert loop.poll() == [(1, 1)]
        loop.stage(1)
        loop.producer.abort_transaction()
        assert loop.poll() == [(1, 2)]


def test_7_11_keys_nothing_overtakes_what_is_staged_when_the_leader_moves() -> None:
    """The new leader does not know the keys of what is staged."""
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        made.create_topic("t", replication_factor=3)
        made.create_topic("out", replication_factor=3)
        made.configure_group("g", {"share.auto.offset.reset": "earliest", "shareq.key.ordering": "key"})
        with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for key in "ABAB":
                producer.produce("t", key, key=key)
        loop = Loop(made)
        assert loop.poll() == [(0, 1), (1, 1)]
        loop.stage(0)
        made.kill_broker(made.image.topics["t"].partitions[0].leader)
        other = Loop(made, "other")
        assert other.poll(5) == []
        loop.producer.abort_transaction()
        assert [offset for offset, _ in other.poll()] == [0, 1]


def test_rest_and_time_to_live_do_not_touch_what_is_staged() -> None:
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        prepare(made, **{"shareq.release.backoff.ms": 5_000, "shareq.record.ttl.ms": 20_000})
        loop = Loop(made, mode="explicit")
        loop.poll()
        loop.stage(0, 1)
        loop.consumer.acknowledge(loop.held[2], "RELEASE")
        loop.consumer.acknowledge(loop.held[3])
        loop.consumer.acknowledge(loop.held[4])
        loop.consumer.commit_sync()
        made.advance(30_000)
        loop.poll(2)
        assert runs(made).startswith("0: 0-1 ACQUIRED(1) staged, 2 ARCHIVED(1)")
        loop.producer.commit_transaction()
        settled(made, "5: ")


def test_only_committed_records_are_read(cluster: Cluster) -> None:
    """Of the helper: an aborted output is not in it."""
    loop = Loop(cluster)
    loop.poll()
    loop.stage(0)
    loop.producer.flush()
    loop.producer.abort_transaction()
    assert output(cluster) == []
    assert cluster.log("out", 0).read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED).batches
