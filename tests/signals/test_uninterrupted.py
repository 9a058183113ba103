"""`uninterrupted`, which delays signals: which handlers run, when, and what other code observes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from shareq.broker.loop import VirtualLoop, WallLoop
from shareq.client.callbacks import CallbackQueue
from shareq.signals.uninterrupted import SLICE_S, uninterrupted
from tests.client.interrupting import interrupted, places, steps_of

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]


class HandlerError(BaseException):
    """Raised by the handlers of these tests."""


@pytest.fixture
def restored() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def fail(*_: object) -> None:
    raise HandlerError


@pytest.mark.parametrize("number", NUMBERS)
def test_a_handler_runs_at_the_end_of_the_outermost_block(number: int, restored: None) -> None:
    signal.signal(number, fail)
    done: list[str] = []

    def turn() -> None:
        with uninterrupted:
            with uninterrupted:
                signal.raise_signal(number)
                done.append("inner")
            done.append("outer")

    with pytest.raises(HandlerError):
        turn()
    assert done == ["inner", "outer"]
    assert not uninterrupted.depth
    assert signal.getsignal(number) is fail


@pytest.mark.parametrize("number", NUMBERS)
def test_a_checkpoint_runs_the_delayed_handler(number: int, restored: None) -> None:
    signal.signal(number, fail)
    with uninterrupted:
        signal.raise_signal(number)
        with pytest.raises(HandlerError):
            uninterrupted.checkpoint()
        uninterrupted.checkpoint()


def test_all_delayed_handlers_run_although_one_raises(restored: None) -> None:
    ran: list[int] = []

    def handle(number: int, frame: object) -> None:
        ran.append(number)
        raise HandlerError

    for number in NUMBERS:
        signal.signal(number, handle)

    def turn() -> None:
        with uninterrupted:
            for number in NUMBERS:
                signal.raise_signal(number)

    with pytest.raises(HandlerError):
        turn()
    assert sorted(ran) == sorted(NUMBERS)
    assert not uninterrupted.pending


def test_outside_of_blocks_the_original_handlers_are_set(restored: None) -> None:
    """asyncio handles Ctrl-C itself only if the handler is Python's own."""
    with uninterrupted:
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_set_inside_a_block_stays(restored: None) -> None:
    with uninterrupted:
        signal.signal(signal.SIGTERM, fail)
    assert signal.getsignal(signal.SIGTERM) is fail
    with pytest.raises(HandlerError), uninterrupted:
        signal.raise_signal(signal.SIGTERM)


def test_signals_without_a_handler_are_not_changed(restored: None) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with uninterrupted:
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_blocks_in_other_threads_delay_no_signal(restored: None) -> None:
    seen: list[Any] = []

    def observe() -> None:
        with uninterrupted:
            seen.append((uninterrupted.depth, uninterrupted.here, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=observe)
    thread.start()
    thread.join()
    assert seen == [(0, False, signal.default_int_handler)]


def test_a_block_is_never_divided(restored: None) -> None:
    """Interrupted at each step, the block runs completely or not at all, and the guard is as before."""
    begun, ended = [], []

    def turn() -> None:
        with uninterrupted:
            begun.append(1)
            for _ in range(3):
                len("some step")
            ended.append(1)

    hits = 0
    for at in range(1, steps_of(turn) + 1):
        hits += interrupted(turn, at)
        assert len(begun) == len(ended)
        assert (uninterrupted.depth, uninterrupted.lent, uninterrupted.pending) == (0, 0, {})
    assert hits > 20


# ---- callbacks -------------------------------------------------------------------------------------------------------


class Application:
    def __init__(self) -> None:
        self.calls: tuple[object, ...] = ()

    def record(self, item: object, _: object) -> None:
        self.calls += (item,)


def test_each_callback_runs_once_despite_an_interrupt_at_any_step() -> None:
    application, queue = Application(), CallbackQueue[int]()

    def serve() -> int:
        return queue.serve(lambda item: (application.record, item, None))

    queue.append(0)
    steps = steps_of(serve)
    for at in range(1, steps + 1):
        queue.extend((2 * at, 2 * at + 1))
        interrupted(serve, at)
    serve()
    assert application.calls == (0, *range(2, 2 * steps + 2))
    assert queue.served == len(application.calls)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_exception_of_a_callback_is_raised_and_the_others_run_later(error: type[BaseException]) -> None:
    application, queue = Application(), CallbackQueue[int]()
    queue.extend((1, 2, 3))

    def callback(item: int, _: None) -> None:
        application.record(item, None)
        if item == 2:
            raise error

    def serve() -> int:
        return queue.serve(lambda item: (callback, item, None))

    with pytest.raises(error):
        serve()
    assert (serve(), application.calls) == (1, (1, 2, 3))


def test_a_waiting_callback_can_be_interrupted(restored: None) -> None:
    """Inside a callback the handlers run immediately, also after an `uninterrupted` block in it."""
    queue = CallbackQueue[int]()
    queue.append(1)

    def callback(*_: object) -> None:
        with uninterrupted:
            pass
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the handler has not run")

    signal.signal(signal.SIGTERM, fail)
    with pytest.raises(HandlerError):
        queue.serve(lambda item: (callback, item, None))


# ---- waiting ---------------------------------------------------------------------------------------------------------


def waits_of(loop: WallLoop, monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Timeouts of each wait on the loop's condition; the first wait raises a signal."""
    timeouts: list[float | None] = []
    wait = loop._progress.wait

    def waited(timeout: float | None = None) -> bool:
        timeouts.append(timeout)
        signal.raise_signal(signal.SIGTERM)
        return wait(timeout)

    monkeypatch.setattr(loop._progress, "wait", waited)
    return timeouts


def test_a_wait_on_the_wall_clock_checks_for_signals_at_intervals(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGTERM, fail)
    loop = WallLoop()
    timeouts = waits_of(loop, monkeypatch)
    with pytest.raises(HandlerError):
        loop.wait(lambda: False, None)
    assert all(timeout is not None and timeout <= SLICE_S <= 0.1 for timeout in timeouts)
    loop.close()


def test_a_wait_of_another_thread_is_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = WallLoop()
    timeouts: list[float | None] = []
    wait_for = loop._progress.wait_for
    entered = threading.Event()

    def waited(until: Callable[[], bool], timeout: float | None = None) -> bool:
        timeouts.append(timeout)
        entered.set()
        return wait_for(until, timeout)

    monkeypatch.setattr(loop._progress, "wait_for", waited)
    over: list[int] = []
    thread = threading.Thread(target=lambda: loop.wait(lambda: bool(over), None))
    thread.start()
    entered.wait()
    loop.enter(partial(over.append, 1))
    thread.join()
    assert timeouts == [None]
    loop.close()


def test_a_signal_ends_a_virtual_wait_between_two_events(restored: None) -> None:
    signal.signal(signal.SIGTERM, fail)
    loop = VirtualLoop()
    events: list[str] = []

    def event() -> None:
        loop.at(loop.time_ms() + 10, event)
        events.append("begun")
        if len(events) == 7:
            signal.raise_signal(signal.SIGTERM)
        events.append("ended")

    event()
    with pytest.raises(HandlerError):
        loop.wait(lambda: False, 1_000_000_000)
    assert events == ["begun", "ended"] * (len(events) // 2)
    assert len(events) == 8
    assert loop.lock.acquire(False)


def test_a_handler_can_wait_for_a_thread_that_needs_the_loop(restored: None) -> None:
    """The loop's lock is not held while a handler runs."""
    loop = VirtualLoop()
    entered: list[str] = []

    def handler(*_: object) -> None:
        thread = threading.Thread(target=lambda: loop.enter(lambda: entered.append("other")))
        thread.start()
        thread.join()

    signal.signal(signal.SIGTERM, handler)
    loop.at(loop.time_ms() + 10, lambda: signal.raise_signal(signal.SIGTERM))
    loop.wait(lambda: bool(entered), 100)
    assert entered == ["other"]


def test_a_wait_for_the_loop_lock_can_be_interrupted(restored: None) -> None:
    """Another thread holds the loop's lock."""
    signal.signal(signal.SIGTERM, fail)
    loop, held, free = VirtualLoop(), threading.Event(), threading.Event()

    def hold() -> None:
        with loop.lock:
            held.set()
            free.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.01, lambda: signal.pthread_kill(main, signal.SIGTERM)).start()
    with pytest.raises(HandlerError):
        loop.enter(lambda: None)
    free.set()
    thread.join()


def test_places_are_spread_over_the_steps() -> None:
    assert places(50) == range(1, 51)
    assert len(places(100_000)) < 200
