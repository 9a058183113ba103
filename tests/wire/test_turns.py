"""Turns by time: a client with one request is served between two rounds of those that send without end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import pytest

from shareq.wire.turns import ROUND_S, TURN_S, Turns


class Loop:
    """A loop and its clock, which only requests move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: deque[Callable[[], None]] = deque()
        self.turns = Turns(self.calls.append, lambda: self.now)
        self.served: Counter[str] = Counter()

    def run_round(self) -> None:
        """The calls that are due in this round of the loop."""
        for _ in range(len(self.calls)):
            self.calls.popleft()()


class Pipeline:
    """A connection with many requests of the same cost."""

    def __init__(self, loop: Loop, name: str, requests: int, cost_s: float) -> None:
        self.loop, self.name, self.left, self.cost_s = loop, name, requests, cost_s

    def resume(self) -> None:
        turns = self.loop.turns
        turns.begin()
        first = True
        while self.left:
            if not first and turns.over:
                turns.wait(self)
                return
            first = False
            self.left -= 1
            self.loop.served[self.name] += 1
            self.loop.now += self.cost_s


def test_a_connection_alone_goes_on_for_a_turn() -> None:
    loop = Loop()
    alone = Pipeline(loop, "alone", 1000, TURN_S / 10)
    alone.resume()
    assert loop.served["alone"] in (10, 11)
    loop.run_round()
    assert loop.now - TURN_S == pytest.approx(ROUND_S, rel=0.3), "then it gets rounds"
    while alone.left:
        loop.run_round()
    assert not loop.calls


@pytest.mark.parametrize("cost_s", [TURN_S / 100, TURN_S, 3 * ROUND_S], ids=["cheap", "a turn each", "slow"])
def test_a_hundred_pipelines_leave_room_after_each_round(cost_s: float) -> None:
    loop = Loop()
    crowd = [Pipeline(loop, str(index), 10_000, cost_s) for index in range(100)]
    for one in crowd:
        one.resume()
    before = Counter(loop.served)
    assert all(before[one.name] == 1 for one in crowd[1:]), "one request each: the first one waits already"
    for _ in range(200):
        began = loop.now
        loop.run_round()
        assert loop.now - began <= ROUND_S + TURN_S + cost_s
    extra = [loop.served[one.name] - before[one.name] for one in crowd]
    assert min(extra) > 0, "all have had turns"
    assert max(extra) - min(extra) <= 2 * max(1, TURN_S // cost_s + 1), "of the same length"


def test_a_new_request_is_served_while_others_wait() -> None:
    loop = Loop()
    busy = Pipeline(loop, "busy", 1_000_000, TURN_S / 10)
    busy.resume()
    loop.run_round()
    light = Pipeline(loop, "light", 1, TURN_S / 10)
    light.resume()
    assert (light.left, loop.turns.waits(light), loop.turns.waits(busy)) == (0, False, True)


def test_a_connection_waits_once() -> None:
    loop = Loop()
    slow = Pipeline(loop, "slow", 5, ROUND_S)
    slow.resume()
    loop.turns.wait(slow)
    assert (loop.turns.waits(slow), len(loop.calls)) == (True, 1)
    loop.run_round()
    assert loop.served["slow"] == 2


def test_rounds_go_on_after_an_error() -> None:
    loop = Loop()

    class Broken:
        def resume(self) -> None:
            raise ValueError("broken")

    fine = Pipeline(loop, "fine", 1, 0.0)
    loop.turns.wait(Broken())
    loop.turns.wait(fine)
    with pytest.raises(ValueError, match="broken"):
        loop.run_round()
    loop.run_round()
    assert (fine.left, len(loop.calls)) == (0, 0)
