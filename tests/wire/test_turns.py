"""Turns by time: a client with one request is served between two rounds of those that send without end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import pytest

from shareq.wire.turns import ROUND_S, TURN_S, Turns


class Stage:
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

    def __init__(self, stage: Stage, name: str, requests: int, cost_s: float) -> None:
        self.stage, self.name, self.left, self.cost_s = stage, name, requests, cost_s

    def resume(self) -> None:
        turns = self.stage.turns
        turns.begin()
        first = True
        while self.left:
            if not first and turns.over:
                turns.wait(self)
                return
            first = False
            self.left -= 1
            self.stage.served[self.name] += 1
            self.stage.now += self.cost_s


def test_a_connection_alone_goes_on_for_a_turn() -> None:
    stage = Stage()
    alone = Pipeline(stage, "alone", 1000, TURN_S / 10)
    alone.resume()
    assert stage.served["alone"] in (10, 11)
    stage.run_round()
    assert stage.now - TURN_S == pytest.approx(ROUND_S, rel=0.3), "then it gets rounds"
    while alone.left:
        stage.run_round()
    assert not stage.calls


@pytest.mark.parametrize("cost_s", [TURN_S / 100, TURN_S, 3 * ROUND_S], ids=["cheap", "a turn each", "slow"])
def test_a_hundred_pipelines_leave_room_after_each_round(cost_s: float) -> None:
    stage = Stage()
    crowd = [Pipeline(stage, str(index), 10_000, cost_s) for index in range(100)]
    for one in crowd:
        one.resume()
    before = Counter(stage.served)
    assert all(before[one.name] == 1 for one in crowd[1:]), "one request each: the first one waits already"
    for _ in range(200):
        began = stage.now
        stage.run_round()
        assert stage.now - began <= ROUND_S + TURN_S + cost_s
    extra = [stage.served[one.name] - before[one.name] for one in crowd]
    assert min(extra) > 0, "all have had turns"
    assert max(extra) - min(extra) <= 2 * max(1, TURN_S // cost_s + 1), "of the same length"


def test_a_new_request_is_served_while_others_wait() -> None:
    stage = Stage()
    busy = Pipeline(stage, "busy", 1_000_000, TURN_S / 10)
    busy.resume()
    stage.run_round()
    light = Pipeline(stage, "light", 1, TURN_S / 10)
    light.resume()
    assert (light.left, stage.turns.waits(light), stage.turns.waits(busy)) == (0, False, True)


def test_a_connection_waits_once() -> None:
    stage = Stage()
    slow = Pipeline(stage, "slow", 5, ROUND_S)
    slow.resume()
    stage.turns.wait(slow)
    assert (stage.turns.waits(slow), len(stage.calls)) == (True, 1)
    stage.run_round()
    assert stage.served["slow"] == 2


def test_rounds_go_on_after_an_error() -> None:
    stage = Stage()

    class Broken:
        def resume(self) -> None:
            raise ValueError("broken")

    fine = Pipeline(stage, "fine", 1, 0.0)
    stage.turns.wait(Broken())
    stage.turns.wait(fine)
    with pytest.raises(ValueError, match="broken"):
        stage.run_round()
    stage.run_round()
    assert (fine.left, len(stage.calls)) == (0, 0)
