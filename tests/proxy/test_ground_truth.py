"""The journal of a tap equals the log of the program whose consumers are connected through it, for each kind of client.

A seeded program polls, acknowledges, closes consumers and lets locks run out. It keeps its own log: each record that a
poll has returned, and each acknowledgement with its result. SHAREQ_TRUTH_SEEDS sets the number of programs for each
kind of client.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import pytest

from shareq import AcknowledgeType, Admin, NewTopic, Producer, tap
from shareq.kafka import LocalKafka
from shareq.model.errors import Errors
from shareq.model.events import AcknowledgementsSent, HoldEnded, MemberJoined, RecordsHeld, ShareSessionOpened
from shareq.proxy import Tap
from tests.kafka.fixtures import START_S, Reachable
from tests.polling import configure, eventually
from tests.proxy.members import ACCEPT, Client, Got, Member
from tests.trace.histories import fold

SEEDS = int(os.environ.get("SHAREQ_TRUTH_SEEDS", "2"))
STEPS = 25
PARTITIONS = 2
HIGH_LIMIT = 25
"""A delivery count limit so high that locks that run out archive no record."""
DEFAULT_LIMIT = 5
"""Kafka's `group.share.delivery.count.limit`."""

FINAL = {"ACCEPT", "REJECT"}

Record = tuple[int, int]


@dataclass
class Log:
    """What has happened to each record, (partition, offset).

    An acknowledgement names no delivery: that of a lock that has run out counts for the member's next lock. A program
    that gets the result later than other members theirs does not know the order of two members' acknowledgements.
    """

    got: dict[Record, list[tuple[int, str]]] = field(default_factory=partial(defaultdict, list))
    """The deliveries: (delivery count, client id)."""
    confirmed: dict[tuple[Record, str], list[str]] = field(default_factory=partial(defaultdict, list))
    """The types of confirmed acknowledgements of a client."""
    answered: Counter[tuple[str, int, str, str]] = field(default_factory=Counter)
    """Acknowledged offsets by client id, partition, type and error."""
    sent: dict[tuple[Record, str], list[str]] = field(default_factory=partial(defaultdict, list))
    """The types of all acknowledgements of a client."""
    ambiguous: set[tuple[Record, str]] = field(default_factory=set)
    """Where a client has had two copies of a record: a result names no type, so it could be either's."""
    answered_ambiguously: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    """Acknowledged offsets of those by client id, partition and error."""


class Program:
    """Consumers of one group, by name, and the log of what they get and acknowledge."""

    def __init__(self, client: Client, tapped: Tap, group: str, topic: str, rng: random.Random) -> None:
        self._client, self._tapped, self._group, self._topic, self._rng = client, tapped, group, topic, rng
        self._numbers = count()
        self.names: set[str] = set()
        self._members: dict[str, Member] = {}
        self._under_way: dict[tuple[Record, str], list[AcknowledgeType]] = defaultdict(list)
        self.log = Log()

    def run(self) -> None:
        for _ in range(3):
            self._open()
        self._produce()
        for _ in range(STEPS):
            name = self._rng.choice([*self._members])
            step = self._rng.choices([self._work, self._produce, self._replace, self._outstay], [16, 2, 2, 1])[0]
            step(name)
        for name in [*self._members]:
            self._close(name)

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Open a consumer, and let it work until it has a share session.

        `close()` of confluent-kafka 2.16 never returns if it is called between the first assignment and the metadata of
        the topics in it: librdkafka then adds the partitions of a consumer that has ended, and waits for them.
        """
        name = f"c{next(self._numbers)}"
        self.names.add(name)
        self._members[name] = self._client.open(name, self._tapped.bootstrap_servers, self._group, self._topic)
        eventually(partial(self._has_session_after_work, name), True)

    def _produce(self, name: str = "") -> None:
        del name
        with Producer({"bootstrap.servers": self._tapped.bootstrap_servers}) as producer:
            for number in range(self._rng.randrange(10, 30)):
                producer.produce(self._topic, f"{number}", partition=self._rng.randrange(PARTITIONS))

    def _has_session_after_work(self, name: str) -> bool:
        self._work(name)
        if name not in self._members:
            return True  # it has been replaced
        journal = self._tapped.journal
        joined = (entry.event for entry in journal.select(MemberJoined, group=self._group))
        members = {event.member_id for event in joined if isinstance(event, MemberJoined) and event.client_id == name}
        opened = (entry.event for entry in journal.select(ShareSessionOpened, group=self._group))
        return any(event.member_id in members for event in opened if isinstance(event, ShareSessionOpened))

    def _work(self, name: str) -> None:
        """Poll, and acknowledge all; the next poll or a commit sends it."""
        records = self._poll(name)
        if not self._can_acknowledge(records):
            self._replace(name)
            return
        self._acknowledge(name, records)
        if self._rng.random() < 0.6:
            self._members[name].commit()
            self._note(name, self._members[name])

    def _replace(self, name: str) -> None:
        self._close(name)
        self._open()

    def _outstay(self, name: str) -> None:
        """Acknowledge records after their locks have run out.

        The acknowledgement of an older copy, under way with this poll, can end a delivery before its lock does.
        """
        records = self._poll(name)
        for record in records:
            eventually(partial(self._has_ended, record), True)
        if not self._can_acknowledge(records):
            self._replace(name)
            return
        self._acknowledge(name, records)
        self._members[name].commit()
        self._note(name, self._members[name])

    def _close(self, name: str) -> None:
        """Acknowledgements under way are sent with the end of the share session."""
        member = self._members.pop(name)
        member.close()
        self._note(name, member)

    # ---- the log -----------------------------------------------------------------------------------------------------

    def _poll(self, name: str) -> list[Got]:
        records = self._members[name].poll(0.3)
        self._note(name, self._members[name])
        for partition, offset, delivery_count in records:
            got = self.log.got[partition, offset]
            if (delivery_count, name) not in got:  # a renewed record is returned again
                got.append((delivery_count, name))
        return records

    def _acknowledge(self, name: str, records: list[Got]) -> None:
        for record in records:
            kind = self._rng.choice((ACCEPT, *self._client.kinds))
            self._members[name].acknowledge(record, kind)
            self._under_way[record[:2], name].append(kind)
            self.log.sent[record[:2], name].append(kind.name)

    def _can_acknowledge(self, records: list[Got]) -> bool:
        return self._client.acknowledges_copies or len({record[:2] for record in records}) == len(records)

    def _note(self, name: str, member: Member) -> None:
        for partition, offset, error in member.results():
            record = ((partition, offset), name)
            under_way = self._under_way[record]
            if len(under_way) > 1:
                self.log.ambiguous.add(record)
            kind = under_way.pop(0).name
            if record in self.log.ambiguous:
                self.log.answered_ambiguously[name, partition, error] += 1
            else:
                self.log.answered[name, partition, kind, error] += 1
            if error == "NONE":
                self.log.confirmed[record].append(kind)

    def _has_ended(self, record: Got) -> bool:
        ended = self._tapped.journal.select(HoldEnded, group=self._group)
        return any(
            (e.partition, e.delivery_count) == (record.partition, record.delivery_count)
            and e.first <= record.offset < e.end
            for e in (entry.event for entry in ended)
            if isinstance(e, HoldEnded)
        )


def journalled(tapped: Tap, group: str) -> tuple[Log, set[tuple[Record, int]]]:
    """The same by the journal; and the deliveries whose end is inferred."""
    joined = [entry.event for entry in tapped.journal.select(MemberJoined, group=group)]
    clients = {event.member_id: event.client_id for event in joined if isinstance(event, MemberJoined)}
    log, inferred = Log(), set()
    held: dict[Record, tuple[int, str]] = {}
    for entry in tapped.journal.select(RecordsHeld, HoldEnded, AcknowledgementsSent, group=group):
        event = entry.event
        assert isinstance(event, RecordsHeld | HoldEnded | AcknowledgementsSent)
        name = clients[event.member_id]
        if isinstance(event, AcknowledgementsSent):
            error = Errors(event.error).name
            answered = {(name, event.partition, kind.name, error): event.counts[kind] for kind in AcknowledgeType}
            log.answered.update(+Counter(answered))
            continue
        for at in [(event.partition, offset) for offset in range(event.first, event.end)]:
            delivery = (event.delivery_count, name)
            if isinstance(event, RecordsHeld):
                if held.get(at) == delivery:
                    log.confirmed[at, name].append("RENEW")
                elif delivery not in log.got[at]:  # else its lock was inferred to have run out
                    log.got[at].append(delivery)
                held[at] = delivery
            else:
                assert held.pop(at) == delivery
                if event.cause in {"lock_timeout", "session_release"}:
                    inferred.add((at, event.delivery_count))
                else:
                    log.confirmed[at, name].append(event.cause.upper())
    return log, inferred


def may_be_unreturned(
    delivery: tuple[int, str], returned: list[tuple[int, str]], at: Record, inferred: set[tuple[Record, int]]
) -> bool:
    """True if the delivery has ended without a poll that returns it: by itself, or by the acknowledgement of an older
    copy, which the client applies to the newest."""
    delivery_count, name = delivery
    return (at, delivery_count) in inferred or any(count < delivery_count and name == n for count, n in returned)


def compare(client: Client, servers: str, fresh: Callable[[str], str], seed: int, limit: int = HIGH_LIMIT) -> None:
    """Run a program through a tap, and compare: each record has the same deliveries and confirmed acknowledgements in
    the same order. The journal also has records that a client has fetched and no poll has returned. An acknowledgement
    of a record that is behind the SPSO already (accepted or rejected before, or archived with the end of its last
    delivery) has no error and no effect.
    """
    group, topic = fresh("crew"), fresh("orders")
    with tap(servers, interval_ms=500) as tapped:
        with Admin({"bootstrap.servers": tapped.bootstrap_servers}) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS)]).check()
            configs: dict[str, object] = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 1000}
            if limit != DEFAULT_LIMIT:
                configs["share.delivery.count.limit"] = limit
            configure(admin, group, configs)
        program = Program(client, tapped, group, topic, random.Random(seed))
        program.run()
        assert tapped.refresh()
        seen, inferred = journalled(tapped, group)
        assert not tapped.failures
    for at, deliveries in seen.got.items():
        mine = sorted(program.log.got.pop(at, []))
        assert [one for one in deliveries if one in mine or not may_be_unreturned(one, mine, at, inferred)] == mine, at
    assert program.log.got == {}
    for (at, name), kinds in program.log.confirmed.items():
        effective = seen.confirmed.pop((at, name), [])
        late = any(not FINAL.isdisjoint(seen.confirmed[at, other]) for other in program.names - {name})
        late |= any(delivery_count == limit for delivery_count, _ in seen.got[at])
        if (at, name) in program.log.ambiguous:
            assert not Counter(effective) - Counter(program.log.sent[at, name]), (at, name)
        elif FINAL.isdisjoint(effective) or len(effective) == len(kinds):
            assert effective == (kinds[: len(effective)] if late else kinds), (at, name)
        else:  # a client may send the acknowledgement of an older copy after that of the newest
            assert not Counter(effective) - Counter(kinds), (at, name)
        seen.confirmed[at, name] = effective
    assert not {key for key, kinds in seen.confirmed.items() if kinds} - program.log.confirmed.keys()
    assert not program.log.answered - seen.answered
    others: Counter[tuple[str, int, str]] = Counter()
    for (name, partition, _, error), offsets in (seen.answered - program.log.answered).items():
        others[name, partition, error] += offsets
    assert others == program.log.answered_ambiguously
    for partition in range(PARTITIONS):
        fold(tapped.journal, group, topic, partition)


@pytest.mark.parametrize("run", range(SEEDS))
def test_the_journal_equals_the_log_of_the_program(
    kafka: Reachable, fresh: Callable[[str], str], share_client: Client, seed: int, run: int
) -> None:
    """BEHAVIOUR.md, 3.1 to 3.5."""
    compare(share_client, kafka.bootstrap_servers, fresh, seed + run)


@pytest.fixture(scope="module", params=["4.2.0", "4.3.1"])
def kafka_of_version(request: pytest.FixtureRequest) -> Iterator[LocalKafka]:
    with LocalKafka(version=request.param, timeout=START_S) as running:
        yield running


@pytest.mark.kafka
def test_the_journal_equals_the_log_of_the_program_on_other_releases(
    kafka_of_version: LocalKafka, fresh: Callable[[str], str], share_client: Client, seed: int
) -> None:
    """BEHAVIOUR.md, 3.1 to 3.5: the first Kafka with share groups that are ready for production, and 4.3."""
    limit = DEFAULT_LIMIT if kafka_of_version.version == "4.2.0" else HIGH_LIMIT  # 4.2 has no limit of a group
    compare(share_client, kafka_of_version.bootstrap_servers, fresh, seed, limit)
