"""The source called as Spark calls it, without Spark, on a cluster in this process: plan, read, settle, restart."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from shareq.spark.stream import StreamReader
from shareq.spark.worker import spare_modules
from shareq.trace import messages
from tests.log.support import batch, broken
from tests.spark.source_stage import EVERY, GROUP, PATIENCE, RECORDS, TOPIC, SourceStage, as_stored, places, plan, rows

if TYPE_CHECKING:
    from shareq.wire.server import Server

LOCK_MS = 2000


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[SourceStage]:
    with SourceStage.opened(tmp_path, brokers=1, trace_messages=True) as made:
        yield made


def drain(reader: StreamReader, offset: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Run batches until there are no more."""
    found: list[tuple[int, int, int]] = []
    while (end := plan(reader, offset)) != offset:
        found += rows(reader, offset, end)
        offset = end
    reader.stop()
    return found


@pytest.mark.parametrize("limit", [1, 7, 25, RECORDS])
def test_batches_keep_the_limit_and_deliver_all_records_once(stage: SourceStage, limit: int) -> None:
    reader = stage.reader()
    offset, sizes, found = reader.initialOffset(), [], []
    while (end := plan(reader, offset, limit)) != offset:
        batch = rows(reader, offset, end)
        sizes.append(len(batch))
        found += batch
        offset = end
    assert max(sizes) == limit
    assert places(found) == EVERY
    assert stage.lag() == 0
    reader.stop()


def test_a_member_holds_one_range_of_many_record_batches(stage: SourceStage) -> None:
    """The cost of a batch follows the ranges of its locks, not the record batches of the producers."""
    with Producer({"bootstrap.servers": stage.cluster.bootstrap_servers}) as producer:
        for number in range(30):
            producer.produce(TOPIC, b"a batch of its own", partition=number % 2)
            producer.flush()
    reader = stage.reader(**{"kafka.share.acquire.mode": "batch_optimized"})
    plan(reader, reader.initialOffset(), 1000)
    assert reader._member is not None
    assert [(at.first, at.end) for at, _ in reader._member._held] == [(0, RECORDS // 2 + 15)] * 2
    reader.stop()


def test_a_batch_has_as_many_tasks_as_requested(stage: SourceStage) -> None:
    reader = stage.reader(minPartitions="8")
    end = plan(reader, reader.initialOffset())
    assert len(reader.partitions(reader.initialOffset(), end)) == 8
    reader.stop()


def test_planning_the_next_batch_acknowledges_the_last_one(stage: SourceStage) -> None:
    reader = stage.reader()
    zero = reader.initialOffset()
    one = plan(reader, zero, 10)
    assert len(rows(reader, zero, one)) == 10
    assert stage.lag() == RECORDS  # they have been read, but not finished as far as the source knows
    plan(reader, one, 10)
    assert stage.lag() == RECORDS - 10
    reader.stop()


def test_commit_acknowledges_and_may_be_repeated(stage: SourceStage) -> None:
    reader = stage.reader()
    one = plan(reader, reader.initialOffset(), 10)
    for _ in range(2):
        reader.commit(one)
        assert stage.lag() == RECORDS - 10
    reader.stop()


def test_a_planned_batch_that_was_not_run_is_planned_again(stage: SourceStage) -> None:
    reader = stage.reader()
    zero = reader.initialOffset()
    assert plan(reader, zero, 10) == plan(reader, zero, 10)
    reader.stop()


def test_a_restart_reads_exactly_the_batch_of_the_offset_without_its_locks(stage: SourceStage) -> None:
    first = stage.reader()
    zero = first.initialOffset()
    one = plan(first, zero, 15)
    before = rows(first, zero, one)
    stage.crash(first)
    second = stage.reader()
    assert rows(second, zero, one) == before
    assert set(places(drain(second, one))) == set(EVERY)  # with the replayed batch: it was not accepted
    assert stage.lag() == 0


def test_records_of_a_lost_driver_are_delivered_to_others(stage: SourceStage) -> None:
    lost, other = stage.reader(maxRecordsPerBatch="12"), stage.reader()
    held = rows(lost, lost.initialOffset(), plan(lost, lost.initialOffset()))
    stage.crash(lost)
    found = drain(other, other.initialOffset())
    assert places(found) == EVERY
    assert {(p, o) for p, o, count in found if count == 2} == set(places(held))


def test_two_queries_of_a_group_share_the_work(stage: SourceStage) -> None:
    readers = [stage.reader(maxRecordsPerBatch="5") for _ in range(2)]
    offsets = [reader.initialOffset() for reader in readers]
    found: list[list[tuple[int, int, int]]] = [[], []]
    for number in [0, 1] * PATIENCE:
        end = as_stored(readers[number].latestOffset(offsets[number], ReadMaxRows(5)))
        if end != offsets[number]:
            found[number] += rows(readers[number], offsets[number], end)
            offsets[number] = end
    assert all(found)
    assert places(found[0] + found[1]) == EVERY
    assert stage.lag() == 0
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
def test_a_batch_of_an_ended_query_is_settled_or_released(
    stage: SourceStage, on_failure: str, begun: bool, again: bool
) -> None:
    reader = stage.reader(onFailure=on_failure)
    zero = reader.initialOffset()
    one = plan(reader, zero, 10)
    if begun:
        reader.partitions(zero, one)
    reader.stop()
    other = stage.reader()
    found = drain(other, other.initialOffset())
    assert len(found) == (RECORDS if again else RECORDS - 10)
    assert stage.lag() == 0


def test_acknowledge_types_apply_to_their_own_batch(stage: SourceStage) -> None:
    reader = stage.reader()
    zero = reader.initialOffset()
    one = plan(reader, zero)
    (box,) = Path(stage.folder).iterdir()
    for number, verdict in enumerate(VERDICTS):
        letter = {"verdict": verdict, "places": {TOPIC: {"0": [number]}}}
        (box / f"{number}.json").write_text(json.dumps(letter))
    two = plan(reader, one)
    assert rows(reader, one, two) == [(0, 0, 2)]  # the released record; the rejected one is not delivered again
    assert plan(reader, two) == two
    assert stage.lag() == 0
    reader.stop()
    assert not Path(stage.folder).exists()


def test_acknowledge_types_of_a_replayed_batch_are_dropped(stage: SourceStage) -> None:
    """The records of a replayed batch are not held: they are delivered again, and get other acknowledge types then."""
    first = stage.reader()
    zero = first.initialOffset()
    one = plan(first, zero, 15)
    stage.crash(first)
    (lost,) = Path(stage.folder).iterdir()
    second = stage.reader()
    again = rows(second, zero, one)
    (box,) = set(Path(stage.folder).iterdir()) - {lost}
    letter = {"verdict": "release", "places": {TOPIC: {"0": [0, 1, 2]}}}
    (box / "0.json").write_text(json.dumps(letter))
    found = drain(second, one)
    assert set(places(again)) < set(places(found)) == set(EVERY)
    assert len(found) == RECORDS
    assert stage.lag() == 0


def test_a_reader_without_a_query_leaves_no_folder(stage: SourceStage) -> None:
    stage.reader().stop()
    assert not Path(stage.folder).exists()


@pytest.mark.parametrize("renews", [True, False], ids=["renewed", "not renewed"])
def test_a_batch_may_take_longer_than_its_locks(stage: SourceStage, renews: bool) -> None:
    """The renewing thread uses the wall clock, so the test calls `renew` itself."""
    reader = stage.reader(lockRenewal=str(renews))
    zero = reader.initialOffset()
    held = plan(reader, zero, 10)
    member = reader._member
    assert member is not None
    assert member.lock_duration_ms == 30_000
    for _ in range(6):
        stage.cluster.advance(10_000)
        member.renew()
    causes = {entry.event.cause for entry in stage.cluster.journal.entries() if isinstance(entry.event, RecordsChanged)}
    assert ("renew" in causes, "lock_timeout" in causes) == (renews, not renews)
    reader.commit(held)
    assert stage.lag() == RECORDS - (10 if renews else 0)
    reader.stop()


def test_available_now_ends_at_the_current_log_ends(stage: SourceStage) -> None:
    reader = stage.reader()
    reader.prepareForTriggerAvailableNow()
    with Producer({"bootstrap.servers": stage.cluster.bootstrap_servers}) as producer:
        producer.produce(TOPIC, b"late", partition=0)
    assert places(drain(reader, reader.initialOffset())) == EVERY
    assert stage.lag() == 1
    other = stage.reader()
    assert places(drain(other, other.initialOffset())) == [(0, RECORDS // 2)]  # still available


def test_available_now_waits_for_records_that_others_have_locked(stage: SourceStage) -> None:
    other = stage.reader(lockRenewal="false", maxRecordsPerBatch="12")
    plan(other, other.initialOffset())
    reader = stage.reader()
    reader.prepareForTriggerAvailableNow()
    assert places(drain(reader, reader.initialOffset())) == EVERY
    other.stop()


def test_a_batch_read_of_an_unknown_topic_is_refused(stage: SourceStage) -> None:
    options = {"kafka.bootstrap.servers": stage.cluster.bootstrap_servers, "subscribe": "nowhere", "group.id": GROUP}
    with pytest.raises(KafkaException, match="nowhere"):
        BatchReader(parse(options)).partitions()


def test_connection_settings_apply_to_tasks_and_admin_calls(stage: SourceStage) -> None:
    reader = stage.reader(**{"kafka.client.id": "night"})
    reader.prepareForTriggerAvailableNow()
    start = as_stored(reader.initialOffset())
    assert len(rows(reader, start, plan(reader, start))) == RECORDS
    apis = {exchange.api for exchange in messages(stage.cluster, client="night")}
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
    stage: SourceStage, damaged: Callable[[Sequence[bytes]], bytes], on_failure: str, fate: str, left_out: int
) -> None:
    values = [b"lost" * 50, b"gone" * 50, b"away" * 50]
    first = RECORDS // 2
    log = stage.cluster.log(TOPIC, 0)
    appended = log.append(damaged(values), now_ms=stage.cluster.now_ms, leader_epoch=0, validate=False)
    assert not appended.error
    with Producer({"bootstrap.servers": stage.cluster.bootstrap_servers}) as producer:
        producer.produce(TOPIC, b"behind it", partition=0)
    everything = sorted([*EVERY, (0, first + len(values))])
    reader = stage.reader(onFailure=on_failure)
    offset, found = reader.initialOffset(), []
    while (end := plan(reader, offset)) != offset:
        found.append(rows(reader, offset, end))
        assert stage.reader().partitions(offset, end)  # it is planned again after a restart
        assert rows(stage.reader(), offset, end) == found[-1]
        offset = end
    reader.stop()
    assert places([row for each in found for row in each]) == everything
    assert len(values) <= offset["unreadable"] <= left_out  # as known when the last batch was planned
    assert stage.lag() == 0
    lost = [
        entry.event
        for entry in stage.cluster.journal
        if isinstance(entry.event, RecordsChanged)
        and entry.event.cause == "settled"
        and entry.event.partition == 0
        and first <= entry.event.first < first + len(values)
    ]
    assert {event.why for event in lost} == {fate}
    assert sum(event.end - event.first for event in lost) == left_out


def test_a_task_raises_for_unreadable_records(stage: SourceStage) -> None:
    """The member received the records intact and will accept them: without the error they would be lost."""
    reader = stage.reader()
    start = reader.initialOffset()
    end = plan(reader, start)
    log = stage.cluster.log(TOPIC, 0)
    whole = log._batches[0]
    log._batches[0] = whole._replace(data=broken(whole.data, -1))
    with pytest.raises(CorruptBatch, match="the CRC does not match"):
        rows(reader, start, end)
    log._batches[0] = whole
    assert places(rows(reader, start, end)) == EVERY
    reader.stop()


def test_a_batch_read_leaves_out_unreadable_records(stage: SourceStage, caplog: pytest.LogCaptureFixture) -> None:
    log = stage.cluster.log(TOPIC, 1)
    for data in (bad_crc([b"lost"]), bad_compression([b"gone" * 50])):
        log.append(data, now_ms=stage.cluster.now_ms, leader_epoch=0, validate=False)
    options = {"kafka.bootstrap.servers": stage.cluster.bootstrap_servers, "subscribe": TOPIC, "group.id": GROUP}
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
        end = plan(reader, zero, 1)
        assert cluster.wait(lambda: overruns(begun) or is_lost(begun), 60)  # noqa: B023    # called at once
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
def test_a_worker_spares_its_modules_once(stage: SourceStage, monkeypatch: pytest.MonkeyPatch, in_task: bool) -> None:
    """Spark's worker collects garbage after each task; another process that reads is left alone."""
    frozen: list[bool] = []
    spare_modules.cache_clear()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(TaskContext, "get", lambda: object() if in_task else None)
    reader = stage.reader()
    start = reader.initialOffset()
    assert len(rows(reader, start, plan(reader, start))) == RECORDS
    reader.stop()
    assert frozen == [True] * in_task
    spare_modules.cache_clear()
