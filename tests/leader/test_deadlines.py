"""`Deadlines` against a naive model: a dictionary that is searched."""

import random

from shareq.leader.deadlines import Deadlines


def test_due_alarms_are_ordered_by_time_and_then_by_setting() -> None:
    alarms: Deadlines[str] = Deadlines()
    for thing, at_ms in (("c", 30), ("a", 10), ("b", 10)):
        alarms.set(thing, at_ms)
    assert alarms.next_ms() == 10
    assert [alarms.pop_due(20) for _ in range(3)] == ["a", "b", None]
    assert (alarms.next_ms(), alarms.pop_due(30), alarms.next_ms()) == (30, "c", None)


def test_an_alarm_can_be_replaced_moved_forward_and_removed() -> None:
    alarms: Deadlines[str] = Deadlines()
    alarms.set("a", 10)
    alarms.set("a", 20)
    assert alarms.next_ms() == 20
    alarms.bring_forward("a", 30)
    assert alarms.next_ms() == 20
    alarms.bring_forward("a", 15)
    assert alarms.next_ms() == 15
    alarms.cancel("a")
    alarms.cancel("a")
    assert alarms.next_ms() is None


def test_entries_of_replaced_alarms_are_bounded() -> None:
    alarms: Deadlines[str] = Deadlines()
    for at_ms in range(10_000, 0, -1):
        alarms.set("a", at_ms)
    assert len(alarms._heap) < 100
    assert (alarms.pop_due(1), alarms.next_ms()) == ("a", None)


def test_random_steps_agree_with_a_dictionary(seed: int) -> None:
    rng = random.Random(seed)
    alarms: Deadlines[int] = Deadlines()
    plain: dict[int, int] = {}
    now_ms = 0
    for _ in range(20_000):
        thing, at_ms = rng.randrange(50), now_ms + rng.randrange(100)
        match rng.randrange(5):
            case 0 | 1:
                alarms.set(thing, at_ms)
                plain[thing] = at_ms
            case 2:
                alarms.bring_forward(thing, at_ms)
                plain[thing] = min(at_ms, plain.get(thing, at_ms))
            case 3:
                alarms.cancel(thing)
                plain.pop(thing, None)
            case 4:
                now_ms += rng.randrange(20)
                due = alarms.pop_due(now_ms)
                if due is None:
                    assert not any(at <= now_ms for at in plain.values())
                else:
                    assert plain.pop(due) <= now_ms
        assert alarms.next_ms() == min(plain.values(), default=None)
        assert len(alarms._heap) <= 2 * len(plain) + 65, "entries of replaced alarms are bounded"
