"""The event loop: order of events, timers, waiting, on virtual and on running clocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from shareq.broker.loop import STUCK_AFTER_MS, VIRTUAL_ORIGIN_MS, EventLoop, VirtualLoop, WallLoop, make_loop
from shareq.model.errors import ConfigException
from tests.broker.system_clock import ahead
from tests.polling import PATIENCE_S

__all__ = ["ahead"]


@pytest.fixture
def wall() -> EventLoop:
    return WallLoop(scale=1000)


def test_ready_calls_run_in_the_order_of_posting_and_timers_by_time() -> None:
    loop, seen = VirtualLoop(), []
    loop.at(VIRTUAL_ORIGIN_MS + 20, lambda: seen.append("late"))
    loop.at(VIRTUAL_ORIGIN_MS + 10, lambda: seen.append("early"))
    loop.at(VIRTUAL_ORIGIN_MS + 10, lambda: seen.append("early, set later"))
    loop.post(seen.append, "ready")
    loop.post(lambda: loop.post(seen.append, "posted by a ready call"))
    assert not loop.wait(lambda: False, 30)
    assert seen == ["ready", "posted by a ready call", "early", "early, set later", "late"]


def test_virtual_time_stops_exactly_at_the_deadline() -> None:
    loop, at = VirtualLoop(), []
    loop.at(VIRTUAL_ORIGIN_MS + 100, lambda: at.append(loop.time_ms()))
    assert loop.time_ms() == VIRTUAL_ORIGIN_MS
    loop.wait(lambda: False, 99)
    assert (loop.time_ms(), at) == (VIRTUAL_ORIGIN_MS + 99, [])
    loop.wait(lambda: False, 1)
    assert (loop.time_ms(), at) == (VIRTUAL_ORIGIN_MS + 100, [VIRTUAL_ORIGIN_MS + 100])


def test_waiting_ends_as_soon_as_the_condition_holds() -> None:
    loop = VirtualLoop()
    seen: list[int] = []
    for delay in (5, 10, 15):
        loop.at(VIRTUAL_ORIGIN_MS + delay, partial(seen.append, delay))
    assert loop.wait(lambda: 10 in seen, None)
    assert (seen, loop.time_ms()) == ([5, 10], VIRTUAL_ORIGIN_MS + 10)


def test_a_virtual_wait_without_an_end_raises_timeout_error() -> None:
    loop = VirtualLoop()

    def again() -> None:
        loop.at(loop.time_ms() + 3_600_000, again)

    again()
    with pytest.raises(TimeoutError, match="give the call a time-out"):
        loop.wait(lambda: False, None)
    assert loop.time_ms() == VIRTUAL_ORIGIN_MS + STUCK_AFTER_MS


def test_a_cancelled_timer_never_fires() -> None:
    loop = VirtualLoop()
    seen: list[str] = []
    timer = loop.at(VIRTUAL_ORIGIN_MS + 1, lambda: seen.append("cancelled"))
    loop.at(VIRTUAL_ORIGIN_MS + 2, lambda: seen.append("kept"))
    timer.cancel()
    loop.wait(lambda: False, 5)
    assert seen == ["kept"]


def test_step_runs_one_event_and_returns_false_at_the_end() -> None:
    loop = VirtualLoop()
    seen: list[str] = []
    loop.post(seen.append, "ready")
    loop.at(VIRTUAL_ORIGIN_MS + 7, lambda: seen.append("timer"))
    assert [loop.step(), list(seen), loop.time_ms() - VIRTUAL_ORIGIN_MS] == [True, ["ready"], 0]
    assert [loop.step(), list(seen), loop.time_ms() - VIRTUAL_ORIGIN_MS] == [True, ["ready", "timer"], 7]
    assert not loop.step()


def test_a_timer_in_the_past_fires_at_the_current_time() -> None:
    loop, seen = VirtualLoop(), []
    loop.wait(lambda: False, 50)
    loop.at(VIRTUAL_ORIGIN_MS + 10, lambda: seen.append(loop.time_ms()))
    loop.wait(lambda: False, 0)
    assert seen == [VIRTUAL_ORIGIN_MS + 50]


def test_a_scaled_clock_fires_timers_without_a_waiting_thread(wall: EventLoop) -> None:
    fired = threading.Event()
    wall.enter(lambda: wall.at(wall.time_ms() + 2000, fired.set))  # 2 seconds of loop time are 2 ms of real time
    assert fired.wait(PATIENCE_S)
    wall.close()


def test_a_scaled_clock_wakes_waiting_threads(wall: EventLoop) -> None:
    seen: list[str] = []
    wall.enter(lambda: wall.at(wall.time_ms() + 1000, lambda: seen.append("fired")))
    assert wall.wait(lambda: bool(seen), None)
    assert not wall.wait(lambda: False, 100)
    wall.close()


def test_an_unhandled_error_of_the_loop_fails_the_calls_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    loop = WallLoop(scale=1000)
    loop.enter(lambda: loop.at(loop.time_ms(), lambda: 1 // 0))
    with pytest.raises(RuntimeError, match="event loop failed with an unhandled error"):
        loop.wait(lambda: False, None)
    with pytest.raises(RuntimeError, match="event loop failed with an unhandled error"):
        loop.enter(lambda: None)
    loop.close()
    assert len(failures) == 1


def test_an_earlier_timer_wakes_the_loop_thread() -> None:
    """The new timer wakes the thread, although it sleeps until a timer an hour later."""
    loop, fired = WallLoop(), threading.Event()
    loop.enter(lambda: loop.at(loop.time_ms() + 3_600_000, lambda: None))
    loop.enter(lambda: loop.at(loop.time_ms() + 1, fired.set))
    assert fired.wait(PATIENCE_S)
    loop.close()


@pytest.mark.parametrize("clock", ["virtual", 1000.0], ids=["virtual", "scaled"])
def test_a_loop_that_reports_failures_continues_after_them(clock: str | float) -> None:
    loop = make_loop(clock)
    seen: list[object] = []
    loop.report_to(seen.append)
    loop.enter(lambda: loop.post(lambda: 1 // 0))
    loop.enter(lambda: loop.at(loop.time_ms(), lambda: int("one")))
    loop.enter(lambda: loop.at(loop.time_ms() + 1, lambda: seen.append("next")))
    assert loop.wait(lambda: "next" in seen, 60_000_000)
    assert [type(one) for one in seen] == [ZeroDivisionError, ValueError, str]
    loop.close()


@pytest.mark.parametrize("clock", ["real", "", 0, -1.0, 1001, True, None])
def test_invalid_clocks_are_refused(clock: object) -> None:
    with pytest.raises(ConfigException, match=r"clock=.*must be 'virtual', 'wall' or a factor in 0\.001\.\.1000"):
        make_loop(clock)  # type: ignore[arg-type]


def test_the_time_of_day_follows_the_systems_clock_and_the_loops_time_does_not(ahead: Callable[[int], None]) -> None:
    loop = WallLoop()
    before_ms = loop.time_ms()
    ahead(7_200_000)
    assert loop.now_ms() - before_ms >= 7_200_000
    assert loop.time_ms() - before_ms < 7_200_000
    assert loop.time_of_day(before_ms + 1) - loop.time_of_day(before_ms) <= 2  # between two looks at the clocks
    ahead(-7_200_000)
    assert loop.now_ms() - before_ms < 0 <= loop.time_ms() - before_ms
    loop.close()


def test_the_time_of_day_of_a_scaled_clock_is_that_of_the_system() -> None:
    loop, fast = WallLoop(scale=0.001), WallLoop(scale=1000)
    fast.wait(lambda: False, 100_000)  # 100 s of its time are 100 ms
    for each in (loop, fast):
        before_ms = time.time_ns() // 1_000_000
        assert before_ms <= each.now_ms() <= time.time_ns() // 1_000_000
        each.close()
