"""Control records: their bytes, which record a change makes, the fold, and the keeper. BEHAVIOUR.md, 39 to 46."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.control_records import decode_control_record, encode_control_record
from shareq.coordinator.share_state.control_shard import ControlShard, Folded, folded
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.coordinator.share_state.state import StateChange
from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, encode_batch
from shareq.model.ids import SharePartitionKey, TopicIdPartition, topic_id_from_bytes
from shareq.model.image import ClusterImage
from shareq.model.log_looks import LogSeen
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import RecordBatch
from shareq.model.state_batches import combine
from tests.coordinator.share_state.stage import batches

TOPIC = topic_id_from_bytes(bytes.fromhex("00112233445566778899aabbccddeeff"))
KEY = SharePartitionKey("G1", TOPIC, 0)
DELTA = StateUpdate(KEY, 1, -1, -1, batches("110-110/0/1"))
DELTA_HEX = "0000 0002 4731 0001 00000001 000000000000006e 000000000000006e 00 0001"
EMPTY = StateSnapshot(KEY, 2, 1, -1, 100, 0, 0)
EMPTY_HEX = "0001 0002 4731 0002 0000000000000064 0000000000000064 00000000 00000001 ffffffffffffffff"
MARKER_HEX = "0001 0002 4731 0000 ffffffffffffffff fffffffffffffffe 00000000 00000000 0000000000000007"


@pytest.mark.parametrize(
    ("record", "earliest", "key", "value"),
    [
        pytest.param(DELTA, -1, "00000006", DELTA_HEX, id="a delta"),
        pytest.param(EMPTY, -1, "00000005", EMPTY_HEX, id="a checkpoint"),
        pytest.param(StateTombstone(KEY), 7, "00000005", MARKER_HEX, id="the marker of a deleted group"),
    ],
)
def test_bytes(record: StateRecord, earliest: int, key: str, value: str) -> None:
    """BEHAVIOUR.md, 39."""
    encoded = encode_control_record(record, earliest)
    assert encoded == (bytes.fromhex(key), bytes.fromhex(value))
    assert decode_control_record(*encoded, TOPIC, 0) == record


def test_the_end_of_a_checkpoint_is_that_of_its_last_batch() -> None:
    value = encode_control_record(EMPTY._replace(state_batches=batches("100-104/0/1 107-109/2/1"))).value
    assert value is not None
    assert int.from_bytes(value[16:24], "big") == 110


def test_the_first_version_of_a_checkpoint_has_no_state_epoch() -> None:
    old = bytes.fromhex("0000" + EMPTY_HEX[4:].replace(" ", "")[:-24])
    assert decode_control_record(bytes.fromhex("00000005"), old, TOPIC, 0) == EMPTY._replace(state_epoch=0)


@pytest.mark.parametrize(("key", "value"), [
    ("00000005", "0002" + EMPTY_HEX[4:]), ("00000006", "0001" + DELTA_HEX[4:]), ("00000006", DELTA_HEX[:-4]),
])  # fmt: skip
def test_records_that_cannot_be_read(key: str, value: str) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_control_record(bytes.fromhex(key), bytes.fromhex(value), TOPIC, 0)


def test_control_records_of_another_type_are_skipped() -> None:
    assert decode_control_record(bytes.fromhex("00000001"), b"", TOPIC, 0) is None


# ---- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stored", "expected"),
    [
        (100, "100-109/2/1", (110, "")),
        (100, "100-104/2/1 105-107/4/3 108-108/0/1", (108, "108-108/0/1")),
        (100, "100-104/3/1 105-107/4/3", (100, "100-104/3/1 105-107/4/3")),
        (100, "101-104/2/1", (100, "101-104/2/1")),
        (-1, "0-4/2/1", (-1, "0-4/2/1")),
    ],
)
def test_the_fold_passes_what_is_done_at_the_start(start: int, stored: str, expected: tuple[int, str]) -> None:
    """BEHAVIOUR.md, 41."""
    assert folded(start, batches(stored)) == (expected[0], batches(expected[1]))


class Log:
    """A shard and the log that it is loaded from."""

    def __init__(self, shard: type[ControlShard] = ControlShard) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.made = shard
        self.seen = LogSeen(0)
        self.shard = self.load()

    def load(self) -> ControlShard:
        shard = self.made(ClusterImage, TopicIdPartition(TOPIC, 0), 4, lambda: self.seen)
        for offset, record in enumerate(self.records):
            shard.replay(offset, *record, 0)
        return shard

    def append(self, records: Iterable[StateRecord]) -> list[StateRecord]:
        added = list(records)
        for record in added:
            encoded = self.shard.encode(record)
            self.records.append(encoded)
            self.shard.replay(len(self.records) - 1, *encoded, 0)
        return added

    def initialize(self, start: int) -> None:
        self.append([StateSnapshot(KEY, self.shard.next_epoch(KEY), 1, 0, start, 0, 0)])

    def write(self, start: int, text: str) -> str:
        """Write; the kind of the record: C with its epoch, D, or nothing."""
        made = self.append(self.shard.write_records(KEY, StateChange(4, start, -1, batches(text)), 0))
        return "".join(f"C{r.snapshot_epoch}" if isinstance(r, StateSnapshot) else "D" for r in made)

    @property
    def state(self) -> Folded:
        state = self.shard.states[KEY]
        return state.start_offset, state.state_batches


def test_the_walk_of_the_kip() -> None:
    """BEHAVIOUR.md, 42."""
    log = Log()
    log.initialize(100)
    writes = [
        (100, "100-109/2/1", "C1", 110, ""),
        (110, "110-110/0/1", "D", 110, "110-110/0/1"),
        (110, "119-119/2/1", "D", 110, "110-110/0/1 119-119/2/1"),
        (110, "111-112/0/1", "D", 110, "110-112/0/1 119-119/2/1"),
        (110, "113-118/2/1", "D", 110, "110-112/0/1 113-119/2/1"),
        (110, "110-110/2/2", "D", 111, "111-112/0/1 113-119/2/1"),
        (111, "111-112/2/2", "C2", 120, ""),
    ]
    for start, text, kind, spso, stored in writes:
        assert log.write(start, text) == kind
        assert log.state == (spso, batches(stored))
        log.shard = log.load()
        assert log.state == (spso, batches(stored)), "as loaded"
    assert log.write(111, "111-112/2/2") == "", "nothing is new"


class TwoDeltas(ControlShard):
    @property
    def updates_per_snapshot(self) -> int:
        return 2


def test_a_checkpoint_follows_the_configured_number_of_deltas() -> None:
    log = Log(TwoDeltas)
    log.initialize(100)
    many = " ".join(f"{offset}-{offset}/2/{offset % 7}" for offset in range(101, 161, 2))
    kinds = [log.write(100, text) for text in (many, *(f"{offset}-{offset}/2/1" for offset in range(200, 260, 10)))]
    assert "".join(kind[0] for kind in kinds) == "DDCDDCD"


@pytest.mark.parametrize(
    ("start", "text"),
    [
        pytest.param(105, "110-110/0/1", id="the log start has moved"),
        pytest.param(102, "102-103/2/1 105-105/0/1", id="a hole was passed"),
    ],
)
def test_a_start_that_jumps_makes_a_checkpoint(start: int, text: str) -> None:
    """BEHAVIOUR.md, 42: no delta can express it."""
    log = Log()
    log.initialize(100)
    assert log.write(start, text) == "C1"


def test_the_first_start_makes_a_checkpoint() -> None:
    log = Log()
    log.initialize(-1)
    assert log.write(5, "7-7/0/1") == "C1"
    assert log.state == (5, batches("7-7/0/1"))


def test_epochs_of_checkpoints_begin_again() -> None:
    log = Log()
    log.append([StateSnapshot(KEY, 65_535, 1, 0, 5, 0, 0)])
    assert log.write(5, "5-5/2/1") == "C0"
    assert log.write(6, "7-7/0/1") == "D"
    log.shard = log.load()
    assert log.state == (6, batches("7-7/0/1"))


def test_a_marker_deletes_the_group_until_it_is_initialized() -> None:
    log = Log()
    log.initialize(5)
    log.write(5, "7-7/0/1")
    log.append(log.shard.deletion(KEY))
    assert not log.load().states
    log.initialize(3)
    assert log.load().states[KEY].start_offset == 3


# ---- random changes, and the mutant ----------------------------------------------------------------------------------


def run(rng: random.Random, shard: type[ControlShard]) -> None:
    """Random writes of a leader whose start moves and jumps; the state after each load is that of a naive fold."""
    log = Log(shard)
    start, known = 0, batches("")
    log.initialize(start)
    for _ in range(120):
        if rng.random() < 0.1:
            start += rng.randrange(4)
        text = []
        for _ in range(rng.randrange(3)):
            first = start + rng.randrange(20)
            text.append(StateBatch(first, first + rng.randrange(4), rng.choice((0, 2, 4)), rng.randint(1, 3)))
        log.append(log.shard.write_records(KEY, StateChange(4, start, -1, tuple(text)), 0))
        start, known = folded(start, known, text)
        if rng.random() < 0.2:
            log.shard = log.load()
        assert log.state == (start, combine((), known, start))


class AlwaysDeltas(ControlShard):
    """Writes a delta although the start jumps."""

    def write_records(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> list[StateRecord]:
        found = super().write_records(key, change, now_ms)
        added = combine((), change.state_batches, self.states[key].start_offset)
        return [StateUpdate(key, self.states[key].snapshot_epoch, 4, -1, added) for _ in found]


def many(shard: type[ControlShard]) -> None:
    for seed in range(40):
        run(random.Random(seed), shard)


@pytest.mark.parametrize("number", range(10))
def test_random_changes_survive_loads(seed: int, number: int) -> None:
    run(random.Random(seed + number), ControlShard)


def test_a_delta_cannot_say_that_the_start_jumps() -> None:
    """BEHAVIOUR.md, 42: this mutant loses the start."""
    with pytest.raises(AssertionError):
        many(AlwaysDeltas)


# ---- a log with readers' records, cuts, cleaning, and a lost index ---------------------------------------------------

GROUPS = [SharePartitionKey(name, TOPIC, 0) for name in ("a", "b", "c")]


class Partition:
    """A log, its shard, and a naive fold of each group's writes."""

    def __init__(self, rng: random.Random, shard: type[ControlShard]) -> None:
        self.rng = rng
        self.log = MemoryLog(LogConfig(segment_bytes=600))
        self.made = shard
        self.known: dict[SharePartitionKey, Folded] = {}
        self.shard = self.load()

    def seen(self) -> LogSeen:
        return LogSeen(0, self.log.log_start_offset, self.log.high_watermark)

    def load(self) -> ControlShard:
        """A shard of the next leader, which appends anew what a cut has removed."""
        self.shard = self.made(ClusterImage, TopicIdPartition(TOPIC, 0), 4, self.seen)
        for record in self.log.hidden.recovery():
            self.shard.replay(*record, 0)
        self.append(self.shard.checkpoints_anew(0))
        return self.shard

    def append(self, records: Iterable[StateRecord]) -> None:
        for record in list(records):
            encoded = self.shard.encode(record)
            added = self.log.append_share_state(encoded, now_ms=0, leader_epoch=4)
            self.shard.replay(added.base_offset, *encoded, 0)

    def produce(self) -> None:
        batch = encode_batch([(None, b"v" * 20, (), 0)] * self.rng.randint(1, 4))
        assert not self.log.append(batch, now_ms=0, leader_epoch=4).error

    def write(self) -> None:
        """Write about an offset in the window, as leaders do: no record is acquired before it is in the log."""
        key = self.rng.choice(GROUPS)
        if key not in self.known:
            self.append([StateSnapshot(key, self.shard.next_epoch(key), 1, 0, 0, 0, 0)])
            self.known[key] = 0, ()
        start, known = self.known[key]
        start = max(start, self.log.log_start_offset)
        first, end = start + self.rng.randrange(12), self.log.log_end_offset
        if first >= end:
            return
        added = StateBatch(
            first, min(first + self.rng.randrange(3), end - 1), self.rng.choice((0, 2, 4)), self.rng.randint(1, 3)
        )
        self.append(self.shard.write_records(key, StateChange(4, start, -1, (added,)), 0))
        self.known[key] = folded(start, known, (added,))

    def delete(self) -> None:
        key = self.rng.choice(GROUPS)
        if self.known.pop(key, None) is not None:
            self.append(self.shard.deletion(key))

    def cut(self) -> None:
        self.log.delete_records(self.rng.randint(self.log.log_start_offset, self.log.high_watermark))

    def clean(self) -> None:
        self.log.clean_share_state()

    def fail_over(self) -> None:
        self.load()
        self.check()

    def lose_the_index(self) -> None:
        """A group without a record in the log is lost with it; of the others nothing above the log start."""
        self.log.rebuild_share_index()
        self.load()
        for key in [key for key in self.known if key not in self.shard.states]:
            offsets = [batch.base_offset for batch in self.log.hidden.batches if key.group_id == self.group_of(batch)]
            assert not offsets, "there is a record of the group"
            del self.known[key]
        self.check()

    def group_of(self, batch: RecordBatch) -> str | None:
        """The group of a batch of share state, unless it deletes the group."""
        (record,) = decode(batch)
        found = decode_control_record(record.key or b"", record.value, TOPIC, 0)
        return None if found is None or isinstance(found, StateTombstone) else found.key.group_id

    def check(self) -> None:
        """The states equal those of the naive fold, from the log start on."""
        start = self.log.log_start_offset
        assert self.shard.states.keys() == self.known.keys()
        for key, state in self.shard.states.items():
            mine = folded(max(start, state.start_offset), state.state_batches)
            assert mine == folded(max(start, self.known[key][0]), self.known[key][1])


STEPS = {"produce": 8, "write": 16, "delete": 1, "cut": 2, "clean": 2, "fail_over": 1, "lose_the_index": 1}


def run_with_cuts(seed: int, shard: type[ControlShard]) -> None:
    partition = Partition(random.Random(seed), shard)
    for _ in range(150):
        getattr(partition, partition.rng.choices(list(STEPS), list(STEPS.values()))[0])()
    partition.fail_over()


@pytest.mark.parametrize("number", range(20))
def test_cuts_cleaning_and_a_lost_index_lose_nothing_above_the_log_start(seed: int, number: int) -> None:
    """BEHAVIOUR.md, 46, 47."""
    run_with_cuts(seed + number, ControlShard)


def many_with_cuts(shard: type[ControlShard]) -> None:
    for seed in range(60):
        run_with_cuts(seed, shard)


class IgnoresOrphans(ControlShard):
    """A delta without a checkpoint changes nothing."""

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        record = decode_control_record(key, value, *self.at)
        if not isinstance(record, StateUpdate) or record.key in self.states:
            super().replay(offset, key, value, now_ms)


class OrphansFromZero(ControlShard):
    """The states of orphans do not begin at the log start."""

    def checkpoints_anew(self, now_ms: int) -> list[StateRecord]:
        found = super().checkpoints_anew(now_ms)
        return [record for record in found if record.key in self._checkpoints]


@pytest.mark.parametrize("shard", [IgnoresOrphans, OrphansFromZero])
def test_orphans_count(shard: type[ControlShard]) -> None:
    """BEHAVIOUR.md, 47: these mutants lose states, or keep them where the next loss finds nothing."""
    with pytest.raises(AssertionError):
        many_with_cuts(shard)


# ---- what a leader and the group coordinator read --------------------------------------------------------------------


def shard_at(start: int, text: str, seen: LogSeen) -> tuple[ControlShard, Any]:
    log = Log()
    log.seen = seen
    log.append([StateSnapshot(KEY, 0, 1, 0, start, 0, 0, batches(text))])
    return log.shard, log.shard.states[KEY]


@pytest.mark.parametrize(
    ("start", "hidden", "expected"),
    [
        pytest.param(5, ((5, 7),), 7, id="hidden offsets at the start"),
        pytest.param(6, ((5, 7),), 7, id="in the middle of them"),
        pytest.param(5, ((5, 20),), 12, id="not beyond the visible end"),
        pytest.param(5, ((6, 7),), 5, id="above the start"),
        pytest.param(-1, ((0, 7),), -1, id="the start is not decided"),
    ],
)
def test_a_leader_begins_behind_hidden_offsets(start: int, hidden: tuple[tuple[int, int], ...], expected: int) -> None:
    """BEHAVIOUR.md, 44."""
    shard, state = shard_at(start, "", LogSeen(0, 0, 12, hidden))
    assert shard.read_state(state) == (expected, ())


@pytest.mark.parametrize(
    ("start", "text", "hidden", "expected"),
    [
        pytest.param(5, "", (), 0, id="nothing"),
        pytest.param(5, "7-9/2/1 10-11/0/1", (), 3, id="terminal offsets"),
        pytest.param(5, "7-9/2/1", ((5, 6), (10, 12)), 6, id="and hidden ones"),
        pytest.param(5, "7-9/2/1", ((3, 8),), 5, id="each offset once, from the start on"),
        pytest.param(5, "", ((10, 40),), 10, id="up to the visible end"),
        pytest.param(-1, "", ((10, 40),), -1, id="the start is not decided"),
    ],
)
def test_the_complete_count_has_terminal_and_hidden_offsets(
    start: int, text: str, hidden: tuple[tuple[int, int], ...], expected: int
) -> None:
    """BEHAVIOUR.md, 45: so the lag counts neither."""
    shard, state = shard_at(start, text, LogSeen(0, 0, 20, hidden))
    assert shard.complete_count(state) == expected


def test_checkpoints_that_a_cut_has_removed_are_appended_again() -> None:
    """BEHAVIOUR.md, 46."""
    log = Log()
    log.initialize(5)
    log.append([StateSnapshot(KEY._replace(group_id="other"), 0, 1, 0, 0, 0, 0)])
    assert log.shard.checkpoints_anew(0) == []
    log.seen = LogSeen(0, 1, 9)
    (anew,) = log.shard.checkpoints_anew(0)
    assert isinstance(anew, StateSnapshot)
    assert (anew.key, anew.snapshot_epoch, anew.start_offset, anew.state_epoch) == (KEY, 1, 5, 1)
