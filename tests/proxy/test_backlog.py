"""What has passed is read in turns, while no socket is ready. BEHAVIOUR.md, 4.8."""

from __future__ import annotations

import selectors
import socket
import struct
from collections.abc import Iterator
from functools import partial

import pytest

from shareq.proxy import Tap
from shareq.proxy.backlog import ENTRY_BYTES, LATE_MS, REST_MS, WAITING_BYTES, Backlog
from tests.proxy.sockets import Pair, Upstream, framed
from tests.proxy.stage import Loop


class BacklogStage:
    """A backlog, and a socket that is ready as soon as its peer has sent."""

    def __init__(self) -> None:
        selector = selectors.DefaultSelector()
        self.loop = Loop(selector)
        self.backlog = Backlog(self.loop, selector, lambda: self.loop.now_ms, lambda read, passed_ms: read(passed_ms))
        self.read: list[object] = []
        """What was read, and when it had passed."""
        self.socket, self.peer = socket.socketpair()
        self.loop.add_reader(self.socket, lambda: None)

    def add(self, *names: object, size: int = 1) -> None:
        for name in names:
            self.backlog.add(size, partial(self._take, name))

    def _take(self, name: object, passed_ms: int) -> None:
        self.read.append((name, passed_ms))


@pytest.fixture
def stage() -> Iterator[BacklogStage]:
    made = BacklogStage()
    yield made
    made.loop.remove_reader(made.socket)
    made.loop.close()
    made.socket.close()
    made.peer.close()


def test_messages_rest_and_are_then_read_in_order(stage: BacklogStage) -> None:
    """With the times at which they have passed."""
    stage.add("a", "b")
    stage.loop.turns(REST_MS - 1)
    assert stage.read == []
    stage.add("c")
    stage.loop.turns(REST_MS)
    assert stage.read == [("a", 0), ("b", 0), ("c", REST_MS - 1)]
    stage.add("d")
    stage.loop.turns(2 * REST_MS - 1)
    assert len(stage.read) == 3
    stage.loop.turns(2 * REST_MS)
    assert stage.read[3:] == [("d", REST_MS)]


def test_nothing_is_read_while_a_socket_is_ready(stage: BacklogStage) -> None:
    stage.peer.send(b"x")
    stage.add("a")
    stage.loop.turns(REST_MS)
    assert stage.read == []
    stage.socket.recv(1)
    stage.loop.turns(REST_MS)
    assert stage.read == [("a", 0)]


def test_a_late_message_is_read_although_a_socket_is_ready(stage: BacklogStage) -> None:
    stage.peer.send(b"x")
    stage.add("late")
    stage.loop.turns(REST_MS)
    stage.add("young")
    stage.loop.turns(LATE_MS)
    assert stage.read == [("late", 0)]


def test_no_more_than_a_limit_waits(stage: BacklogStage) -> None:
    stage.peer.send(b"x")
    stage.add("a", "b", size=WAITING_BYTES // 2 - ENTRY_BYTES)
    assert stage.read == []
    stage.add("c")
    assert stage.read == [("a", 0)]


def test_one_message_above_the_limit_is_read_at_once(stage: BacklogStage) -> None:
    stage.add("a")
    stage.add("b", size=WAITING_BYTES)
    assert stage.read == [("a", 0), ("b", 0)]


def test_all_is_read_at_a_call(stage: BacklogStage) -> None:
    stage.peer.send(b"x")
    stage.add("a", "b")
    stage.backlog.drain()
    assert stage.read == [("a", 0), ("b", 0)]
    stage.loop.turns(LATE_MS)
    assert len(stage.read) == 2


def test_a_poll_is_read_behind_what_has_arrived(
    upstream: tuple[Upstream, Tap], pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEHAVIOUR.md, 4.8: the request is at the tap's socket when the poll ends, and the tap has not received it yet."""
    client, _ = pair
    relay, read = upstream[1]._relay, []
    monkeypatch.setattr(relay.watch, "request", lambda *_: read.append("request"))

    def end_poll() -> None:
        client.sendall(framed(struct.pack(">hhi", 76, 1, 1)))
        relay._later(lambda _: read.append("poll"))

    relay.call(end_poll)
    relay.call(lambda: None)
    assert read == ["request", "poll"]


def test_an_entry_has_the_time_that_is_given(stage: BacklogStage) -> None:
    stage.loop.now_ms = 7
    stage.backlog.add(1, partial(stage._take, "a"), 5)
    stage.backlog.drain()
    assert stage.read == [("a", 5)]
