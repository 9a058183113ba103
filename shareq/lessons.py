"""What the tutorials share: a bench to try things on, the life of one record, and checks that say what is missing.

A learner's answer is a function of a `Bench`; a check looks at what the journal says of it, and at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.consumer import Message, ShareConsumer
from shareq.model.events import MemberJoined, RecordsChanged, SharePartitionLoaded
from shareq.model.states import AcknowledgeType, RecordEvent, RecordState
from shareq.producer import Producer
from shareq.trace import view
from shareq.trace.changes import PREPARED, SETTLED
from shareq.trace.story import journal_of
from shareq.trace.words import span

LOADED = "loaded"
"""What happens to a record when a leader begins with what is durable, and that is less than the last one knew."""


class NotYet(AssertionError):
    """A check that did not pass; the text says what is missing."""


class Bench:
    """A cluster of one broker on a virtual clock, one topic of one partition with record batches of the given sizes,
    and a group that starts at `start`: an offset, "earliest" or "latest".

    Nobody waits here: the group's start is settled before its first member comes, which otherwise takes a heartbeat,
    and its assignment interval is 0. `configs` are the group's, on top of that.
    """

    group, topic = "crew", "jobs"

    def __init__(
        self, *batches: int, start: int | str = "earliest", configs: Mapping[str, object] | None = None
    ) -> None:
        self.cluster = Cluster(brokers=1)
        self.cluster.create_topic(self.topic)
        self.cluster.configure_group(self.group, {"share.assignment.interval.ms": 0, **(configs or {})})
        self.view = view(self.cluster, self.group, self.topic)
        self._producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers})
        self.produce(*batches)
        self.admin = Admin({"bootstrap.servers": self.cluster.bootstrap_servers})
        self.admin.alter_share_group_offsets(self.group, {self.topic: start}).check()

    def produce(self, *batches: int) -> None:
        """Append record batches of these sizes."""
        for size in batches:
            end = self.cluster.log(self.topic, 0).log_end_offset
            for offset in range(end, end + size):
                self._producer.produce(self.topic, f"job {offset}")
            self._producer.flush()

    def consumer(self, name: str, most: int = 500, **more: object) -> ShareConsumer:
        """A subscribed consumer that acknowledges explicitly; `most` is its max.poll.records. It joins when it polls.

        `more` are configurations with underscores for dots, such as share_acquire_mode="record_limit".
        """
        conf = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "group.id": self.group,
            "client.id": name,
            "max.poll.records": most,
            "share.acknowledgement.mode": "explicit",
        }
        consumer = ShareConsumer({**conf, **{key.replace("_", "."): value for key, value in more.items()}})
        consumer.subscribe([self.topic])
        return consumer

    def life(self, offset: int) -> Life:
        return life(self.cluster, self.group, self.topic, 0, offset)

    def __repr__(self) -> str:
        return str(self.view.snapshot()["text"])


def settle(
    consumer: ShareConsumer, messages: Iterable[Message], verdict: AcknowledgeType = AcknowledgeType.ACCEPT
) -> None:
    """Say the same of several records and wait until it is durable; KafkaException if the leader refuses."""
    for message in messages:
        consumer.acknowledge(message, verdict)
    for error in consumer.commit_sync().values():
        if error is not None:
            raise error


def with_one_stuck(bench: Bench, workers: int, seconds: int) -> list[int]:
    """One consumer takes the first batch, accepts all of it but the first record, and falls silent; the `workers` poll
    once a second and accept what they get. Returns how many records were delivered to them in each second."""
    silent = bench.consumer("silent", most=1)
    settle(silent, silent.poll(1)[1:])
    team = [bench.consumer(f"worker-{number}", most=1) for number in range(1, workers + 1)]
    delivered = []
    for _ in range(seconds):
        polled = [(worker, worker.poll(0)) for worker in team]
        for worker, messages in polled:
            settle(worker, messages)
        delivered.append(sum(len(messages) for _, messages in polled))
        bench.cluster.advance(1000)
    return delivered


# ---- the life of one record ------------------------------------------------------------------------------------------


class Moment(NamedTuple):
    """Something that happened to a record: a `RecordEvent`'s name, and what the record was afterwards."""

    time_ms: int
    event: str
    state: str
    delivery_count: int
    who: str | None


@dataclass(frozen=True, slots=True)
class Life:
    """What happened to one record, in order. `time_ms` of its moments counts from the start of the journal."""

    offset: int
    moments: tuple[Moment, ...]

    @property
    def state(self) -> str:
        """What it is now; a record that was never in flight is available."""
        return self.moments[-1].state if self.moments else "available"

    @property
    def events(self) -> list[str]:
        return [moment.event for moment in self.moments]

    @property
    def holders(self) -> list[str]:
        """Who acquired it, in order."""
        return [str(m.who) for m in self.moments if m.event == RecordEvent.ACQUIRE and m.state == "acquired"]

    @property
    def deliveries(self) -> int:
        """How often it was acquired."""
        return len(self.holders)

    def __repr__(self) -> str:
        return "\n".join([f"record {self.offset}", *(_line(moment) for moment in self.moments)])


def _line(moment: Moment) -> str:
    time_ms, event, state, count, who = moment
    return f"{time_ms / 1000:9.3f} s  {event:<15}  {state:<12}  delivery {count}  {who or ''}".rstrip()


def life(source: Any, group: str, topic: str, partition: int, offset: int) -> Life:
    """Everything that happened to one record. A verdict counts when its state write has come through.

    `source`: a `Journal`, or whatever has one as `.journal`. The first acquisition brings the record into being.
    """
    story, origin_ms = view(source, group, topic, partition), journal_of(source).origin_ms
    names: dict[str, str] = {}
    moments: list[Moment] = []
    for order in range(1, story.total() + 1):
        _, time_ms, _, event = story.entry(order)
        since_ms = time_ms - origin_ms
        if isinstance(event, MemberJoined):
            names[event.member_id] = event.client_id or event.member_id
        elif isinstance(event, SharePartitionLoaded):
            if moments and offset >= event.spso:
                found = [(run.state, run.delivery_count) for run in event.runs if run.first <= offset < run.end]
                state, count = found[0] if found else (RecordState.AVAILABLE, 0)
                if (_name(state), count) != moments[-1][2:4]:
                    moments.append(Moment(since_ms, LOADED, _name(state), count, None))
        elif isinstance(event, RecordsChanged) and event.first <= offset < event.end and event.cause != PREPARED:
            holder = moments[-1].who if moments and moments[-1].state == "acquired" else None
            who = holder if event.member_id is None else names.get(event.member_id, event.member_id)
            what = str(event.why if event.cause == SETTLED else event.cause)
            moments.append(Moment(since_ms, what, _name(event.state), event.delivery_count, who))
    return Life(offset, tuple(moments))


def _name(state: int) -> str:
    return RecordState(state).name.lower()


# ---- checks ----------------------------------------------------------------------------------------------------------


class Passed(str):
    """What a check answers when it holds: shown as it is where a cell ends with it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def check(holds: bool, passed: str, failed: str) -> Passed:
    """Say that it holds, or raise NotYet with what is missing."""
    if not holds:
        raise NotYet(f"✗ {failed}")
    return Passed(f"✓ {passed}")


def check_life(
    life: Life,
    *,
    state: str,
    deliveries: int | None = None,
    holders: Iterable[str] | None = None,
    without: Iterable[str] = (),
) -> Passed:
    """Check what became of a record: its state now, how often and by whom it was acquired, and what must not have
    happened to it. NotYet tells the first thing that is wrong, and the record's life."""
    wanted = None if holders is None else list(holders)
    forbidden = [event for event in without if event in life.events]
    wrong = ""
    if forbidden:
        wrong = f"this was to be done without {forbidden[0]}"
    elif life.state != state:
        wrong = f"record {life.offset} is {life.state}, and should be {state}"
    elif deliveries not in (None, life.deliveries):
        wrong = (
            f"record {life.offset} was delivered {_times(life.deliveries)}, and should have been {_times(deliveries)}"
        )
    elif wanted not in (None, life.holders):
        wrong = f"record {life.offset} was held by {_row(life.holders)}, and should have been by {_row(wanted)}"
    told = f"record {life.offset} is {life.state}, delivered {_times(life.deliveries)}: {' → '.join(life.events)}"
    return check(not wrong, told, f"{wrong}; its life so far:\n{life}")


def check_window(
    snapshot: Mapping[str, Any], *, spso: int | None = None, speo: int | None = None, records: str | None = None
) -> Passed:
    """Check a snapshot of a view: SPSO, SPEO (the first offset above the window), and `in_flight(snapshot)`."""
    truth = {"spso": snapshot["spso"], "speo": snapshot["speo"], "records": in_flight(snapshot)}
    wanted = {"spso": spso, "speo": speo, "records": records}
    wrong = [
        f"{name.upper()} is {truth[name]!r}, and should be {value!r}"
        for name, value in wanted.items()
        if value not in (None, truth[name])
    ]
    told = f"SPSO {truth['spso']}, SPEO {truth['speo']}: {truth['records'] or 'empty'}"
    return check(not wrong, told, "; ".join(wrong))


def in_flight(snapshot: Mapping[str, Any]) -> str:
    """The records of a window in words, whoever holds them: "110 available 1, 111–118 acquired 1"."""
    merged: list[tuple[int, int, str]] = []
    for first, end, state, count, *_ in snapshot["runs"]:
        what = f"{state} {count}"
        if merged and merged[-1][1:] == (first, what):
            first = merged.pop()[0]
        merged.append((first, end, what))
    return ", ".join(f"{span(first, end)} {what}" for first, end, what in merged)


def _times(count: int | None) -> str:
    return "once" if count == 1 else f"{count} times"


def _row(names: list[str] | None) -> str:
    return ", then ".join(names or []) or "nobody"
