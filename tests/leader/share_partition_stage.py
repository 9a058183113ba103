"""A share-partition with a clock; events and state in the shorthand of BEHAVIOUR.md's examples.

    stage = SharePartitionStage()
    stage.fetch("m", "0-4,5-9")                # two record batches in the log; returns "0-9(1)"
    stage.acknowledge("m", "0-4:1,5-9:2")      # accept five, release five; the write succeeds
    stage.state                                # "5-9 AV(1)"
    write = stage.ack("m", "5-9:1")            # the write is in flight: stage.ok(write), stage.fail(write)

Ranges are inclusive, as in the protocol. Types: 0 gap, 1 accept, 2 release, 3 reject, 4 renew; one, or one per offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shareq.leader.experiments.kinds import kind_of_share_partition
from shareq.leader.share_partition import PreparedWrite
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import RULE_DELAY, AcknowledgementBatch
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import AcquireMode, IsolationLevel, RecordState

KEY = SharePartitionKey("g", TopicId("B" * 22), 0)
CODES = {
    "AV": RecordState.AVAILABLE,
    "ACK": RecordState.ACKNOWLEDGED,
    "AI": RecordState.ARCHIVING,
    "AR": RecordState.ARCHIVED,
}
NAMES = {state: code for code, state in CODES.items()} | {RecordState.ACQUIRED: "ACQ"}


def ranges(text: str) -> Iterator[tuple[int, int, str]]:
    """ "0-4,5:x" as (0, 4, "") and (5, 5, "x")."""
    for item in filter(None, text.split(",")):
        bounds, _, suffix = item.strip().partition(":")
        first, _, last = bounds.partition("-")
        yield int(first), int(last or first), suffix


def record_batches(text: str) -> list[RecordBatch]:
    """Record batches by offsets; suffix t: a batch of producer 7's transaction, x: its end marker."""
    attributes = {"": 0, "t": 0x10, "x": 0x30}
    return [
        RecordBatch(first, last, 0, 0, 0, 7 if kind else -1, 0, -1, last - first + 1, attributes[kind], b"")
        for first, last, kind in ranges(text)
    ]


def acknowledgements(text: str) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(map(int, types)))
        for first, last, types in ranges(text)
    ]


def state_batches(text: str) -> list[StateBatch]:
    """ "21-30:ACK,31-40:AV2" as state batches: a state and a delivery count, 1 if omitted."""
    stored = []
    for first, last, state in ranges(text):
        code = state.rstrip("0123456789")
        stored.append(StateBatch(first, last, CODES[code], int(state[len(code) :] or 1)))
    return stored


def show(write: PreparedWrite | None) -> str:
    """ "start 0, dcc 6: 0-5 ACK(1)"."""
    if write is None:
        return "none"
    batches = ", ".join(
        f"{span(b.first_offset, b.last_offset)} {NAMES[RecordState(b.delivery_state)]}({b.delivery_count})"
        for b in write.state_batches
    )
    return f"start {write.start_offset}, dcc {write.delivery_complete_count}: {batches}"


def span(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else str(first)


class SharePartitionStage:
    """One share-partition, its clock and its configuration; `stored` is the durable state that it loads."""

    def __init__(
        self,
        *,
        limit: int = 5,
        locks: int = 2000,
        committed: bool = False,
        start: int = 0,
        stored: str = "",
        traced: bool = False,
        queue: bool = False,
        experiments: Experiments | None = None,
    ) -> None:
        self.now_ms = 0
        self.in_flight: PreparedWrite | None = None
        self.config = GroupConfig(
            delivery_count_limit=limit,
            partition_max_record_locks=locks,
            isolation_level=IsolationLevel(committed),
            dead_letter_queue=queue,
            experiments=experiments,
        )
        self.partition = kind_of_share_partition(experiments)(KEY, "t", leader_epoch=1, traced=traced)
        assert self.partition.load(3, start, state_batches(stored), config=self.config)

    def configure(
        self, *, limit: int | None = None, locks: int | None = None, renew: bool = True, queue: bool | None = None
    ) -> None:
        config = self.config
        self.config = replace(
            config,
            delivery_count_limit=limit or config.delivery_count_limit,
            partition_max_record_locks=locks or config.partition_max_record_locks,
            renew_acknowledge_enable=renew,
            dead_letter_queue=config.dead_letter_queue if queue is None else queue,
        )

    # ---- events ------------------------------------------------------------------------------------------------------

    def fetch(
        self,
        member: str,
        data: str,
        *,
        offset: int | None = None,
        most: int = 500,
        size: int = 500,
        mode: str = "B",
        aborted: str = "",
        keys: str = "",
        times: Sequence[int] = (),
    ) -> str:
        """Acquire from the log's batches at the next fetch offset; returns text such as "0-11(1), 12-29(1)". `keys`:
        one letter for each record from the first one on, "-" for none. `times`: of the batches, 0 if omitted."""
        batches = record_batches(data)
        batches = (
            [batch._replace(max_timestamp=ms) for batch, ms in zip(batches, times, strict=True)] if times else batches
        )
        first = batches[0].base_offset
        acquired, self.records = self.partition.acquire(
            batches,
            self.next if offset is None else offset,
            member_id=member,
            max_records=most,
            batch_size=size,
            mode=AcquireMode.RECORD_LIMIT if mode == "R" else AcquireMode.BATCH_OPTIMIZED,
            config=self.config,
            keys=[(first + n, first + n + 1, key.encode()) for n, key in enumerate(keys) if key != "-"],
            aborted=[AbortedTransaction(7, first, last) for first, last, _ in ranges(aborted)],
            now_ms=self.now_ms,
        )
        return ", ".join(f"{span(a.first_offset, a.last_offset)}({a.delivery_count})" for a in acquired)

    def outcome(self, member: str, text: str, *, delay_ms: int = RULE_DELAY) -> Errors | PreparedWrite | None:
        batches = [replace(batch, release_delay_ms=delay_ms) for batch in acknowledgements(text)]
        return self.partition.acknowledge(member, batches, self.config, self.now_ms)

    def ack(self, member: str, text: str) -> PreparedWrite:
        """Acknowledge; the returned write is in flight."""
        write = self.outcome(member, text)
        assert isinstance(write, PreparedWrite)
        return write

    def error(self, member: str, text: str) -> Errors:
        """Acknowledge and return the error."""
        error = self.outcome(member, text)
        assert isinstance(error, Errors)
        return error

    def acknowledge(self, member: str, text: str, *, delay_ms: int = RULE_DELAY) -> str:
        """Acknowledge and let the write succeed; returns what was written."""
        write = self.outcome(member, text, delay_ms=delay_ms)
        assert isinstance(write, PreparedWrite)
        self.ok(write)
        return show(write)

    def close(self, member: str) -> PreparedWrite | None:
        return self.partition.release_member(member, self.config)

    def ok(self, write: PreparedWrite | None) -> bool:
        assert write is not None
        return self.partition.settle(write.write_id, Errors.NONE, self.config, self.now_ms)

    def fail(self, write: PreparedWrite | None) -> bool:
        assert write is not None
        return self.partition.settle(write.write_id, Errors.UNKNOWN_SERVER_ERROR, self.config, self.now_ms)

    def tick(self, now_ms: int) -> PreparedWrite | None:
        """Set the clock and expire locks; returns the write."""
        self.now_ms = now_ms
        return self.partition.expire(now_ms, self.config)

    def expire_all(self) -> str:
        """Expire all locks and let the write succeed; returns what was written."""
        write = self.tick(self.now_ms + self.config.record_lock_duration_ms)
        self.ok(write)
        return show(write)

    def letters(self) -> str:
        """The new dead letters: "0-3(2) too often, 5(1) rejected"."""
        return ", ".join(
            f"{span(letter.first, letter.end - 1)}({letter.delivery_count}) "
            + ("rejected" if letter.rejected else "expired" if letter.expired else "too often")
            for letter in self.partition.take_letters()
        )

    def dead_lettered(self, *places: tuple[int, int]) -> str:
        """The way of letters [first, end) has ended; returns what is written, successfully."""
        write = self.partition.dead_lettered(places, self.now_ms)
        self.ok(write)
        return show(write)

    def log_start(self, offset: int) -> None:
        self.partition.advance_log_start(offset)

    # ---- state -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """All runs, including those held below the SPSO: "10-14 ACQ(1)@m, 15-19 ACQ(1)@m>ACK"."""
        runs = []
        for first, end, cell in self.partition._window.states.runs():
            text = f"{span(first, end - 1)} {NAMES[cell.state]}({cell.delivery_count})"
            text += f"@{cell.member_id}" if cell.member_id else ""
            text += f" until {cell.deadline_ms}" if cell.rests else ""
            runs.append(text + (f">{NAMES[cell.to_state]}" if cell.write_id is not None else ""))
        return ", ".join(runs)

    @property
    def next(self) -> int:
        return self.partition.next_fetch_offset

    @property
    def spso(self) -> int:
        return self.partition.spso

    @property
    def window_end(self) -> int:
        """Exclusive end, as in SharePartition."""
        return self.partition.window_end

    @property
    def dcc(self) -> int:
        return self.partition.delivery_complete_count

    @property
    def can_acquire(self) -> bool:
        return self.partition.can_acquire(self.config.partition_max_record_locks)
