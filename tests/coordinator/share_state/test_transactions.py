"""Writes in a producer's transaction: shareq/leader/experiments/BEHAVIOUR.md, section 7."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from shareq.coordinator.share_state.records import (
    Stage as StageOf,
)
from shareq.coordinator.share_state.records import (
    StateSnapshot,
    StateUpdate,
    decode_state_record,
    encode_state_record,
)
from shareq.model.actor import (
    Answer,
    Appended,
    AppendRecords,
    Call,
    Effect,
    EndMarker,
    MarkerWritten,
    Message,
    ReadRecords,
    RecordsRead,
)
from shareq.model.errors import Errors
from shareq.model.events import StateRecordWritten
from shareq.model.ids import SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.messages.share_state import Producer, StateBatch
from shareq.model.messages.share_transactions import EndShareTransactionRequest, EndShareTransactionResponse
from shareq.model.state_designs import StateDesign
from tests.coordinator.share_state.stage import (
    HOME,
    KEY,
    OTHER,
    TOPIC,
    Stage,
    Write,
    batches,
    image,
    named,
    partition_of,
    topic_image,
)

P = Producer(7, 5)
Q = Producer(8, 0)


class TransactionStage(Stage):
    """Its logs have transactions and markers. `ends`: the requests to leaders, which answer with `leader_error`."""

    def __init__(self, first: ClusterImage | None = None, **more: Any) -> None:
        self.producers: dict[tuple[int, int], int] = {}
        self.markers: dict[int, list[EndMarker]] = {}
        self.ends: list[EndShareTransactionRequest] = []
        self.leader_error = Errors.NONE
        super().__init__(first, **more)

    def perform(self, effect: Effect) -> Iterable[Message]:
        if isinstance(effect, Call):
            assert isinstance(effect.request, EndShareTransactionRequest)
            self.ends.append(effect.request)
            yield Answer(effect.id, EndShareTransactionResponse(error_code=self.leader_error))
        else:
            yield from super().perform(effect)

    def append(self, effect: AppendRecords, error: Errors) -> Appended:
        done = super().append(effect, error)
        if not error and effect.producer_id >= 0:
            for position in range(len(effect.records)):
                self.producers[effect.topic_partition.partition, done.base_offset + position] = effect.producer_id
        return done

    def chunk(self, effect: ReadRecords, size: int = 3) -> RecordsRead:
        read = super().chunk(effect, size)
        partition = effect.topic_partition.partition
        offsets = range(effect.offset, read.next_offset)
        records = [record for record in read.records if record[1]]
        producers = {o: p for (at, o), p in self.producers.items() if at == partition and o in offsets}
        markers = [marker for marker in self.markers.get(partition, ()) if marker.offset in offsets]
        return read._replace(records=records, producer_ids=producers, markers=markers)

    def stage(self, text: str, by: Producer = P, *, se: int = 3, le: int = 5, key: SharePartitionKey = KEY) -> Errors:
        fields = {"state_epoch": se, "leader_epoch": le, "start_offset": -1, "delivery_complete_count": -1}
        producer = {"producer_id": by.id, "producer_epoch": by.epoch}
        error = self.one(named(Write, key, **fields, **producer, state_batches=batches(text))).error_code
        assert isinstance(error, Errors)
        return error

    def mark(self, committed: bool, by: Producer = P, key: SharePartitionKey = KEY) -> None:
        """The marker of the transaction, in the log of the key's partition."""
        partition = partition_of(key)
        log: list[Any] = self.logs.setdefault(partition, [])
        self.markers.setdefault(partition, []).append(EndMarker(len(log), by.id, committed))
        log.append((b"", None))
        self.handle(MarkerWritten(partition, by.id, committed))

    def written_records(self) -> list[Any]:
        """The decoded records of HOME; None for a marker."""
        return [decode_state_record(*record) if record[0] else None for record in self.logs[HOME]]

    def seen(self, key: SharePartitionKey = KEY) -> tuple[str, str, int, int]:
        """Batches, staged batches, start offset and delivery complete count."""
        read = self.read(key=key)
        staged = " ".join(f"{b[2]}-{b[3]}/{b[4]}@{b.producer}" for b in read.staged_batches)
        return text_of(read.state_batches), staged, read.start_offset, self.summary(key).delivery_complete_count


def text_of(found: Iterable[StateBatch]) -> str:
    return " ".join(f"{first}-{last}/{state}/{count}" for first, last, state, count in found)


def prepared(**more: Any) -> TransactionStage:
    """Example 4: {3-4 ACK}, dcc 2, and 0-2 staged as accepted."""
    stage = TransactionStage(**more)
    assert not stage.initialize()
    stage.read()
    assert not stage.write("3-4/2/1", so=0, dcc=2)
    assert not stage.stage("0-2/2/1")
    return stage


STAGED = f"0-2/2@{P}"


@pytest.mark.parametrize("failover", [False, True])
def test_a_staged_write_changes_nothing_and_is_read(failover: bool) -> None:
    stage = prepared()
    if failover:
        stage.start()
    assert stage.seen() == ("3-4/2/1", STAGED, 0, 2)


@pytest.mark.parametrize("failover", ["never", "before the marker", "after the marker"])
@pytest.mark.parametrize(
    ("committed", "after"), [(True, ("0-4/2/1", "", 0, 5)), (False, ("3-4/2/1", "", 0, 2))], ids=["commit", "abort"]
)
def test_example_4_the_marker_combines_and_counts_or_drops(
    failover: str, committed: bool, after: tuple[str, str, int, int]
) -> None:
    stage = prepared()
    if failover == "before the marker":
        stage.start()
    stage.mark(committed)
    if failover == "after the marker":
        stage.start()
    assert stage.seen() == after


@pytest.mark.parametrize("failover", [False, True])
def test_example_4_an_initialization_in_between_drops_it(failover: bool) -> None:
    stage = prepared()
    assert not stage.initialize(state_epoch=4, start_offset=0)
    if failover:
        stage.start()
    assert stage.seen() == ("", "", 0, 0)
    stage.mark(True)
    if failover:
        stage.start()
    assert stage.seen() == ("", "", 0, 0)
    assert stage.ends == []


@pytest.mark.parametrize("failover", [False, True])
def test_a_deletion_in_between_drops_it(failover: bool) -> None:
    stage = prepared()
    stage.delete()
    assert not stage.initialize()
    stage.mark(True)
    if failover:
        stage.start()
    assert stage.seen() == ("", "", 0, 0)


def test_transactions_of_two_producers_and_two_keys_end_on_their_own() -> None:
    other = SharePartitionKey("g1", OTHER, next(n for n in range(4)))
    stage = prepared()
    stage.initialize(key=other)
    stage.read(key=other)
    stage.stage("5-5/4/1", Q)
    stage.stage("0-0/2/1", P, key=other)
    stage.mark(True)
    assert stage.seen() == ("0-4/2/1", f"5-5/4@{Q}", 0, 5)
    stage.mark(True, Q)
    assert stage.seen() == ("0-4/2/1 5-5/4/1", "", 0, 6)
    assert stage.seen(other)[1] == (f"0-0/2@{P}" if partition_of(other) != HOME else "")


def test_several_writes_of_one_transaction_are_one() -> None:
    stage = prepared()
    stage.stage("5-6/4/2")
    assert stage.seen()[1] == f"{STAGED} 5-6/4@{P}"
    stage.mark(True)
    assert stage.seen() == ("0-4/2/1 5-6/4/2", "", 0, 7)
    assert len(stage.ends) == 1


def test_what_is_below_the_start_offset_by_then_is_not_stored() -> None:
    stage = prepared()
    stage.write(so=2, dcc=2)
    stage.mark(True)
    assert stage.seen() == ("2-4/2/1", "", 2, 3)


def test_records_on_their_way_to_the_dead_letter_queue_are_not_counted() -> None:
    stage = prepared()
    stage.stage("5-6/3/1")
    stage.mark(True)
    assert stage.seen() == ("0-4/2/1 5-6/3/1", "", 0, 5)


def test_without_a_count_there_is_none_after_the_commit() -> None:
    stage = TransactionStage()
    stage.initialize(start_offset=-1)
    stage.read()
    stage.stage("0-2/2/1")
    stage.mark(True)
    assert stage.seen() == ("0-2/2/1", "", -1, -1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"le": 4}, Errors.FENCED_LEADER_EPOCH), ({"se": 2}, Errors.FENCED_STATE_EPOCH)],
)
def test_the_checks_are_those_of_any_write(fields: dict[str, int], error: Errors) -> None:
    stage = prepared()
    assert stage.stage("5-5/2/1", **fields) is error  # type: ignore[arg-type]
    assert stage.seen()[1] == STAGED


def test_a_write_that_fails_stages_nothing() -> None:
    stage = prepared()
    stage.append_error = Errors.INVALID_PRODUCER_EPOCH
    assert stage.stage("5-5/2/1") is Errors.INVALID_PRODUCER_EPOCH
    assert stage.seen()[1] == STAGED


def test_a_compacted_topic_refuses_transactions() -> None:
    stage = TransactionStage(image(topic_image("t", TOPIC, 4), design=StateDesign.COMPACTED_TOPIC))
    stage.initialize()
    stage.read()
    assert stage.stage("0-2/2/1") is Errors.UNSUPPORTED_VERSION
    assert stage.seen() == ("", "", 0, 0)


def write_overtaken_by_the_marker(stage: TransactionStage, **fields: Any) -> None:
    """Write; the result of the append, whose record precedes the marker of `P` in the log, is late."""
    stage.holding = True
    stage.send(named(Write, state_epoch=3, leader_epoch=5, state_batches=batches("5-5/2/1"), **fields))
    (held,) = stage.held
    done = stage.append(held, Errors.NONE)
    stage.mark(True)
    stage.handle(done)
    stage.holding = False


def test_a_marker_that_overtakes_the_result_of_the_append_ends_it() -> None:
    stage = prepared()
    write_overtaken_by_the_marker(stage, start_offset=-1, producer_id=P.id, producer_epoch=P.epoch)
    assert stage.seen() == ("0-5/2/1", "", 0, 6)
    stage.start()
    assert stage.seen() == ("0-5/2/1", "", 0, 6)


def test_a_marker_that_overtakes_the_result_of_a_snapshot_is_not_lost() -> None:
    """The snapshot was made before the commit."""
    stage = with_snapshots()
    write_overtaken_by_the_marker(stage, start_offset=0, delivery_complete_count=3)
    assert stage.seen() == ("0-5/2/1", "", 0, 6)
    assert pruned(stage).seen() == ("0-5/2/1", "", 0, 6)


# ---- the leader is notified ------------------------------------------------------------------------------------------


def end_of(committed: bool) -> EndShareTransactionRequest:
    return EndShareTransactionRequest(
        group_id="g1",
        topic_id=TOPIC,
        partition=3,
        leader_epoch=5,
        producer_id=7,
        producer_epoch=5,
        committed=committed,
    )


@pytest.mark.parametrize("committed", [True, False])
def test_the_leader_is_notified_after_the_marker(committed: bool) -> None:
    stage = prepared()
    assert stage.ends == []
    stage.mark(committed)
    assert stage.ends == [end_of(committed)]
    stage.wait(10_000)
    assert len(stage.ends) == 1
    stage.mark(committed)
    assert len(stage.ends) == 1, "the transaction has nothing staged any more"


def test_it_is_notified_until_it_answers() -> None:
    stage = prepared()
    stage.leader_error = Errors.NOT_LEADER_OR_FOLLOWER
    stage.mark(True)
    stage.wait(1_000)
    assert stage.ends == [end_of(True)] * 11
    stage.leader_error = Errors.NONE
    stage.wait(100)
    assert len(stage.ends) == 12
    stage.wait(10_000)
    assert len(stage.ends) == 12


def test_without_a_leader_the_notification_waits() -> None:
    stage = prepared()
    led, topic = stage.image, stage.image.topics["t"]
    parts = tuple(replace(p, leader=-1) for p in topic.partitions)
    gone = replace(topic, partitions=parts)
    changed = replace(led, topics={**led.topics, "t": gone}, topics_by_id={**led.topics_by_id, TOPIC: gone})
    stage.change(changed)
    stage.mark(True)
    stage.wait(5_000)
    assert stage.ends == []
    stage.change(led)
    stage.wait(100)
    assert stage.ends == [end_of(True)]


def test_nobody_is_notified_of_a_deleted_topic() -> None:
    stage = prepared()
    stage.leader_error = Errors.NOT_LEADER_OR_FOLLOWER
    stage.mark(True)
    without = {name: topic for name, topic in stage.image.topics.items() if name != "t"}
    stage.change(replace(stage.image, topics=without, topics_by_id={t.topic_id: t for t in without.values()}))
    sent = len(stage.ends)
    stage.wait(10_000)
    assert len(stage.ends) == sent
    assert stage.coordinator.wake_at_ms is None or stage.coordinator.wake_at_ms > stage.now_ms + 1000


def test_a_load_notifies_nobody() -> None:
    """The leader reads the state again, because its coordinator has changed."""
    stage = prepared()
    stage.mark(True)
    stage.ends.clear()
    stage.start()
    assert stage.ends == []


# ---- pruning and snapshots -------------------------------------------------------------------------------------------


def redundant_before(stage: Stage) -> int:
    shard = stage.coordinator._runtime.shard(HOME)
    assert shard is not None
    return shard.redundant_before


def with_snapshots(limit: int = 2, **more: Any) -> TransactionStage:
    """The log: 0 the initialization, 1 the read, 2 a write, 3 the staged update."""
    return prepared(first=image(topic_image("t", TOPIC, 4), snapshot_update_records_per_snapshot=limit), **more)


def test_pruning_stops_at_the_first_record_of_an_open_transaction() -> None:
    stage = with_snapshots()
    stage.write("5-5/2/1", so=0, dcc=3)  # 4: a snapshot
    assert redundant_before(stage) == 3
    stage.stage("6-6/2/1")
    stage.stage("7-7/2/1", Q)
    assert redundant_before(stage) == 3
    stage.mark(False)
    assert redundant_before(stage) == 4, "below the snapshot nothing is needed"


@pytest.mark.parametrize("limit", [2, 100])
def test_a_committed_record_is_kept_until_the_next_snapshot(limit: int) -> None:
    stage = with_snapshots()
    stage.write("5-5/2/1", so=0, dcc=3)
    stage.change(image(topic_image("t", TOPIC, 4), snapshot_update_records_per_snapshot=limit))
    stage.mark(True)
    log = stage.written_records()
    assert redundant_before(stage) == 3
    assert len(log) == 6
    for text in ("6-6/2/1", "7-7/2/1", "8-8/2/1"):
        stage.write(text, so=0, dcc=7)
    assert redundant_before(stage) == (3 if limit == 100 else 7)


def pruned(stage: TransactionStage) -> TransactionStage:
    """Prune the log as far as possible, and load it again."""
    stage.starts[HOME] = redundant_before(stage)
    stage.start()
    return stage


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_a_pruned_log_has_what_was_staged_before_the_snapshot(before: bool, committed: bool) -> None:
    """Without the rule the staged update at 3 were pruned by the snapshot at 4."""
    stage = with_snapshots()
    stage.write("5-5/2/1", so=0, dcc=3)
    if before:
        assert pruned(stage).seen()[:2] == ("3-5/2/1", STAGED)
    stage.mark(committed)
    assert pruned(stage).seen()[:2] == ("0-5/2/1" if committed else "3-5/2/1", "")


def test_a_pruned_log_knows_that_an_initialization_has_dropped_it() -> None:
    """The snapshot of the former state epoch is pruned, and the staged update of another key is not."""
    stage = prepared()
    stage.initialize(state_epoch=4, start_offset=0)
    stage.starts[HOME] = 3
    stage.start()
    stage.mark(True)
    assert stage.seen() == ("", "", 0, 0)


def test_commits_are_updates_and_become_a_snapshot() -> None:
    stage = with_snapshots(3)
    for number in range(5, 12):
        stage.stage(f"{number}-{number}/2/1", Producer(7, number))
        stage.mark(True, Producer(7, number))
    kinds = [type(record).__name__ for record in stage.written_records() if record is not None]
    assert kinds.count("StateSnapshot") == 4
    assert stage.seen()[0] == "0-11/2/1"
    before = redundant_before(stage)
    assert before > 8
    assert pruned(stage).seen()[0] == "0-11/2/1"


# ---- records and events ----------------------------------------------------------------------------------------------


def test_a_staged_update_has_a_tag_that_others_ignore() -> None:
    staged = StateUpdate(KEY, 2, -1, -1, batches("5-6/2/1"), stage=StageOf(3, 5))
    key, value = encode_state_record(staged)
    assert value is not None
    assert decode_state_record(key, value) == staged
    plain = encode_state_record(staged._replace(stage=None)).value
    assert plain is not None
    assert value == plain.removesuffix(b"\0") + bytes.fromhex("01 904e 06 00000003 0005")


def test_the_journal_has_an_update_when_the_transaction_is_committed() -> None:
    stage = prepared(traced=True)
    stage.events.clear()
    stage.mark(True)
    assert stage.events == [StateRecordWritten(str(KEY), "update", 0, 0, batches("0-2/2/1"))]
    stage.events.clear()
    stage.stage("5-5/2/1", Q)
    stage.mark(False, Q)
    assert stage.events == []


def test_snapshots_have_no_staged_batches() -> None:
    stage = with_snapshots()
    stage.write("5-5/2/1", so=0, dcc=3)
    snapshot = stage.written_records()[-1]
    assert isinstance(snapshot, StateSnapshot)
    assert text_of(snapshot.state_batches) == "3-5/2/1"
