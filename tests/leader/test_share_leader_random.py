"""Invariants under random members, malformed requests, slow and failing persisters, lost connections, leader changes
and logs that lose records.

- every request has exactly one response, soon after the log and the persister have answered
- no member receives a record that another member holds
- responses have only results that belong to the request
- a record whose acceptance was confirmed is never delivered again
- `wake_at_ms` of the actor does not stay in the past
- after faults have stopped, every record becomes terminal, and new records reach waiting fetches
"""

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from shareq.leader.share_partition import SharePartition
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionDropped, SharePartitionLoaded, WindowMoved
from shareq.model.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from shareq.model.states import TERMINAL
from tests.leader.stage import FakeLog, Member, SentRequest, Stage, offsets

PARTITIONS = 4
LOCK_MS = 15_000
FAILURES = (
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.FENCED_STATE_EPOCH,
    Errors.NETWORK_EXCEPTION,
)


class Sent(NamedTuple):
    """When a request was sent, and the SPSO of each partition then: what is acknowledged below it has no effect."""

    step: int
    ms: int
    starts: dict[int, int]


class Hold(NamedTuple):
    """`member` received the record at `step`; its lock certainly lasts until `until_ms`."""

    member: Member
    step: int
    until_ms: int


class RandomRun:
    """One run. `held` are records that are certainly locked, `accepted` those that must never be delivered again, by
    step.

    A response can be older than its arrival, because it waits for the durability of its acknowledgements. Therefore a
    record is checked only against requests that were sent after it became known to be held or accepted.
    """

    def __init__(
        self, seed: int, *, broker: Mapping[str, object] | None = None, group: Mapping[str, str] | None = None
    ) -> None:
        self.rng = random.Random(seed)
        self.stage = Stage(
            partitions=PARTITIONS,
            broker={"group.share.max.share.sessions": 6, "group.share.max.size": 6, **(broker or {})},
            group={
                "share.record.lock.duration.ms": str(LOCK_MS),
                "share.partition.max.record.locks": "100",
                "share.delivery.count.limit": "10",
                **(group or {}),
            },
            traced=True,
        )
        self.members = [self.stage.member(f"m{i}", connection_id=i) for i in range(8)]
        self.open: list[tuple[Member, SentRequest, dict[int, str], Sent]] = []
        self.held: dict[tuple[int, int], Hold] = {}
        self.mine: dict[Member, set[tuple[int, int]]] = {member: set() for member in self.members}
        self.accepted: dict[tuple[int, int], int] = {}
        self.dropped: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.acknowledged_at: dict[tuple[int, int], int] = {}
        self.steps = 0
        self.epochs = [0] * PARTITIONS
        self.counts: Counter[str] = Counter()

    # ---- actions -----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        doings = {
            self.fetch: 30,
            self.acknowledge: 20,
            self.renew: 8,
            self.produce: 12,
            self.answer_some: 25,
            self.time: 12,
            self.malformed_request: 3,
            self.close: 2,
            self.disconnect: 1,
            self.move_leader: 1,
            self.hold_or_not: 4,
            self.cut: 1,
            self.compact: 2,
        }
        doing = self.rng.choices(list(doings), list(doings.values()))[0]
        self.counts[doing.__name__] += 1
        self.steps += 1
        doing()
        self.collect()

    def fetch(self) -> None:
        rng, member = self.rng, self.rng.choice(self.members)
        partitions = "".join(rng.sample("0123", rng.randrange(3)))
        acks = self.acks(member) if member.epoch and rng.random() < 0.5 else {}
        exchange = member.fetch(
            partitions if member.epoch else "0123",
            acks=acks,
            forget=rng.choice("0123") if rng.random() < 0.1 else "",
            max_wait_ms=rng.choice((0, 100, 500, 3000)),
            min_bytes=rng.choice((0, 1, 1, 500)),
            max_bytes=rng.choice((3, 300, 10_000)),
            max_records=rng.choice((1, 7, 200)),
            batch_size=rng.choice((1, 7, 50)),
            share_acquire_mode=rng.choice((0, 0, 1)),
        )
        self.sent(member, exchange, acks)

    def acknowledge(self) -> None:
        member = self.rng.choice(self.members)
        acks = self.acks(member)
        self.sent(member, member.acknowledge(acks), acks)

    def renew(self) -> None:
        member = self.rng.choice(self.members)
        found: dict[int, str] = {}
        for partition, offset in sorted(self.mine[member]):
            if self.rng.random() < 0.5:
                found[partition] = f"{found.get(partition, '')} {offset}:4"
        self.sent(member, member.renew(found), found)

    def cut(self) -> None:
        log = self.rng.choice(self.stage.logs)
        log.cut(self.rng.randrange(log.start, log.end + 1))

    def compact(self) -> None:
        """Remove random batches, possibly the first and the last."""
        log = self.rng.choice(self.stage.logs)
        log.batches = [batch for batch in log.batches if self.rng.random() < 0.9]

    def sent(self, member: Member, exchange: SentRequest, acks: dict[int, str]) -> None:
        self.open.append((member, exchange, acks, self.now()))

    def now(self) -> Sent:
        return Sent(self.steps, self.stage.now_ms, dict(self.starts))

    def acks(self, member: Member) -> dict[int, str]:
        """Acknowledge some of the member's records, and sometimes others.

        From here on any member can receive them: a release can take effect before its response arrives.
        """
        found: dict[int, list[int]] = {}
        for at in sorted(self.mine[member]):
            if self.rng.random() < 0.8:
                found.setdefault(at[0], []).append(at[1])
                self.mine[member].remove(at)
                self.held.pop(at, None)
                self.acknowledged_at[at] = self.steps
        if self.rng.random() < 0.05:
            found.setdefault(self.rng.randrange(PARTITIONS), []).insert(0, self.rng.randrange(200))
        kinds = self.rng.choice(("1", "1", "12", "0123"))
        return {p: " ".join(f"{o}:{self.rng.choice(kinds)}" for o in run) for p, run in found.items()}

    def produce(self) -> None:
        rng = self.rng
        self.stage.produce(
            rng.randrange(PARTITIONS),
            *[rng.choice((1, 2, 5, 8, 60)) for _ in range(rng.randrange(1, 5))],
            size=rng.randrange(200),
        )

    def answer_some(self) -> None:
        stage, rng = self.stage, self.rng
        if stage.held:
            which = rng.sample(range(len(stage.held)), rng.randrange(1, len(stage.held) + 1))
            stage.release(*which, error=rng.choice(FAILURES) if rng.random() < 0.1 else Errors.NONE)
        if rng.random() < 0.5:
            stage.release_logs()

    def time(self) -> None:
        self.stage.pass_time(self.rng.choice((1, 50, 500, 5000, LOCK_MS)))

    def malformed_request(self) -> None:
        member, rng = self.rng.choice(self.members), self.rng
        malformed: list[dict[str, Any]] = [
            {"group_id": None},
            {"member_id": "x" * 40},
            {"share_session_epoch": rng.randrange(-5, 9)},
            {"is_renew_ack": True},
            {"share_acquire_mode": 77, "share_session_epoch": member.epoch},
        ]
        request = ShareFetchRequest(
            **{"group_id": "g", "member_id": "unknown", "share_session_epoch": 1, **rng.choice(malformed)}
        )
        self.sent(member, self.stage.send(request, 99), {})

    def close(self) -> None:
        member = self.rng.choice(self.members)
        self.sent(member, member.close(), {})
        self.reset(member)

    def disconnect(self) -> None:
        member = self.rng.choice(self.members)
        self.stage.close_connection(member.connection_id)
        self.reset(member)

    def move_leader(self) -> None:
        partition = self.rng.randrange(PARTITIONS)
        self.epochs[partition] += 2
        self.stage.set_leader(partition, 1, self.epochs[partition] - 1)
        self.stage.set_leader(partition, 0, self.epochs[partition])

    def hold_or_not(self) -> None:
        self.stage.hold = self.rng.random() < 0.5
        self.stage.hold_reads = self.rng.random() < 0.2

    def reset(self, member: Member) -> None:
        self.held = {at: holder for at, holder in self.held.items() if holder.member is not member}
        self.mine[member].clear()
        member.epoch = 0

    # ---- invariants --------------------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Check the responses that have arrived since the last call."""
        stage = self.stage
        dropped = {e.partition for e in stage.events if isinstance(e, SharePartitionDropped)}
        self.dropped.update(dict.fromkeys(dropped, self.steps))
        self.held = {at: holder for at, holder in self.held.items() if at[0] not in dropped}
        moved = [e for e in stage.events if isinstance(e, SharePartitionLoaded | WindowMoved)]
        self.starts |= {e.partition: e.spso for e in moved}
        stage.events.clear()
        done = [entry for entry in self.open if not entry[1].waiting]
        self.open = [entry for entry in self.open if entry[1].waiting]
        for member, exchange, acks, sent in done:
            self.counts[exchange.error.name] += 1
            if exchange.error:
                assert exchange.response.responses == ()
                member.epoch = 0
                continue
            self.well_formed(exchange, acks)
            self.accept(exchange, acks, sent)
            if isinstance(exchange.response, ShareFetchResponse):
                self.take(member, exchange, sent)

    def well_formed(self, exchange: SentRequest, acks: dict[int, str]) -> None:
        listed = [part.partition_index for topic in exchange.response.responses for part in topic.partitions]
        assert len(listed) == len(set(listed)), "a partition is listed once"
        assert set(acks) <= set(listed), "every acknowledgement has a result"
        for runs in exchange.acquired.values():
            taken = offsets(runs)
            assert taken == sorted(set(taken)), "runs ascend and do not overlap"

    def accept(self, exchange: SentRequest, acks: dict[int, str], sent: Sent) -> None:
        """Remember the records whose acceptance is confirmed.

        Not those below the SPSO: they are ignored without an error, and return if the write that archived them is lost.
        """
        is_fetch = isinstance(exchange.response, ShareFetchResponse)
        for partition, text in acks.items():
            if (exchange.acks if is_fetch else exchange.errors)[partition] is Errors.NONE:
                accepted = [int(ack.split(":")[0]) for ack in text.split() if ack.endswith(":1")]
                start = sent.starts.get(partition, 0)
                self.accepted.update({(partition, at): self.steps for at in accepted if at >= start})

    def take(self, member: Member, exchange: SentRequest, sent: Sent) -> None:
        """Check that no acquired record is certainly held by another member or accepted."""
        for partition, runs in exchange.acquired.items():
            covered = [(batch.base_offset, batch.last_offset) for batch in exchange.parts[partition].records]
            for offset in offsets(runs):
                at = (partition, offset)
                delivered = any(first <= offset <= last for first, last in covered)
                assert delivered or not self.in_log(at), f"{at} is acquired and not delivered"
                assert self.accepted.get(at, self.steps) >= sent.step, f"{at} was accepted before"
                hold = self.held.pop(at, None)
                if hold is not None and hold.step < sent.step:
                    assert self.stage.now_ms >= hold.until_ms, f"{at} is held by {hold.member.member_id}"
                if hold is None and max(self.dropped.get(partition, -1), self.acknowledged_at.get(at, -1)) < sent.step:
                    self.held[at] = Hold(member, self.steps, sent.ms + LOCK_MS)
                self.mine[member].add(at)
                self.counts["delivered"] += 1

    def in_log(self, at: tuple[int, int]) -> bool:
        return any(batch.base_offset <= at[1] <= batch.last_offset for batch in self.stage.logs[at[0]].batches)

    # ---- completion --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Complete all requests, accept the remaining records, and check the durable state after a reload."""
        stage = self.stage
        stage.hold = stage.hold_reads = False
        while stage.held or stage.held_logs:
            stage.release()
            stage.release_logs()
        stage.pass_time(3000)
        self.collect()
        assert self.open == [], "every request has a response"
        self.run_to_completion()
        for member in self.members:
            stage.close_connection(member.connection_id)
            self.reset(member)
        self.accept_remaining("last")
        for partition in range(PARTITIONS):
            self.epochs[partition] += 2
            stage.set_leader(partition, 1, self.epochs[partition] - 1)
            stage.set_leader(partition, 0, self.epochs[partition])
        self.collect()
        self.accept_remaining("after a reload")

    def run_to_completion(self) -> None:
        """Let members accept all records until none is in flight; new records then reach waiting fetches at once."""
        stage = self.stage
        stage.close_connection(99)
        stage.pass_time(LOCK_MS)  # records below a moved log start are held until their locks expire
        for member in self.members * 2:  # the first attempt can have an epoch that the session has passed
            self.sent(member, member.fetch("0123", max_wait_ms=0, max_records=0), {})
            stage.pass_time(0)
            self.collect()
        members = [member for member in self.members if member.epoch]
        assert len(members) == 6, "the session limit"
        before, same = None, 0
        while any(self.mine.values()) or any(self.unfinished()):
            self.accept_all(members)
            stage.pass_time(500)
            self.collect()
            left = list(self.unfinished())
            same = same + 1 if left == before else 0
            before = left
            assert same < 200, left
        for partition in range(PARTITIONS):
            stage.produce(partition, 3)
        for member in members:
            self.sent(member, member.fetch(max_wait_ms=500, max_records=50, batch_size=50), {})
        self.collect()
        assert sorted(at[0] for mine in self.mine.values() for at in mine) == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
        self.accept_all(members)
        assert [window.window_size for window, _ in self.windows()] == [0] * PARTITIONS, (
            "every window has moved to its end"
        )

    def accept_all(self, members: list[Member]) -> None:
        """Each member accepts all its records and fetches more."""
        for member in members:
            acks: dict[int, str] = {}
            for partition, offset in sorted(self.mine[member]):
                acks[partition] = f"{acks.get(partition, '')} {offset}:1"
            self.mine[member].clear()
            self.steps += 1
            self.held = {at: hold for at, hold in self.held.items() if hold.member is not member}
            self.sent(member, member.fetch(acks=acks, max_wait_ms=500, max_records=50, batch_size=50), acks)

    def windows(self) -> Iterator[tuple[SharePartition, FakeLog]]:
        for led in self.stage.leader._partitions._leds.values():
            if led.key.group_id == "g":
                yield led.share_partition, self.stage.logs[led.key.partition]

    def unfinished(self) -> Iterator[str]:
        """Share-partitions with a record that is not terminal, or with batches above the window."""
        for window, log in self.windows():
            above = any(batch.last_offset >= window.window_end for batch in log.batches)
            if above or any(run.state not in TERMINAL for run in window.runs()):
                yield f"{window.topic}-{window.key.partition}: {window.spso}-{window.window_end} {window.runs()}"

    def accept_remaining(self, name: str) -> None:
        """One member acquires and accepts records until a fetch returns none."""
        stage = self.stage
        stage.pass_time(LOCK_MS)
        member = stage.member(name, connection_id=50)
        self.mine[member] = set()
        member.fetch("0123", max_wait_ms=0, max_records=0)
        for _ in range(1000):
            exchange = member.fetch(max_wait_ms=0, max_records=1000, batch_size=1000)
            assert not any(exchange.errors.values())
            self.steps += 1
            sent = self.now()
            self.take(member, exchange, sent)
            acks = {p: " ".join(f"{o}:1" for o in offsets(runs)) for p, runs in exchange.acquired.items()}
            if not acks:
                return
            accepted = member.acknowledge(acks)
            assert not any(accepted.errors.values())
            self.accept(accepted, acks, sent)
        raise AssertionError("records are still delivered after 1000 fetches")


@pytest.mark.parametrize("run", range(int(os.environ.get("SHAREQ_RUNS", "12"))))
def test_random_runs_keep_the_invariants(seed: int, run: int) -> None:
    """The environment variable SHAREQ_RUNS sets the number of runs."""
    run_ = RandomRun(seed + run)
    for _ in range(600):
        run_.step()
    run_.finish()
