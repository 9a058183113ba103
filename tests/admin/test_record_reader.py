"""`read_batches` on a cluster in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Admin, Cluster, KafkaException, Producer
from shareq.admin.record_reader import PARTITION_BYTES, Span

ALL = [(0, 1 << 40)]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Brokers 0 to 2, and topic t with two partitions."""
    with Cluster(brokers=3, seed=1) as made:
        made.create_topic("t", partitions=2, replication_factor=3)
        yield made


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as made:
        yield made


def write(cluster: Cluster, count: int, *, batch: int = 1, size: int = 1) -> None:
    """Records 0, 1, ... in each partition, in batches of `batch` records."""
    config = {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1000, "batch.num.messages": batch}
    with Producer(config) as producer:
        for number in range(count):
            for partition in (0, 1):
                producer.produce("t", b"%d" % number * size, partition=partition)
        producer.flush()


def offsets(admin: Admin, spans: list[Span], partition: int = 0) -> list[int]:
    reads = admin.read_batches({("t", partition): spans})
    return [record.offset for read in reads for record in read.records(spans)]


@pytest.mark.parametrize(
    ("spans", "found"),
    [
        (ALL, list(range(20))),
        ([(5, 6)], [5]),
        ([(3, 5), (9, 12), (19, 30)], [3, 4, 9, 10, 11, 19]),
        ([(20, 30)], []),
    ],
)
@pytest.mark.parametrize("batch", [1, 7])
def test_ranges_are_read(cluster: Cluster, admin: Admin, batch: int, spans: list[Span], found: list[int]) -> None:
    write(cluster, 20, batch=batch)
    assert offsets(admin, spans) == found


def test_partitions_are_read_side_by_side(cluster: Cluster, admin: Admin) -> None:
    write(cluster, 3)
    reads = list(admin.read_batches({("t", 0): [(0, 1)], ("t", 1): [(1, 3)]}))
    read = {(read.partition, record.offset) for read in reads for record in read.records(ALL)}
    assert read >= {(0, 0), (1, 1), (1, 2)}
    assert (1, 0) not in read


def test_deleted_records_are_left_out(cluster: Cluster, admin: Admin) -> None:
    """Also those that share a batch with the first remaining one."""
    write(cluster, 10, batch=10)
    admin.delete_records({("t", 0): 4}).check()
    assert offsets(admin, ALL) == [4, 5, 6, 7, 8, 9]


def test_records_that_are_deleted_meanwhile_are_left_out(cluster: Cluster, admin: Admin) -> None:
    """A round has some of them: the next one begins at the new start of the log."""
    write(cluster, 4, size=PARTITION_BYTES // 2)
    reads = admin.read_batches({("t", 0): ALL})
    first = next(reads)
    admin.delete_records({("t", 0): 3}).check()
    assert [record.offset for read in (first, *reads) for record in read.records(ALL)] == [0, 3]


def test_records_that_come_later_are_left_out(cluster: Cluster, admin: Admin) -> None:
    write(cluster, 1)
    reads = admin.read_batches({("t", 0): ALL})
    read = [next(reads)]
    write(cluster, 1)
    read += reads
    assert [record.offset for each in read for record in each.records(ALL)] == [0]


def test_offsets_that_compaction_has_emptied_are_passed(cluster: Cluster, admin: Admin) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": 14, "min.cleanable.dirty.ratio": 0}
    cluster.create_topic("c", configs=configs)
    with Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0}) as producer:
        for key in ("a", "b", "a", "c", "c"):
            producer.produce("c", "value", key)
            producer.flush()
    cluster.clean_logs()
    spans = [(0, 1), (2, 9)]
    found = [record.offset for read in admin.read_batches({("c", 0): spans}) for record in read.records(spans)]
    assert found == [2, 3, 4]  # 4 is in the active segment
    assert next(iter(admin.read_batches({("c", 0): [(0, 1)]}))).end > 0


def test_another_leader_is_found(cluster: Cluster, admin: Admin) -> None:
    write(cluster, 3, size=PARTITION_BYTES // 2)
    reads = admin.read_batches({("t", 0): ALL})
    read = [next(reads)]
    cluster.kill_broker(cluster.image.topics["t"].partitions[0].leader)
    read += reads
    assert [record.offset for each in read for record in each.records(ALL)] == [0, 1, 2]


@pytest.mark.parametrize("place", [("t", 2), ("missing", 0)])
def test_a_partition_that_does_not_exist_is_an_error(admin: Admin, place: tuple[str, int]) -> None:
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(admin.read_batches({place: ALL}))


@pytest.mark.parametrize("spans", [[], [(2, 2)], [(3, 1)], [(0, 5), (4, 6)], [(4, 6), (0, 5)], [(-1, 5)]])
def test_ranges_that_make_no_sense_are_refused(admin: Admin, spans: list[Span]) -> None:
    with pytest.raises(ValueError, match="t"):
        admin.read_batches({("t", 0): spans})
