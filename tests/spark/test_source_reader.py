"""The source called as Spark calls it, without Spark, on a cluster in this process: plan, read, settle, restart."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark import TaskContext
from pyspark.sql.streaming.datasource import ReadMaxRows

from shareq import Cluster, Producer
from shareq.admin import Admin
from shareq.log.batches import CorruptBatch, stamp_crc
from shareq.model.errors import KafkaException
from shareq.model.events import RecordsChanged
from shareq.spark.acknowledge import VERDICTS
from shareq.spark.batch import BatchReader
from shareq.spark.options import parse
from shareq.spark.reader import fetcher
from shareq.spark.stream import StreamReader
from shareq.spark.worker import spare_modules
from shareq.trace import messages
from tests.log.support import batch, broken

if TYPE_CHECKING:
    from shareq.wire.server import Server

TOPIC, GROUP = "orders", "g"
RECORDS = 40
LOCK_MS = 2000
PATIENCE = 60
"""How often `plan` asks for the next offset; each call takes up to half a second of virtual time."""

Place = tuple[int, int]
"""(partition, offset)."""

EVERY = sorted((number % 2, number // 2) for number in range(RECORDS))


class Scene(NamedTuple):
    cluster: Cluster
    folder: str

    def reader(self, **options: str) -> StreamReader:
        needed = {"kafka.bootstrap.servers": self.cluster.bootstrap_servers, "subscribe": TOPIC, "group.id": GROUP}
        strict = {"kafka.share.acquire.mode": "record_limit", "minPartitions": "2"}
        return StreamReader(parse({**needed, **strict, **options}), self.folder)

    def lag(self) -> int:
        """How many records the group has not finished; all records of a partition that it has not begun."""
        with Admin({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
            lags = {at.partition: row.lag for at, row in admin.list_share_group_offsets(GROUP).items()}
        return sum(RECORDS // 2 if (lag := lags.get(partition)) is None else lag for partition in (0, 1))

    def crash(self, reader: StreamReader) -> None:
        """The driver's machine loses power, and its locks expire."""
        assert reader._member is not None
        self.cluster.crash(reader._member)
        reader._member._closing.set()  # its thread dies with it
        self.cluster.advance(60_000)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Scene]:
    fetcher.cache_clear()  # clusters with the same seed have the same name
    with Cluster(brokers=1, seed=5, trace_messages=True) as cluster:
        cluster.create_topic(TOPIC, 2)
        cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
        with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            for number in range(RECORDS):
                producer.produce(TOPIC, b"value-%d" % number, partition=number % 2)
        yield Scene(cluster, str(tmp_path / "verdicts"))


Offset = dict[str, Any]


def at_most(rows: int) -> ReadMaxRows:
    return ReadMaxRows(rows)


def through_json(offset: Offset) -> Offset:
    """An offset after a round trip through JSON, in which Spark keeps it."""
    restored: Offset = json.loads(json.dumps(offset))
    return restored


def plan(reader: StreamReader, start: Offset, limit: int = RECORDS) -> Offset:
    """The next offset, or `start` if there is none after many calls: joining a group takes some time."""
    return poll_offset(lambda: reader.latestOffset(start, at_most(limit)), start)


def poll_offset(latest: Callable[[], Offset], start: Offset) -> Offset:
    return next((offset for _ in range(PATIENCE) if (offset := through_json(latest())) != start), start)


def rows(reader: StreamReader, start: Offset, end: Offset) -> list[tuple[int, int, int]]:
    """The rows of all tasks of a batch: (partition, offset, delivery_count)."""
    found = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
    columns = (("partition", "offset", "deliveryCount"), found)
    return [tuple(row.values()) for batch in columns[1] for row in batch.select(list(columns[0])).to_pylist()]


def places(several: Sequence[tuple[int, int, int]]) -> list[Place]:
    return sorted((partition, offset) for partition, offset, _ in several)


def drain(reader: StreamReader, offset: Offset) -> list[tuple[int, int, int]]:
    """Run batches until there are no more."""
    found: list[tuple[int, int, int]] = []
    while (end := plan(reader, offset)) != offset:
        found += rows(reader, offset, end)
        offset = end
    reader.stop()
    return found


@pytest.mark.parametrize("limit", [1, 7, 25, RECORDS])
def test_batches_keep_the_limit_and_deliver_all_records_once(at: Scene, limit: int) -> None:
    reader = at.reader()
    offset, sizes, found = reader.initialOffset(), [], []
    while (end := plan(reader, offset, limit)) != offset:
        batch = rows(reader, offset, end)
        sizes.append(len(batch))
        found += batch
        offset = end
    assert max(sizes) == limit
    assert places(found) == EVERY
    assert at.lag() == 0
    reader.stop()


def test_a_batch_has_as_many_tasks_as_requested(at: Scene) -> None:
    reader = at.reader(minPartitions="8")
    end = plan(reader, reader.initialOffset())
    assert len(reader.partitions(reader.initialOffset(), end)) == 8
    reader.stop()


def test_planning_the_next_batch_acknowledges_the_last_one(at: Scene) -> None:
    reader = at.reader()
    zero = reader.initialOffset()
    one = plan(reader, zero, 10)
    assert len(rows(reader, zero, one)) == 10
    assert at.lag() == RECORDS  # they have been read, but not finished as far as the source knows
    plan(reader, one, 10)
    assert at.lag() == RECORDS - 10
    reader.stop()


def test_commit_acknowledges_and_may_be_repeated(at: Scene) -> None:
    reader = at.reader()
    one = plan(reader, reader.initialOffset(), 10)
    for _ in range(2):
        reader.commit(one)
        assert at.lag() == RECORDS - 10
    reader.stop()


def test_a_planned_batch_that_was_not_run_is_planned_again(at: Scene) -> None:
    reader = at.reader()
    zero = reader.initialOffset()
    assert plan(reader, zero, 10) == plan(reader, zero, 10)
    reader.stop()


def test_a_restart_reads_exactly_the_batch_of_the_offset_without_its_locks(at: Scene) -> None:
    first = at.reader()
    zero = first.initialOffset()
    one = plan(first, zero, 15)
    before = rows(first, zero, one)
    at.crash(first)
    second = at.reader()
    assert rows(second, zero, one) == before
    assert set(places(drain(second, one))) == set(EVERY)  # with the replayed batch: it was not accepted
    assert at.lag() == 0


def test_records_of_a_lost_driver_are_delivered_to_others(at: Scene) -> None:
    lost, other = at.reader(maxRecordsPerBatch="12"), at.reader()
    held = rows(lost, lost.initialOffset(), plan(lost, lost.initialOffset()))
    at.crash(lost)
    found = drain(other, other.initialOffset())
    assert places(found) == EVERY
    assert {(p, o) for p, o, count in found if count == 2} == set(places(held))


def test_two_queries_of_a_group_share_the_work(at: Scene) -> None:
    readers = [at.reader(maxRecordsPerBatch="5") for _ in range(2)]
    offsets = [reader.initialOffset() for reader in readers]
    found: list[list[tuple[int, int, int]]] = [[], []]
    for number in [0, 1] * PATIENCE:
        end = through_json(readers[number].latestOffset(offsets[number], at_most(5)))
        if end != offsets[number]:
            found[number] += rows(readers[number], offsets[number], end)
            offsets[number] = end
    assert all(found)
    assert places(found[0] + found[1]) == EVERY
    assert at.lag() == 0
    for reader in readers:
        reader.stop()


@pytest.mark.parametrize(
    ("on_failure", "begun", "again"),
    [
        pytest.param("release", True, True, id="released when it failed"),
        pytest.param("release", False, True, id="released when it never began"),
        pytest.param("reject", True, False, id="rejected when it failed"),
        pytest.param("reject", False, True, id="released, not rejected, when it never began"),
    ],
)
def test_a_batch_of_an_ended_query_is_settled_or_released(at: Scene, on_failure: str, begun: bool, again: bool) -> None:
    reader = at.reader(onFailure=on_failure)
    zero = reader.initialOffset()
    one = plan(reader, zero, 10)
    if begun:
        reader.partitions(zero, one)
    reader.stop()
    other = at.reader()
    found = drain(other, other.initialOffset())
    assert len(found) == (RECORDS if again else RECORDS - 10)
    assert at.lag() == 0


def test_acknowledge_types_apply_to_their_own_batch(at: Scene) -> None:
    reader = at.reader()
    zero = reader.initialOffset()
    one = plan(reader, zero)
    (box,) = Path(at.folder).iterdir()
    for number, verdict in enumerate(VERDICTS):
        letter = {"verdict": verdict, "places": {TOPIC: {"0": [number]}}}
        (box / f"{number}.json").write_text(json.dumps(letter))
    two = plan(reader, one)
    assert rows(reader, one, two) == [(0, 0, 2)]  # the released record; the rejected one is not delivered again
    assert plan(reader, two) == two
    assert at.lag() == 0
    reader.stop()
    assert not Path(at.folder).exists()


def test_acknowledge_types_of_a_replayed_batch_are_dropped(at: Scene) -> None:
    """The records of a replayed batch are not held: they are delivered again, and get other acknowledge types then."""
    first = at.reader()
    zero = first.initialOffset()
    one = plan(first, zero, 15)
    at.crash(first)
    (lost,) = Path(at.folder).iterdir()
    second = at.reader()
    again = rows(second, zero, one)
    (box,) = set(Path(at.folder).iterdir()) - {lost}
    letter = {"verdict": "release", "places": {TOPIC: {"0": [0, 1, 2]}}}
    (box / "0.json").write_text(json.dumps(letter))
    found = drain(second, one)
    assert set(places(again)) < set(places(found)) == set(EVERY)
    assert len(found) == RECORDS
    assert at.lag() == 0


def test_a_reader_without_a_query_leaves_no_folder(at: Scene) -> None:
    at.reader().stop()
    assert not Path(at.folder).exists()


@pytest.mark.parametrize("renews", [True, False], ids=["renewed", "not renewed"])
def test_a_batch_may_take_longer_than_its_locks(at: Scene, renews: bool) -> None:
    """The renewing thread uses the wall clock, so the test calls `renew` itself."""
    reader = at.reader(lockRenewal=str(renews))
    zero = reader.initialOffset()
    held = plan(reader, zero, 10)
    member = reader._member
    assert member is not None
    assert member.lock_duration_ms == 30_000
    for _ in range(6):
        at.cluster.advance(10_000)
        member.renew()
    causes = {entry.event.cause for entry in at.cluster.journal.entries() if isinstance(entry.event, RecordsChanged)}
    assert ("renew" in causes, "lock_timeout" in causes) == (renews, not renews)
    reader.commit(held)
    assert at.lag() == RECORDS - (10 if renews else 0)
    reader.stop()


def test_available_now_ends_at_the_current_log_ends(at: Scene) -> None:
    reader = at.reader()
    reader.prepareForTriggerAvailableNow()
    with Producer({"bootstrap.servers": at.cluster.bootstrap_servers}) as producer:
        producer.produce(TOPIC, b"late", partition=0)
    assert places(drain(reader, reader.initialOffset())) == EVERY
    assert at.lag() == 1
    other = at.reader()
    assert places(drain(other, other.initialOffset())) == [(0, RECORDS // 2)]  # still available


def test_available_now_waits_for_records_that_others_have_locked(at: Scene) -> None:
    other = at.reader(lockRenewal="false", maxRecordsPerBatch="12")
    plan(other, other.initialOffset())
    reader = at.reader()
    reader.prepareForTriggerAvailableNow()
    assert places(drain(reader, reader.initialOffset())) == EVERY
    other.stop()


def test_a_batch_read_of_an_unknown_topic_is_refused(at: Scene) -> None:
    options = {"kafka.bootstrap.servers": at.cluster.bootstrap_servers, "subscribe": "nowhere", "group.id": GROUP}
    with pytest.raises(KafkaException, match="nowhere"):
        BatchReader(parse(options)).partitions()


def test_connection_settings_apply_to_tasks_and_admin_calls(at: Scene) -> None:
    reader = at.reader(**{"kafka.client.id": "night"})
    reader.prepareForTriggerAvailableNow()
    start = through_json(reader.initialOffset())
    assert len(rows(reader, start, plan(reader, start))) == RECORDS
    apis = {exchange.api for exchange in messages(at.cluster, client="night")}
    assert {"ShareFetch", "Fetch", "ListOffsets"} <= apis
    reader.stop()


def bad_crc(values: Sequence[bytes]) -> bytes:
    return broken(batch(*values), -1)


def bad_compression(values: Sequence[bytes]) -> bytes:
    data = bytearray(batch(*values, compression="gzip"))
    return stamp_crc(data[:61] + bytes(len(data) - 61))


@pytest.mark.parametrize(
    ("damaged", "on_failure", "fate", "left_out"),
    [
        pytest.param(bad_crc, "release", "reject", 3, id="bad CRC: always rejected"),
        pytest.param(bad_compression, "reject", "reject", 3, id="bad compression: rejected with onFailure=reject"),
        pytest.param(
            bad_compression, "release", "release", 15, id="bad compression: released up to the delivery limit"
        ),
    ],
)
def test_unreadable_records_do_not_block_a_stream(
    at: Scene, damaged: Callable[[Sequence[bytes]], bytes], on_failure: str, fate: str, left_out: int
) -> None:
    values = [b"lost" * 50, b"gone" * 50, b"away" * 50]
    first = RECORDS // 2
    log = at.cluster.log(TOPIC, 0)
    appended = log.append(damaged(values), now_ms=at.cluster.now_ms, leader_epoch=0, validate=False)
    assert not appended.error
    with Producer({"bootstrap.servers": at.cluster.bootstrap_servers}) as producer:
        producer.produce(TOPIC, b"behind it", partition=0)
    everything = sorted([*EVERY, (0, first + len(values))])
    reader = at.reader(onFailure=on_failure)
    offset, found = reader.initialOffset(), []
    while (end := plan(reader, offset)) != offset:
        found.append(rows(reader, offset, end))
        assert at.reader().partitions(offset, end)  # it is planned again after a restart
        assert rows(at.reader(), offset, end) == found[-1]
        offset = end
    reader.stop()
    assert places([row for each in found for row in each]) == everything
    assert len(values) <= offset["unreadable"] <= left_out  # as known when the last batch was planned
    assert at.lag() == 0
    lost = [
        entry.event
        for entry in at.cluster.journal
        if isinstance(entry.event, RecordsChanged)
        and entry.event.cause == "settled"
        and entry.event.partition == 0
        and first <= entry.event.first < first + len(values)
    ]
    assert {event.why for event in lost} == {fate}
    assert sum(event.end - event.first for event in lost) == left_out


def test_a_task_raises_for_unreadable_records(at: Scene) -> None:
    """The member received the records intact and will accept them: without the error they would be lost."""
    reader = at.reader()
    start = reader.initialOffset()
    end = plan(reader, start)
    log = at.cluster.log(TOPIC, 0)
    whole = log._batches[0]
    log._batches[0] = whole._replace(data=broken(whole.data, -1))
    with pytest.raises(CorruptBatch, match="the CRC does not match"):
        rows(reader, start, end)
    log._batches[0] = whole
    assert places(rows(reader, start, end)) == EVERY
    reader.stop()


def test_a_batch_read_leaves_out_unreadable_records(at: Scene, caplog: pytest.LogCaptureFixture) -> None:
    log = at.cluster.log(TOPIC, 1)
    for data in (bad_crc([b"lost"]), bad_compression([b"gone" * 50])):
        log.append(data, now_ms=at.cluster.now_ms, leader_epoch=0, validate=False)
    options = {"kafka.bootstrap.servers": at.cluster.bootstrap_servers, "subscribe": TOPIC, "group.id": GROUP}
    reader = BatchReader(parse(options))
    found = [row for task in reader.partitions() for part in reader.read(task) for row in part.to_pylist()]
    assert sorted((row["partition"], row["offset"]) for row in found) == EVERY
    assert len([text for text in caplog.messages if f"{TOPIC} [1]: left out" in text]) == 2


def test_locks_are_renewed_on_the_wall_clock(served: Server, fresh: Callable[[str], str], tmp_path: Path) -> None:
    """A batch takes longer than its locks. If the machine is too busy to renew in time, its records come again, and
    the test is repeated."""
    cluster, topic, group = served.cluster, fresh("topic"), fresh("group")
    assert isinstance(cluster, Cluster)
    cluster.create_topic(topic)
    limits = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 25}
    cluster.configure_group(group, {**limits, "share.record.lock.duration.ms": LOCK_MS})
    with Producer({"bootstrap.servers": served.bootstrap_servers}) as producer:
        producer.produce(topic, b"long to do", partition=0)
    options = {"kafka.bootstrap.servers": served.bootstrap_servers, "subscribe": topic, "group.id": group}
    reader = StreamReader(parse(options), str(tmp_path))

    def since(begun: int) -> list[tuple[str, int]]:
        events = ((entry.event, entry.time_ms) for entry in cluster.journal.entries())
        mine = [(e.cause, t) for e, t in events if isinstance(e, RecordsChanged) and e.group_id == group and t >= begun]
        return [(cause, at - begun) for cause, at in mine]

    def overruns(begun: int) -> bool:
        return any(cause == "renew" and after > LOCK_MS for cause, after in since(begun))

    def is_lost(begun: int) -> bool:
        return any(cause == "lock_timeout" for cause, _ in since(begun))

    for _ in range(20):
        begun, zero = cluster.now_ms, reader.initialOffset()
        end = poll_offset(lambda: reader.latestOffset(zero, at_most(1)), zero)  # noqa: B023    # called at once
        assert cluster.wait(lambda: overruns(begun) or is_lost(begun), 60)  # noqa: B023    # as above
        reader.commit(end)
        if not is_lost(begun):  # nor while the commit was on its way to the broker
            break
        reader.stop()
        reader = StreamReader(parse(options), str(tmp_path))
    assert overruns(begun)
    with Admin({"bootstrap.servers": served.bootstrap_servers}) as admin:
        assert [row.lag for row in admin.list_share_group_offsets(group).values()] == [0]
    reader.stop()


@pytest.mark.parametrize("in_task", [True, False])
def test_a_worker_spares_its_modules_once(at: Scene, monkeypatch: pytest.MonkeyPatch, in_task: bool) -> None:
    """Spark's worker collects garbage after each task; another process that reads is left alone."""
    frozen: list[bool] = []
    spare_modules.cache_clear()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(TaskContext, "get", lambda: object() if in_task else None)
    reader = at.reader()
    start = reader.initialOffset()
    assert len(rows(reader, start, plan(reader, start))) == RECORDS
    reader.stop()
    assert frozen == [True] * in_task
    spare_modules.cache_clear()
