"""The thread that reads the sockets: what a read has caused is done when its lock is free, before the next turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq.wire.client.io_thread import IoThread

PATIENCE_S = 30


@pytest.fixture
def io() -> Iterator[IoThread]:
    thread = IoThread()
    yield thread
    thread.stop()


def in_thread(io: IoThread, call: Callable[[], object]) -> None:
    """Make a call in the thread, and wait for all that it has made soon."""
    done = threading.Event()

    def last() -> None:
        io.soon(done.set)

    def first() -> None:
        call()
        io.soon(last)

    io.soon(first)
    assert done.wait(PATIENCE_S)


def test_calls_follow_the_read_that_made_them_and_go_before_others(io: IoThread) -> None:
    order: list[str] = []

    def second() -> None:
        order.append("second")
        io.afterwards(order.append, "third")

    def read() -> None:
        io.soon(order.append, "soon")
        io.afterwards(order.append, "first")
        io.afterwards(second)
        order.append("read")

    in_thread(io, lambda: io.read(read))
    assert order == ["read", "first", "second", "third", "soon"]


def test_without_a_read_a_call_is_made_soon(io: IoThread) -> None:
    order: list[str] = []

    def call() -> None:
        io.afterwards(order.append, "afterwards")
        order.append("call")

    in_thread(io, call)
    assert order == ["call", "afterwards"]


def test_a_call_of_another_thread_does_not_join_a_read(io: IoThread) -> None:
    callers: list[int] = []

    def note() -> None:
        callers.append(threading.get_ident())

    def read() -> None:
        other = threading.Thread(target=lambda: io.afterwards(note))
        other.start()
        other.join(PATIENCE_S)
        assert not callers

    failures: list[dict[str, Any]] = []
    io.loop.set_exception_handler(lambda _, context: failures.append(context))
    in_thread(io, lambda: io.read(read))
    assert len(callers) == 1
    assert callers != [threading.get_ident()]
    assert not failures


def test_an_unhandled_error_is_reported_and_the_other_calls_are_made(io: IoThread) -> None:
    failures: list[BaseException] = []
    io.loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    order: list[str] = []

    def fail(what: str) -> None:
        raise ValueError(what)

    def read() -> None:
        io.afterwards(fail, "a call")
        io.afterwards(order.append, "other")
        fail("the read")

    in_thread(io, lambda: io.read(read))
    assert [str(failure) for failure in failures] == ["the read", "a call"]
    assert order == ["other"]
    in_thread(io, lambda: io.afterwards(order.append, "later"))
    assert order == ["other", "later"]
