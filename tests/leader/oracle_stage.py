"""The share-partition and its oracle over one log and one persister, compared after every step."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from shareq.leader.experiments.kinds import kind_of_share_partition
from shareq.leader.share_partition import PreparedWrite
from shareq.lessons.oracle import Oracle, OracleWrite
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import AcquireMode, IsolationLevel, RecordState

KEY = SharePartitionKey("g", TopicId("B" * 22), 0)
MEMBERS = ("m", "n", "o")
MARKER, TRANSACTIONAL = 0x30, 0x10


def record_batch(
    first: int, last: int, *, attributes: int = 0, producer_id: int = -1, max_timestamp: int = -1
) -> RecordBatch:
    return RecordBatch(first, last, 0, 0, max_timestamp, producer_id, 0, -1, last - first + 1, attributes, b"")


class RandomLog:
    """A log that grows, loses batches by compaction and its beginning by retention."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.start = self.end = rng.choice((0, 0, 7))
        self.batches: list[RecordBatch] = []
        self.open: dict[int, int] = {}
        self.aborted: list[AbortedTransaction] = []
        self.growing = True
        self.now_ms = 0

    def grow(self) -> None:
        rng = self.rng
        first = self.end + (rng.randrange(1, 6) if rng.random() < 0.1 else 0)
        producer_id, attributes, size = -1, 0, rng.choice((1, 1, 2, 3, 5, 9))
        if rng.random() < 0.4:
            producer_id, attributes = rng.choice((1, 2)), TRANSACTIONAL
            if producer_id in self.open and rng.random() < 0.5:
                begun, attributes, size = self.open.pop(producer_id), MARKER, 1
                if rng.random() < 0.6:
                    self.aborted.append(AbortedTransaction(producer_id, begun, first))
            else:
                self.open.setdefault(producer_id, first)
        written_ms = -1 if rng.random() < 0.1 else self.now_ms - rng.choice((0, 0, 30, 100))
        last, header = first + size - 1, {"attributes": attributes, "producer_id": producer_id}
        self.batches.append(record_batch(first, last, max_timestamp=max(-1, written_ms), **header))
        self.end = first + size

    def stop_growing(self) -> None:
        """Append no further record, and end all open transactions."""
        self.growing = False
        for producer_id in self.open:
            marker = record_batch(self.end, self.end, attributes=MARKER, producer_id=producer_id)
            self.batches.append(marker)
            self.end += 1
        self.open.clear()

    def readable_end(self, isolation: IsolationLevel) -> int:
        committed = isolation is IsolationLevel.READ_COMMITTED
        return min(self.open.values(), default=self.end) if committed else self.end

    def read(
        self, offset: int, end_offset: int, isolation: IsolationLevel
    ) -> tuple[list[RecordBatch], list[AbortedTransaction]]:
        """Up to 8 batches from `offset` on; all but the first start below `end_offset`. Empty at the end of the log."""
        while self.growing and self.end < offset + 30:
            self.grow()
        committed, stable = isolation is IsolationLevel.READ_COMMITTED, self.readable_end(isolation)
        readable = [b for b in self.batches if offset <= b.last_offset < stable]
        readable = readable[:1] + [b for b in readable[1:] if b.base_offset < end_offset]
        batches = readable[: self.rng.choice((1, 2, 4, 8))]
        reaching = [t for t in self.aborted if batches and t.last_offset >= batches[0].base_offset]
        return batches, reaching if committed else []

    def keys(self, batches: list[RecordBatch]) -> dict[int, bytes]:
        """The keys by offset: three of them, and records without one."""
        offsets = [o for b in batches if not b.is_control for o in range(b.base_offset, b.last_offset + 1)]
        found = {offset: (b"a", b"b", b"", None)[offset * 2_654_435_761 % 97 % 4] for offset in offsets}
        return {offset: key for offset, key in found.items() if key is not None}

    def compact(self, around: int) -> None:
        recent = {batch for batch in self.batches if batch.base_offset >= around - 10}
        removed = self.rng.sample(sorted(recent)[:12], min(len(recent), self.rng.randrange(1, 4)))
        self.batches = [batch for batch in self.batches if batch not in removed or batch.is_control]

    def trim(self, offset: int) -> None:
        self.start = max(self.start, min(offset, self.end))
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.start]


class OracleStage:
    """SharePartition and oracle, the log, the persister and the clock. Each step compares both.

    `experimental`: the group has a random back-off and a random time to live, and members sometimes request delays.
    """

    def __init__(self, rng: Random, *, traced: bool = False, experimental: bool = False) -> None:
        self.rng = rng
        self.traced = traced
        self.log = RandomLog(rng)
        self.now_ms = 0
        self.config = GroupConfig(
            partition_max_record_locks=rng.choice((5, 20, 50)),
            delivery_count_limit=rng.choice((2, 3, 5, 7)),
            record_lock_duration_ms=rng.choice((30, 100)),
            isolation_level=rng.choice(tuple(IsolationLevel)),
            dead_letter_queue=rng.random() < 0.5,
        )
        self.experimental = experimental
        self.ordering = rng.choice(("none", "key", "key")) if experimental else "none"
        if experimental:
            self.configure_experiments()
        self.letters: list[int] = []
        self.durable: dict[int, tuple[int, int]] = {}
        self.durable_start = self.log.start
        self.accepted: set[int] = set()
        self.replies: dict[int, Errors] = {}
        self.expired = 0
        self.without_faults = False
        self.reload()

    def configure_experiments(self) -> None:
        rng = self.rng
        experiments = Experiments(
            release_backoff_ms=rng.choice((0, 5, 20)),
            release_backoff_max_ms=rng.choice((20, 90)),
            key_ordering=self.ordering,
            key_max_in_flight=rng.choice((1, 1, 2, 5)),
            record_ttl_ms=rng.choice((-1, 40, 200)),
            record_ttl_deadletter_enable=rng.random() < 0.5,
        )
        self.config = replace(self.config, experiments=experiments)

    # ---- loading -----------------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """A new leader loads the durable state; writes in flight are lost."""
        self.replies.clear()
        kind = kind_of_share_partition(self.config.experiments)
        self.subject = kind(KEY, "t", leader_epoch=1, traced=self.traced)
        self.oracle = Oracle()
        if self.config.experiments is not None and self.ordering == "key":
            self.oracle.most = self.config.experiments.key_max_in_flight
        stored = self.stored()
        assert self.subject.load(1, self.durable_start, stored, config=self.config)
        self.oracle.load(self.durable_start, stored, self.config.delivery_count_limit)
        self.letters = []
        self.collect_letters()
        self.compare()
        for offset in self.accepted:
            rec = self.oracle.recs.get(offset)
            assert offset < self.oracle.spso or (rec and rec.state is RecordState.ACKNOWLEDGED), offset

    def stored(self) -> list[StateBatch]:
        """The durable state as the share coordinator returns it: merged batches, none below the start offset."""
        batches: list[StateBatch] = []
        for offset, (state, count) in sorted(self.durable.items()):
            if batches and batches[-1][1:] == (offset - 1, state, count):
                batches[-1] = batches[-1]._replace(last_offset=offset)
            elif offset >= self.durable_start:
                batches.append(StateBatch(offset, offset, state, count))
        return batches

    # ---- steps -------------------------------------------------------------------------------------------------------

    def fetch(self, member: str, mode: AcquireMode, max_records: int, batch_size: int) -> None:
        max_locks = self.config.partition_max_record_locks
        assert self.subject.can_acquire(max_locks) == self.oracle.can_acquire(max_locks)
        offset = self.subject.next_fetch_offset
        if not self.without_faults and self.rng.random() < 0.1:  # events between the read and the acquire
            offset = self.rng.randrange(max(0, self.oracle.spso - 5), offset + 1)
        if offset < self.log.start:
            self.subject.advance_log_start(self.log.start)
            self.oracle.advance_log_start(self.log.start)
            return self.compare()
        end_offset = max(self.subject.spso + max_locks, self.subject.window_end)
        batches, aborted = self.log.read(offset, end_offset, self.config.isolation_level)
        if not batches:
            end = self.log.readable_end(self.config.isolation_level)
            assert self.subject.note_missing(offset, end, self.now_ms) == self.oracle.note_missing(offset, end)
            return self.compare()
        keys = self.log.keys(batches)
        before = {o: (rec.state, rec.expired) for o, rec in self.oracle.recs.items()}
        acquired, records = self.subject.acquire(
            batches,
            offset,
            member_id=member,
            max_records=max_records,
            batch_size=batch_size,
            mode=mode,
            config=self.config,
            aborted=aborted,
            keys=[(offset, offset + 1, key) for offset, key in keys.items()],
            now_ms=self.now_ms,
        )
        expected = self.oracle.acquire(
            batches,
            offset,
            member_id=member,
            max_records=max_records,
            batch_size=batch_size,
            mode=mode,
            config=self.config,
            aborted=aborted,
            now_ms=self.now_ms,
            keys=keys,
        )
        got = [(a.first_offset, a.last_offset, a.delivery_count) for a in acquired]
        assert got == expected
        for first, last, _ in got:
            assert not self.accepted & set(range(first, last + 1)), "an accepted record is delivered again"
        self.check_ages(batches, [o for first, last, _ in got for o in range(first, last + 1)], before)
        self.check_order([o for first, last, _ in got for o in range(first, last + 1)])
        spanned = [b for b in batches if got and b.base_offset <= got[-1][1] and b.last_offset >= got[0][0]]
        assert records == spanned
        return self.compare()

    def check_ages(
        self, batches: list[RecordBatch], acquired: list[int], before: dict[int, tuple[RecordState, bool]]
    ) -> None:
        """T1: nothing is delivered whose time to live is over. T2: nothing expires earlier. T3: no record expires that
        a member holds. `before`: the states, and whether a record has expired."""
        experiments = self.config.experiments
        ttl_ms = -1 if experiments is None else experiments.record_ttl_ms
        times = {o: b.max_timestamp for b in batches for o in range(b.base_offset, b.last_offset + 1)}
        old = {o for o, time_ms in times.items() if time_ms >= 0 and 0 <= ttl_ms <= self.now_ms - time_ms}
        assert not old & set(acquired)
        for offset, rec in self.oracle.recs.items():
            state, expired = before.get(offset, (RecordState.AVAILABLE, False))
            if rec.expired and not expired:
                assert offset in old or offset not in times
                assert state is RecordState.AVAILABLE
                self.expired += 1

    def check_order(self, acquired: list[int]) -> None:
        """K1: the held records of a key were taken at once, by one member, and are at most so many as configured. K2:
        with one in flight, every earlier record of the key in the window is finished."""
        most, recs = self.oracle.most, self.oracle.recs
        keys = self.log.keys(self.log.batches) if most is not None else {}
        for offset in [o for o in acquired if o in keys]:
            held = [o for o, rec in recs.items() if keys.get(o) == keys[offset] and rec.state is RecordState.ACQUIRED]
            assert len(held) <= (most or 0)
            assert set(held) <= set(acquired)
            waiting = [
                o for o, rec in recs.items() if keys.get(o) == keys[offset] and rec.state is RecordState.AVAILABLE
            ]
            assert most != 1 or not waiting or min(waiting) > offset

    def acknowledge(self, member: str, batches: list[AcknowledgementBatch]) -> None:
        got = self.subject.acknowledge(member, batches, self.config, self.now_ms)
        expected = self.oracle.acknowledge(member, batches, self.config, self.now_ms)
        self.same_outcome(got, expected)

    def release(self, member: str) -> None:
        self.same_outcome(
            self.subject.release_member(member, self.config),
            self.oracle.release_member(member, self.config),
        )

    def tick(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        self.log.now_ms = self.now_ms
        self.same_outcome(self.subject.expire(self.now_ms, self.config), self.oracle.expire(self.now_ms, self.config))

    def same_outcome(self, got: Errors | PreparedWrite | None, expected: Errors | OracleWrite | None) -> None:
        """Compare an error or a write. The persister can fail, or succeed while its response is lost."""
        if isinstance(expected, OracleWrite):
            assert isinstance(got, PreparedWrite)
            written = [
                (offset, (batch.delivery_state, batch.delivery_count))
                for batch in got.state_batches
                for offset in range(batch.first_offset, batch.last_offset + 1)
            ]
            assert dict(written) == expected.written
            assert len(written) == len(expected.written), "an offset was written twice"
            assert got.start_offset == expected.start_offset
            assert got.delivery_complete_count == expected.delivery_complete_count
            assert got.write_id == expected.write_id
            chance = 0 if self.without_faults else self.rng.random()
            if chance < 0.8 or chance > 0.95:
                self.persist(got)
            self.replies[got.write_id] = Errors.NONE if chance < 0.8 else Errors.UNKNOWN_SERVER_ERROR
        else:
            assert got == expected
        self.compare()

    def persist(self, write: PreparedWrite) -> None:
        assert write.start_offset >= self.durable_start
        self.durable_start = write.start_offset
        for first, last, state, count in write.state_batches:
            for offset in range(first, last + 1):
                self.durable[offset] = (state, count)
        self.durable = {offset: held for offset, held in self.durable.items() if offset >= self.durable_start}

    def settle(self) -> None:
        """Settle a random write in flight."""
        if not self.replies:
            return
        write_id = self.rng.choice(sorted(self.replies))
        error = self.replies.pop(write_id)
        write = self.oracle.writes[write_id]
        spso = self.oracle.spso
        if not error:
            self.accepted.update(o for o, (state, _) in write.written.items() if state is RecordState.ACKNOWLEDGED)
        moved = self.subject.settle(write_id, error, self.config, self.now_ms)
        self.oracle.settle(write_id, error, self.config, self.now_ms)
        assert moved == (self.oracle.spso != spso)
        self.collect_letters()
        self.compare()

    def collect_letters(self) -> None:
        """Both sides have the same new dead letters."""
        got = [
            (offset, letter.delivery_count, letter.rejected, letter.expired)
            for letter in self.subject.take_letters()
            for offset in range(letter.first, letter.end)
        ]
        assert got == self.oracle.letters
        self.letters += [offset for offset, _, _, _ in got]
        self.oracle.letters = []

    def deliver_letters(self, count: int) -> None:
        """The way of the first letters has ended."""
        done, self.letters = self.letters[:count], self.letters[count:]
        if done:
            ranges = [(offset, offset + 1) for offset in done]
            self.same_outcome(self.subject.dead_lettered(ranges, self.now_ms), self.oracle.dead_lettered(done))

    def reconfigure(self, *, delivery_count_limit: int, renew: bool, queue: bool = False) -> None:
        self.config = replace(
            self.config,
            delivery_count_limit=delivery_count_limit,
            renew_acknowledge_enable=renew,
            dead_letter_queue=queue,
        )
        if self.experimental:
            self.configure_experiments()

    # ---- completion --------------------------------------------------------------------------------------------------

    def run_to_completion(self) -> None:
        """Stop faults and appends, and let a member accept all records: every record must become terminal.

        A round is a fetch, its acknowledgement and a lock duration. A window of 50 records and a log of some hundred
        need a few dozen of the 1,000 rounds.
        """
        self.log.stop_growing()
        self.without_faults = True
        for _ in range(1000):
            while self.replies:
                self.settle()
            self.deliver_letters(len(self.letters))
            self.tick(self.config.record_lock_duration_ms)
            self.fetch(MEMBERS[0], AcquireMode.BATCH_OPTIMIZED, 50, 20)
            held = [offset for offset, rec in self.oracle.recs.items() if rec.member == MEMBERS[0]]
            if held:
                accept = [
                    AcknowledgementBatch(first_offset=o, last_offset=o, acknowledge_types=(1,)) for o in sorted(held)
                ]
                self.acknowledge(MEMBERS[0], accept)
            elif self.finished():
                return
        raise AssertionError(f"no progress: {self.subject.runs()}, {self.oracle.spso}-{self.oracle.window_end}")

    def finished(self) -> bool:
        """True if no write is in flight and the log has no batch above the window."""
        oracle = self.oracle
        above = [batch for batch in self.log.batches if batch.last_offset >= oracle.window_end]
        return not oracle.writes and oracle.spso == oracle.window_end and not above

    # ---- comparing ---------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        subject, oracle = self.subject, self.oracle
        subject.unblock(self.config, self.now_ms)
        oracle.unblock(self.config)
        window, recs = subject._window, oracle.recs
        seen = available = 0
        for first, end, cell in window.states.runs():
            for offset in range(first, end):
                rec = recs[offset]
                assert cell[:6] == (rec.state, rec.target, rec.count, rec.member, rec.deadline, rec.write), offset
            seen += end - first
            available += sum(oracle.takeable(offset) for offset in range(first, end))
        assert seen == len(recs)
        for first, end, cell in window.available.runs():
            assert cell.state is RecordState.AVAILABLE
            assert all(oracle.takeable(offset) for offset in range(first, end))
            available -= end - first
        assert available == 0
        assert [bounds for _, _, bounds in window.batches.runs()] == oracle.batches()
        assert (subject.spso, subject.window_end) == (oracle.spso, oracle.window_end)
        assert subject.delivery_complete_count == oracle.delivery_complete_count
        assert subject.next_fetch_offset == oracle.next_fetch_offset
        deadlines = [rec.deadline for rec in recs.values() if rec.deadline is not None and rec.write is None]
        wake = subject.next_deadline_ms
        assert not deadlines or (wake is not None and wake <= min(deadlines))
        assert not (oracle.unwritten or oracle.needs_write) or (wake is not None and wake <= self.now_ms)


# ---- random steps ----------------------------------------------------------------------------------------------------


def random_acknowledgement(rng: Random, stage: OracleStage) -> tuple[str, list[AcknowledgementBatch]]:
    """Ascending batches, mostly of records that the member holds, sometimes of others."""
    member = rng.choice(MEMBERS)
    held = sorted(offset for offset, rec in stage.oracle.recs.items() if rec.member == member and rec.write is None)
    batches: list[AcknowledgementBatch] = []
    position = stage.oracle.spso - 5
    for _ in range(rng.choice((1, 1, 2, 4))):
        candidates = [offset for offset in held if offset >= position]
        if candidates and rng.random() < 0.9:
            first = rng.choice(candidates[:10])
            last = first
            while last + 1 in held and rng.random() < 0.8:
                last += 1
        else:
            first = position + rng.randrange(12)
            last = first + rng.randrange(8)
        last += rng.random() < 0.03
        length = last - first + 1
        types = tuple(rng.choices((0, 1, 1, 1, 2, 2, 3, 4), k=length if rng.random() < 0.4 else 1))
        if rng.random() < 0.01:
            types = (5,)
        batch = AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        if stage.experimental and rng.random() < 0.3:
            batch = replace(batch, release_delay_ms=rng.choice((0, 7, 20, 21, 91)))
        batches.append(batch)
        position = last + (rng.random() < 0.95)
    return member, batches


def random_step(rng: Random, stage: OracleStage) -> None:
    choice = rng.random()
    if choice < 0.30:
        mode = rng.choice(tuple(AcquireMode))
        stage.fetch(rng.choice(MEMBERS), mode, rng.choice((1, 3, 10, 50)), rng.choice((1, 4, 20)))
    elif choice < 0.62:
        stage.acknowledge(*random_acknowledgement(rng, stage))
    elif choice < 0.84:
        stage.settle()
    elif choice < 0.92:
        stage.tick(rng.choice((0, 5, 20, 60)))
    elif choice < 0.94:
        stage.release(rng.choice(MEMBERS))
    elif choice < 0.955:
        stage.log.trim(stage.oracle.spso + rng.randrange(-3, 15))
    elif choice < 0.965:
        stage.deliver_letters(rng.randrange(1, 8))
    elif choice < 0.98:
        stage.log.compact(stage.oracle.spso)
    elif choice < 0.99:
        limit, renew, queue = rng.choice((2, 3, 5, 7)), rng.random() < 0.7, rng.random() < 0.5
        stage.reconfigure(delivery_count_limit=limit, renew=renew, queue=queue)
    else:
        stage.reload()
