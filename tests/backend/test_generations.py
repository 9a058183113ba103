"""Writers of a shard that the backend has forgotten. BEHAVIOUR.md of the backend, 3.5 to 3.9."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shareq.broker.backend.generations import RENEW_MS, Generations, renewal_ms
from shareq.broker.backend.restoration import OF_RECORDS, OF_STATES, Cleanup
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC, IN_BACKEND, new_topic
from shareq.coordinator.share_state import StateRecord, StateSnapshot, StateUpdate
from shareq.coordinator.share_state.compacted import CompactedShard
from shareq.coordinator.share_state.records import encode_state_record
from shareq.kafka import LocalKafka
from shareq.log.records import decode_key_values, encode_batch, parse_batch, restamp
from shareq.model.actor import Answer, AppendRecords, ReadRecords
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.describe import DescribeProducersRequest
from shareq.model.messages.fetch import FetchResponse
from shareq.model.messages.topics import DescribeConfigsResponse
from shareq.model.messages.transactions import DescribeTransactionsRequest
from shareq.model.records import CoordinatorRecord, RecordBatch
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign
from tests.backend.test_logs import FENCE, Backend, append
from tests.coordinator.share_state.stage import KEY, TOPIC, batches
from tests.kafka.fixtures import Reachable, kafka_or_skip
from tests.polling import eventually

EXPIRATION_MS = 1_500
OTHER = SharePartitionKey("g2", TOPIC, 3)

# ---- the fences in a log -------------------------------------------------------------------------------------------


def log(*batches: tuple[tuple[int, int], str]) -> list[RecordBatch]:
    """Batches of one record each, as (producer id and epoch, key); the fence's key is that of `FENCE`."""
    found = []
    for offset, ((producer_id, epoch), key) in enumerate(batches):
        value = None if key.encode() == FENCE.key else b"v"
        data = encode_batch([(key.encode(), value, (), 0)], producer_id=producer_id, producer_epoch=epoch)
        found.append(parse_batch(restamp(data, offset, 0)))
    return found


FORMER, WRITER, NONE = (7, 0), (9, 0), (-1, -1)


def test_batches_of_a_replaced_writer_are_not_valid() -> None:
    batches = log((FORMER, "a"), (WRITER, "fence"), (FORMER, "b"), (WRITER, "c"), (NONE, "d"), (FORMER, "e"))
    assert [batch.base_offset for batch in Generations(FENCE).valid(batches)] == [0, 1, 3, 4]


def test_the_fence_is_known_in_later_reads() -> None:
    batches, generations = log((WRITER, "fence"), (FORMER, "b"), (WRITER, "c")), Generations(FENCE)
    assert [len(generations.valid([batch])) for batch in batches] == [1, 0, 1]


def test_a_process_that_is_no_writer_does_not_replace_one() -> None:
    """The terms of fleets are drawn by such records."""
    batches = log((WRITER, "fence"), (NONE, "fence"), (WRITER, "c"))
    assert len(Generations(FENCE).valid(batches)) == 3
    assert not Generations(FENCE).replaced(WRITER, batches)


@pytest.mark.parametrize("writer", [(7, 1), (9, 0)], ids=["next epoch", "next id"])
def test_a_fence_of_another_writer_replaces(writer: tuple[int, int]) -> None:
    assert Generations(FENCE).replaced(FORMER, log((writer, "fence")))
    assert not Generations(FENCE).replaced(FORMER, log((writer, "a"), (FORMER, "fence")))


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"transactional.id.expiration.ms": "604800000", "producer.id.expiration.ms": "86400000"}, RENEW_MS),
        ({"transactional.id.expiration.ms": "3000", "producer.id.expiration.ms": "86400000"}, 1_000),
        ({"transactional.id.expiration.ms": "604800000", "producer.id.expiration.ms": "6000"}, 2_000),
        ({}, RENEW_MS),
    ],
)
def test_a_writer_is_renewed_several_times_before_the_backend_forgets_it(
    configs: dict[str, str], expected: int
) -> None:
    found = tuple(DescribeConfigsResponse.Config(name=name, value=value) for name, value in configs.items())
    result = DescribeConfigsResponse.Result(resource_type=4, resource_name="0", configs=found)
    assert renewal_ms(Answer(1, DescribeConfigsResponse(results=(result,)))) == expected


def test_a_backend_that_does_not_show_its_configuration() -> None:
    assert renewal_ms(Answer(1, None, Errors.NETWORK_EXCEPTION)) == RENEW_MS


# ---- compaction ------------------------------------------------------------------------------------------------------


def test_keys_whose_newest_record_is_of_a_replaced_writer_are_strays() -> None:
    generations = Generations(FENCE)
    generations.valid(log((FORMER, "a"), (WRITER, "fence"), (FORMER, "a"), (FORMER, "b")))
    assert generations.strays == {b"a", b"b"}
    generations.valid(log((WRITER, "a")))
    assert generations.strays == {b"b"}
    generations.follow(WRITER, log((FORMER, "c"), (WRITER, "b"), (NONE, "d")))
    assert generations.strays == {b"c"}


@pytest.fixture
def memory(served: Reachable, fresh: Callable[[str], str]) -> Iterator[Backend]:
    found = Backend(served.bootstrap_servers, fresh("t"))
    yield found
    found.close()


def compacted(backend: Backend) -> dict[bytes, bytes | None]:
    """The newest record of each key without the fences, in the order of the log: what compaction leaves in the end, and
    a reader takes."""
    found: dict[bytes, bytes | None] = {}

    def take(partition: FetchResponse.Partition) -> int:
        for batch in partition.records:
            for _, key, value in decode_key_values(batch):
                if key is not None and key != FENCE.key:
                    found.pop(key, None)
                    found[key] = value
        return len(partition.records)

    shard = backend.shard()
    assert backend.result(lambda done: shard._fetch(0, lambda found: done(take(found)), lambda: done(0)))
    return found


def stray(backend: Backend, *keys: str) -> None:
    """Append what a replaced writer may have sent: the backend has forgotten its producer."""
    stray_records(backend, *(CoordinatorRecord(key.encode(), b"stray") for key in keys))


def stray_records(backend: Backend, *records: CoordinatorRecord) -> None:
    found = [(record.key, record.value, (), 0) for record in records]
    data = encode_batch(found, producer_id=999, producer_epoch=0, base_sequence=0)
    partition = ProduceRequest.Partition(index=0, records=data)
    topic = ProduceRequest.Topic(topic_id=backend.topic.topic_id, name=backend.at.topic, partitions=(partition,))
    answer = backend.result(lambda done: backend.client.call(backend.leader, ProduceRequest(topics=(topic,)), done))
    assert answer.response.responses[0].partitions[0].error_code is Errors.NONE


GOOD = {b"a": b"v", b"b": b"v", b"new": None}


def compacted_log(backend: Backend, cleanup: Cleanup = OF_RECORDS) -> ShardLog:
    return ShardLog(backend.at, FENCE, backend.client, backend.loop, backend, cleanup=cleanup)


def test_a_writer_restores_what_a_replaced_one_has_hidden(memory: Backend) -> None:
    """With its next append, which is stored behind the stray batch."""
    shard = compacted_log(memory)
    assert memory.result(shard.open) is Errors.NONE
    assert memory.result(lambda take: shard.append(append(shard, "a", "b"), take)).error is Errors.NONE
    stray(memory, "b", "new")
    assert compacted(memory)[b"b"] == b"stray"
    for key in ("c", "d"):  # the second append waits for its turn behind the restoration
        assert memory.result(lambda take, k=key: shard.append(append(shard, k), take)).error is Errors.NONE  # type: ignore[misc]
    assert compacted(memory) == {**GOOD, b"c": b"v", b"d": b"v"}
    assert shard._generations.strays == set()


def test_a_writer_that_begins_restores_what_a_replaced_one_has_hidden(memory: Backend) -> None:
    former = compacted_log(memory)
    assert memory.result(former.open) is Errors.NONE
    assert memory.result(lambda take: former.append(append(former, "a", "b"), take)).error is Errors.NONE
    stray(memory, "b", "new")
    shard = compacted_log(memory)
    assert memory.result(shard.open) is Errors.NONE
    assert memory.result(lambda take: shard.read(ReadRecords(6, memory.at, 0), take)).done
    assert memory.result(lambda take: shard.append(append(shard, "c"), take)).error is Errors.NONE
    assert compacted(memory) == {**GOOD, b"c": b"v"}


def test_a_writer_restores_whole_states(memory: Backend) -> None:
    """The stray delta is the newest of its key, and the one that it hides comes before another."""
    shard = compacted_log(memory, OF_STATES)
    assert memory.result(shard.open) is Errors.NONE

    def write(*records: StateRecord) -> None:
        effect = AppendRecords(5, memory.at, tuple(encode_state_record(record) for record in records))
        assert memory.result(lambda take: shard.append(effect, take)).error is Errors.NONE

    write(StateSnapshot(KEY, 0, 0, 0, 100, 0, 0, batches("100-104/0/1")))
    deltas = [
        StateUpdate(KEY, 0, 0, start, batches(text), -1, index)
        for index, (start, text) in enumerate([(100, "101-101/0/2"), (102, "102-102/0/2")])
    ]
    for delta in deltas:
        write(delta)
    foreign = encode_state_record(StateUpdate(KEY, 0, 0, 100, batches("100-104/4/9"), -1, 0))
    stray_records(memory, foreign)
    other = StateSnapshot(OTHER, 0, 0, 0, 1, 0, 0)
    write(other)
    write(other)  # waits for its turn behind the restoration
    found = CompactedShard(ClusterImage)
    for offset, (key, value) in enumerate(compacted(memory).items()):
        found.replay(offset, key, value, 0)
    state = found.states[KEY]
    assert (state.start_offset, state.state_batches) == (102, batches("102-102/0/2 103-104/0/1"))


def test_a_log_is_pruned_up_to_a_fence(memory: Backend) -> None:
    """Without the fence, the batch of the replaced writer would seem valid."""
    shard = memory.opened()
    assert memory.result(lambda take: shard.append(append(shard, "a", "b"), take)).error is Errors.NONE
    stray(memory, "b")
    assert memory.result(lambda take: shard.append(append(shard, "c"), take)).error is Errors.NONE
    assert memory.result(lambda take: shard.delete_before(2, take)) is Errors.NONE
    assert keys(memory) == [b"a", b"b", b"c"]
    shard._renew_ms = 0
    assert memory.result(lambda take: shard.append(append(shard, "d"), take)).error is Errors.NONE
    assert memory.result(lambda take: shard.delete_before(5, take)) is Errors.NONE
    assert keys(memory) == [b"d"]


@pytest.mark.parametrize(
    ("name", "persister"),
    [
        (IN_BACKEND[GROUP_METADATA_TOPIC], StateDesign.STATE_TOPIC),
        (GROUP_CONFIGS_TOPIC, StateDesign.STATE_TOPIC),
        (IN_BACKEND[SHARE_STATE_TOPIC], StateDesign.COMPACTED_TOPIC),
    ],
)
def test_compaction_leaves_a_record_until_its_writer_has_looked_for_strays(name: str, persister: StateDesign) -> None:
    (topic,) = new_topic(name, BrokerConfig({PERSISTER_CLASS: persister.class_name}), 1).topics
    assert dict(topic.configs)["cleanup.policy"] == "compact"
    assert int(dict(topic.configs)["min.compaction.lag.ms"] or 0) > 2 * RENEW_MS


# ---- a Kafka that forgets soon ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forgetful() -> Iterator[LocalKafka]:
    config = {
        "transactional.id.expiration.ms": EXPIRATION_MS,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 100,
        "producer.id.expiration.ms": EXPIRATION_MS,
        "producer.id.expiration.check.interval.ms": 100,
    }
    with kafka_or_skip(1, config) as running:
        yield running


@pytest.fixture
def backend(forgetful: LocalKafka, fresh: Callable[[str], str]) -> Iterator[Backend]:
    found = Backend(forgetful.bootstrap_servers, fresh("t"))
    yield found
    found.close()


def stood_still(backend: Backend) -> ShardLog:
    """A writer that is not renewed, and that the backend has forgotten."""
    former = backend.opened()
    former._renew_ms = 1 << 60
    assert backend.result(lambda take: former.append(append(former, "a"), take)).error is Errors.NONE
    eventually(lambda: known(backend), (Errors.TRANSACTIONAL_ID_NOT_FOUND, ()))
    return former


def known(backend: Backend) -> tuple[Errors, tuple[object, ...]]:
    """What the backend knows of the writers: the error about their transactional id, and the producers."""
    described = DescribeTransactionsRequest(transactional_ids=(f"shareq-{backend.at}",))
    transaction = backend.result(lambda done: backend.client.call(backend.leader, described, done)).response
    topic = DescribeProducersRequest.Topic(name=backend.at.topic, partition_indexes=(0,))
    asked = DescribeProducersRequest(topics=(topic,))
    producers = backend.result(lambda done: backend.client.call(backend.leader, asked, done)).response
    return transaction.transaction_states[0].error_code, producers.topics[0].partitions[0].active_producers


def keys(backend: Backend) -> list[bytes]:
    """The keys of all valid records but the fences."""
    read = backend.result(lambda take: backend.shard().read(ReadRecords(6, backend.at, 0), take))
    assert read.done
    return [key for _, key, _ in read.records if key != FENCE.key]


@pytest.mark.kafka
def test_a_forgotten_writer_finds_the_fence_of_its_successor(backend: Backend) -> None:
    """The backend takes its batch, which has no effect."""
    former = stood_still(backend)
    shard = backend.opened()
    assert shard._producer_id != former._producer_id
    assert backend.result(lambda take: shard.append(append(shard, "b"), take)).error is Errors.NONE
    assert backend.result(lambda take: former.append(append(former, "c"), take)) == (5, Errors.NOT_COORDINATOR, -1)
    assert backend.result(lambda take: shard.append(append(shard, "d"), take)).error is Errors.NONE
    assert keys(backend) == [b"a", b"b", b"d"]


@pytest.mark.kafka
@pytest.mark.parametrize("forgotten", [True, False], ids=["its successor is forgotten, too", "it has a successor"])
def test_a_writer_that_has_stood_still_looks_for_a_successor_before_it_writes(
    backend: Backend, forgotten: bool
) -> None:
    former = stood_still(backend)
    shard = stood_still(backend) if forgotten else backend.opened()
    former._renew_ms = 0
    assert backend.result(lambda take: former.append(append(former, "c"), take)) == (5, Errors.NOT_COORDINATOR, -1)
    assert former._next <= shard._next
    assert b"c" not in keys(backend)


@pytest.mark.kafka
def test_a_writer_that_has_stood_still_without_a_successor_goes_on(backend: Backend) -> None:
    former = stood_still(backend)
    former._renew_ms = 0
    assert backend.result(lambda take: former.append(append(former, "b"), take)).error is Errors.NONE
    assert keys(backend) == [b"a", b"b"]


@pytest.mark.kafka
def test_a_writer_at_rest_is_not_forgotten(backend: Backend) -> None:
    """It is renewed in good time, so that the backend itself refuses it when it has a successor."""
    former = backend.opened()
    epoch = former._producer_epoch
    assert backend.loop.wait(lambda: former._producer_epoch > epoch + 4, 60_000)
    shard = backend.opened()
    assert (shard._producer_id, shard._producer_epoch > epoch + 5) == (former._producer_id, True)


@pytest.mark.kafka
def test_a_writer_at_rest_notices_its_successor(backend: Backend) -> None:
    replaced: list[object] = []
    former = backend.shard()
    assert backend.result(lambda done: former.open(done, lambda: replaced.append(1))) is Errors.NONE
    former.append(append(former, "a"), lambda _: None)
    backend.opened()
    assert backend.loop.wait(lambda: bool(replaced), 60_000)
