"""The tap in front of a cluster of shareq, whose own journal is the truth, and in front of sockets of the test."""

from __future__ import annotations

import random
import re
import select
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from shareq import AcknowledgeType, Admin, Cluster, KafkaException, ledger, view
from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.events import (
    HoldEnded,
    MemberJoined,
    MembersBypass,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.states import PREPARED, SETTLED, RecordEvent, RecordState
from shareq.proxy import Tap, tap
from shareq.trace import Journal
from tests.polling import PATIENCE_S, eventually, take
from tests.proxy.sockets import Pair, Upstream, ended, exactly, framed
from tests.proxy.stage import GROUP, address, consumer, produce, served
from tests.trace.histories import fold
from tests.wire.named_nodes import assert_nodes_are_checked

ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW
)  # fmt: skip
PORTS = re.compile(r":(\d+)")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with served(3) as cluster:
        yield cluster


Happening = tuple[str, int, int, str | None, int]
"""(what, partition, offset, member, delivery count)."""


def truth(journal: Journal) -> Counter[Happening]:
    """What the leaders of the cluster have recorded: acquisitions, and ends of locks with their holders."""
    found: Counter[Happening] = Counter()
    holders: dict[tuple[int, int], str | None] = {}
    for entry in journal.select(RecordsChanged, group=GROUP):
        event = entry.event
        assert isinstance(event, RecordsChanged)
        for offset in range(event.first, event.end):
            at = (event.partition, offset)
            if event.cause == RecordEvent.ACQUIRE and event.state == RecordState.ACQUIRED:
                holders[at] = event.member_id
                found["acquire", *at, event.member_id, event.delivery_count] += 1
            elif event.cause == SETTLED:
                found[str(event.why), *at, holders[at], event.delivery_count] += 1
            elif event.cause not in {PREPARED, RecordEvent.ACQUIRE, RecordEvent.RENEW}:
                found[event.cause, *at, holders[at], event.delivery_count] += 1
    return found


def seen(journal: Journal) -> Counter[Happening]:
    """The same from the journal of a tap. A renewed lock is held again by the same member with the same count."""
    found: Counter[Happening] = Counter()
    held: dict[tuple[int, int], tuple[str, int]] = {}
    for entry in journal.select(RecordsHeld, HoldEnded, group=GROUP):
        event = entry.event
        assert isinstance(event, RecordsHeld | HoldEnded)
        for offset in range(event.first, event.end):
            at, hold = (event.partition, offset), (event.member_id, event.delivery_count)
            if isinstance(event, HoldEnded):
                assert held.pop(at) == hold
                found[event.cause, *at, *hold] += 1
            elif held.get(at) != hold:
                held[at] = hold
                found["acquire", *at, *hold] += 1
    return found


@pytest.mark.parametrize("run", range(3))
def test_random_consumers_are_seen_as_the_leaders_record_them(
    cluster: Cluster, tapped: Tap, seed: int, run: int
) -> None:
    """BEHAVIOUR.md, 3.1, 3.2, 3.3, 3.5: offset by offset the same holders, deliveries and verdicts."""
    rng, names = random.Random(seed + run), iter(range(100))
    crew = [consumer(tapped.bootstrap_servers, f"c{next(names)}") for _ in range(3)]
    produced = [0, 0, 0]
    for _ in range(40):
        step, one = rng.random(), rng.randrange(len(crew))
        if step < 0.3:
            partition = rng.randrange(3)
            produced[partition] += 10
            produce(tapped.bootstrap_servers, partition, 10)
        elif step < 0.9:
            for message in crew[one].poll(0.2):
                crew[one].acknowledge(message, rng.choice([ACCEPT, ACCEPT, RELEASE, REJECT, RENEW]))
            crew[one].commit_sync()
        else:
            crew[one].close()
            crew[one] = consumer(tapped.bootstrap_servers, f"c{next(names)}")
    for one_consumer in crew:
        one_consumer.close()
    assert sum(produced)
    assert tapped.refresh(PATIENCE_S)
    assert seen(tapped.journal) == truth(cluster.journal)
    for partition in range(3):
        fold(tapped.journal, GROUP, "orders", partition)
        eventually(partial(same_state, cluster, tapped, partition), True)
    assert figures(tapped) == figures(cluster)


def figures(source: Any) -> dict[str, Any]:
    found = ledger(source, GROUP, "orders")
    return {"attempts": found.attempts, **{name: getattr(found, name) for name in found.SUMS}}


def same_state(cluster: Cluster, tapped: Tap, partition: int) -> bool:
    """True if both journals have the same state of each record in the window, which ends at the same offset."""
    tapped.refresh(PATIENCE_S)
    ours = view(tapped, GROUP, "orders", partition).state()
    real = view(cluster, GROUP, "orders", partition).state()
    if not real.loaded:
        return True
    statuses = [
        {o: (s.state, s.delivery_count) for first, end, s in state.runs for o in range(first, end)}
        for state in (ours, real)
    ]
    return (ours.spso, statuses[0]) == (real.spso, statuses[1])


def test_a_member_past_the_tap_is_named(cluster: Cluster, tapped: Tap) -> None:
    """BEHAVIOUR.md, 4.3: without its deliveries the other records of the window are unknown."""
    with consumer(tapped.bootstrap_servers, "anna") as anna:
        anna.poll(0)
        eventually(lambda: names(tapped)[-1:], [()])
        with consumer(address(cluster), "ben") as ben:
            ben.poll(0)
            eventually(lambda: [len(found) for found in names(tapped)[-1:]], [1])
            assert names(tapped)[-1][0] not in {event.member_id for event in joined(tapped, "anna")}
        eventually(lambda: names(tapped)[-1:], [()])


def names(tapped: Tap) -> list[tuple[str, ...]]:
    """The members past the tap, as written one after another."""
    events = [entry.event for entry in tapped.journal.select(MembersBypass)]
    return [event.member_ids for event in events if isinstance(event, MembersBypass)]


def joined(tapped: Tap, client_id: str) -> list[MemberJoined]:
    events = [entry.event for entry in tapped.journal.select(MemberJoined)]
    return [event for event in events if isinstance(event, MemberJoined) and event.client_id == client_id]


def test_records_are_produced_and_fetched_through_another_leader(cluster: Cluster, tapped: Tap) -> None:
    """BEHAVIOUR.md, 1.2, 3.7: clients follow a new leader, at its port of the tap."""
    with consumer(tapped.bootstrap_servers, "anna") as anna:
        produce(tapped.bootstrap_servers, 1, 5)
        first = take(anna, 5)
        for message in first:
            anna.acknowledge(message, ACCEPT)
        anna.commit_sync()
        leader = cluster.image.topics["orders"].partitions[1].leader
        cluster.kill_broker(leader)
        produce(tapped.bootstrap_servers, 1, 5)
        second = take(anna, 5)
        assert [message.offset() for message in second if message.partition() == 1] == [5, 6, 7, 8, 9]
    eventually(partial(same_state, cluster, tapped, 1), True)
    assert not {*PORTS.findall(tapped.bootstrap_servers)} & {*PORTS.findall(address(cluster))}


def test_the_ports_are_the_nodes_that_clients_expect(tapped: Tap) -> None:
    assert_nodes_are_checked(tapped.bootstrap_servers)


def test_the_end_of_a_log_needs_no_poll(cluster: Cluster) -> None:
    """BEHAVIOUR.md, 4.5: once a group is observed, and the topic is known."""
    with tap(address(cluster), interval_ms=600_000) as tapped, consumer(tapped.bootstrap_servers, "anna") as anna:
        anna.poll(0)
        eventually(lambda: len(tapped.groups), 1)
        assert tapped.refresh(PATIENCE_S)
        produce(tapped.bootstrap_servers, 1, 5)
        produce(tapped.bootstrap_servers, 1, 2)
        eventually(lambda: max(ends(tapped, 1), default=0), 7)
        assert not tapped.failures


def ends(tapped: Tap, partition: int) -> list[int]:
    events = [entry.event for entry in tapped.journal.select(RecordsAppended)]
    return [event.end for event in events if isinstance(event, RecordsAppended) and event.partition == partition]


def test_a_deleted_topic_is_not_written_again(cluster: Cluster, tapped: Tap) -> None:
    """BEHAVIOUR.md, 3.9: the member that holds its records still acknowledges them, and closes its share session."""
    with consumer(tapped.bootstrap_servers, "anna") as anna:
        produce(tapped.bootstrap_servers, 1, 5)
        for message in take(anna, 5):
            anna.acknowledge(message, ACCEPT)
        with Admin({"bootstrap.servers": tapped.bootstrap_servers}) as admin:
            admin.delete_topics(["orders"]).check()
        eventually(lambda: len(tapped.journal.select(TopicDeleted)), 1)
    assert len(tapped.journal.select(TopicCreated, topic="orders")) == 1
    assert not tapped.journal.select(HoldEnded)


# ---- an upstream of the test: sockets --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "api",
    [pytest.param(999, id="unknown"), pytest.param(17, id="SaslHandshake"), pytest.param(36, id="SaslAuthenticate")],
)
def test_an_api_without_addresses_passes_byte_for_byte(pair: Pair, api: int) -> None:
    """BEHAVIOUR.md, 1.1, 1.9: both directions, and a response to no request."""
    client, broker = pair
    request = framed(struct.pack(">hhi", api, 1, 1) + b"anything")
    client.sendall(request)
    assert exactly(broker, len(request)) == request
    for response in (framed(struct.pack(">i", 1) + b"\xff" * 100_000), framed(struct.pack(">i", 77))):
        broker.sendall(response)
        assert exactly(client, len(response)) == response


def test_responses_are_rewritten_by_the_version_of_their_request(upstream: tuple[Upstream, Tap], pair: Pair) -> None:
    """BEHAVIOUR.md, 1.3, 2.1: a produce request with acks=0 before it has no response."""
    client, broker = pair
    client.sendall(framed(struct.pack(">hhi", 0, 12, 1) + b"acks=0") + framed(struct.pack(">hhi", 3, 1, 2)))
    me = struct.pack(">iih9sih", 1, 1, 9, b"127.0.0.1", upstream[0].port, -1)
    broker.sendall(framed(struct.pack(">i", 2) + me + struct.pack(">ii", 1, 0)))
    mine = int(upstream[1].bootstrap_servers.rpartition(":")[2])
    moved = struct.pack(">iih9sih", 1, 1, 9, b"127.0.0.1", mine, -1)
    expected = framed(struct.pack(">i", 2) + moved + struct.pack(">ii", 1, 0))
    assert exactly(client, len(expected)) == expected


def test_requests_in_one_piece_keep_their_order(upstream: tuple[Upstream, Tap], pair: Pair) -> None:
    """BEHAVIOUR.md, 1.3, 1.7: one that is read for the journal, and one whose response alone is rewritten."""
    client, broker = pair
    client.sendall(framed(struct.pack(">hhi", 76, 1, 1) + b"unreadable") + framed(struct.pack(">hhi", 10, 0, 2)))
    first = framed(struct.pack(">i", 1))
    broker.sendall(first)
    assert exactly(client, len(first)) == first
    node = struct.pack(">hih9si", 0, 1, 9, b"127.0.0.1", upstream[0].port)
    broker.sendall(framed(struct.pack(">i", 2) + node))
    (port,) = struct.unpack(">i", exactly(client, 4 + 4 + len(node))[-4:])
    assert port == int(upstream[1].bootstrap_servers.rpartition(":")[2])


def test_a_new_broker_gets_a_port(upstream: tuple[Upstream, Tap], pair: Pair) -> None:
    """BEHAVIOUR.md, 1.2."""
    client, broker = pair
    client.sendall(framed(struct.pack(">hhi", 10, 0, 2)))
    with socket.create_server(("127.0.0.1", 0)) as second:
        node = struct.pack(">hih9si", 0, 2, 9, b"127.0.0.1", second.getsockname()[1])
        broker.sendall(framed(struct.pack(">i", 2) + node))
        answer = exactly(client, 4 + 4 + len(node))
        (port,) = struct.unpack(">i", answer[-4:])
        assert f"127.0.0.1:{port}" in upstream[1].bootstrap_servers.split(",")
        with socket.create_connection(("127.0.0.1", port)) as to_second:
            opened, _ = second.accept()
            with opened:
                to_second.sendall(framed(b"x" * 8))
                assert exactly(opened, 12) == framed(b"x" * 8)


def test_brokers_see_the_address_of_the_tap(upstream: tuple[Upstream, Tap]) -> None:
    """BEHAVIOUR.md, 1.10."""
    broker, made = upstream
    door = ("127.0.0.1", int(made.bootstrap_servers.rpartition(":")[2]))
    with socket.create_connection(door, source_address=("127.0.0.2", 0)) as client, broker.accept() as opened:
        assert client.getsockname()[0] == "127.0.0.2"
        assert opened.getpeername()[0] == "127.0.0.1"


def test_a_half_closed_connection_delivers_what_follows(pair: Pair) -> None:
    """BEHAVIOUR.md, 1.4."""
    client, broker = pair
    client.shutdown(socket.SHUT_WR)
    assert broker.recv(1) == b""
    broker.sendall(framed(b"last words"))
    assert exactly(client, 14) == framed(b"last words")
    broker.close()
    assert ended(client)


@pytest.mark.parametrize("by", ["client", "broker"])
def test_a_closed_side_closes_the_other(pair: Pair, by: str) -> None:
    """BEHAVIOUR.md, 1.4."""
    closing, other = pair if by == "client" else reversed(pair)
    closing.close()
    assert ended(other)


@pytest.mark.parametrize("by", ["client", "broker"])
def test_a_malformed_stream_closes_the_connection(pair: Pair, by: str) -> None:
    """BEHAVIOUR.md, 1.5: such as a client with TLS."""
    sending, other = pair if by == "client" else reversed(pair)
    sending.sendall(b"\xff" * 16)
    assert ended(other)
    assert ended(sending)


def test_a_client_of_a_dead_broker_is_disconnected(upstream: tuple[Upstream, Tap]) -> None:
    """BEHAVIOUR.md, 1.4."""
    broker, made = upstream
    broker.door.close()
    with socket.create_connection(("127.0.0.1", int(made.bootstrap_servers.rpartition(":")[2]))) as client:
        client.settimeout(PATIENCE_S)
        assert ended(client)


@pytest.mark.parametrize("by", ["client", "broker"])
def test_a_slow_peer_stops_the_other_one(pair: Pair, by: str) -> None:
    """BEHAVIOUR.md, 1.6: the sender blocks long before it has sent everything; then all of it arrives."""
    sending, slow = pair if by == "client" else reversed(pair)
    stream = framed(struct.pack(">hhi", 999, 0, 0) + random.Random(1).randbytes(64 << 20))
    sending.setblocking(False)
    sent = 0
    while True:
        with suppress(BlockingIOError):
            sent += sending.send(stream[sent : sent + (1 << 20)])
            continue
        if not select.select([], [sending], [], 1)[1]:
            break
    assert sent < len(stream) // 2
    sending.settimeout(PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(sending.sendall, stream[sent:])
        assert exactly(slow, len(stream)) == stream
        rest.result()


# ---- arguments and the end -------------------------------------------------------------------------------------------


def test_no_kafka_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    with pytest.raises(KafkaException, match=f"no Kafka at 127.0.0.1:{port} answers"):
        tap(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval_ms": 0}, "interval_ms=0: must be 10 or more"),
        ({"port": 0}, "ports=0: the first of 3 ports must be 1..65533"),
        ({"host": "0.0.0.0"}, "must not be a wildcard address"),
    ],
)
def test_wrong_arguments_are_named(cluster: Cluster, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=re.escape(message)):
        tap(address(cluster), **arguments)


def test_an_address_with_a_protocol_and_numbers_of_a_dataframe() -> None:
    """Test containers print such addresses."""
    number: Any = np.int64
    with served(1) as cluster:
        with_protocol = f"PLAINTEXT://{address(cluster)}/"
        with tap(with_protocol, interval_ms=number(50), capacity=number(10)) as first:
            (port,) = map(int, PORTS.findall(first.bootstrap_servers))
        with tap(with_protocol, port=number(port)) as again:
            assert again.bootstrap_servers == f"127.0.0.1:{port}"
            produce(again.bootstrap_servers, 0, 1)
            with consumer(again.bootstrap_servers, "anna") as anna:
                assert len(take(anna, 1)) == 1
            with closing(view(with_protocol, GROUP, "orders")) as seen:
                assert seen.snapshot()["spso"] == 0


def test_a_closed_tap_keeps_its_journal(cluster: Cluster) -> None:
    with tap(address(cluster)) as made:
        made.follow(GROUP)
        assert made.refresh(PATIENCE_S)
        assert made.groups == [GROUP]
        assert made._repr_html_().count("127.0.0.1") > 3
    made.close()
    assert "closed" in repr(made)
    assert len(made.journal)
    with pytest.raises(IllegalStateException):
        made.refresh()


def test_a_fresh_tap_shows_where_clients_connect_until_one_has(tapped: Tap) -> None:
    from shareq_widgets import strip

    shown = strip(tapped, group=GROUP, topic="orders")
    sentence = f"no client has connected through the tap: connect to {tapped.bootstrap_servers}"
    assert sentence in "".join(map(str, shown.words["sentence"]))
    with Admin({"bootstrap.servers": tapped.bootstrap_servers}) as admin:
        admin.list_topics()
    assert not tapped.hint
    shown.close()
