"""Random scripts: a crew that fetches, acknowledges what it holds or has lost, and lets time pass."""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from shareq.lessons.own_leader.naive import LONGEST_LOG, NaiveLeader
from shareq.lessons.own_leader.scripts import Acknowledge, Fetch, Script, Settings, Step, Wait, time_after

MEMBERS: Final = ("ann", "bob", "cyd")
STEPS: Final = 60
_KINDS: Final = ("accept", "release", "reject", "renew")
_WEIGHTS: Final = (4, 4, 1, 2)


@cache
def random_script(seed: int) -> Script:
    """The steps are chosen beside a naive leader, so that most acknowledgements are about records in its window."""
    rng = random.Random(seed)
    settings = Settings(limit=rng.choice((2, 3, 5)), locks=rng.choice((3, 5, 8)), log_end=rng.choice((10, LONGEST_LOG)))
    leader = NaiveLeader(settings.lock_ms, settings.limit, settings.locks)
    now_ms, steps = 0, list[Step]()
    for _ in range(STEPS):
        step = _random_step(rng, leader)
        steps.append(step)
        now_ms = time_after(step, now_ms)
        method, arguments = step.call(leader, settings, now_ms)
        method(*arguments)
    return Script(f"random run {seed}", tuple(steps), settings)


def _random_step(rng: random.Random, leader: NaiveLeader) -> Step:
    member, chance = rng.choice(MEMBERS), rng.random()
    offsets = range(max(0, leader.spso - 2), leader.window_end)
    if chance < 0.35 or not offsets:
        return Fetch(member, rng.choice((1, 2, 4)))
    if chance < 0.5:
        return Wait(rng.choice((5, 10, 29, 30)))
    [kind] = rng.choices(_KINDS, _WEIGHTS)
    held = [offset for offset, record in leader.records.items() if record.member == member]
    among = held if held and rng.random() < 0.8 else list(offsets)
    most = 1 if kind == "renew" else 3  # a refused request keeps its renewals, which is not asked for here
    return Acknowledge(member, tuple(sorted(rng.sample(among, min(len(among), rng.randint(1, most))))), kind)
