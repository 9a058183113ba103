"""The brokers of the lab "find the bug": each has lost one rule, and no other broker notices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shareq.leader
from shareq.lessons.broken import run
from shareq.lessons.broken.defects import DEFECTS
from shareq.lessons.exercise import solution_of
from shareq.lessons.exercises.lesson_15 import EXERCISES

BEHAVIOUR = Path(shareq.leader.__file__).with_name("BEHAVIOUR.md")
NUMBERS = [number for number in DEFECTS if number]


def test_each_broken_broker_has_an_exercise_and_names_a_rule() -> None:
    rules = set(re.findall(r"^(\d+)\. ", BEHAVIOUR.read_text(), re.MULTILINE))
    assert list(EXERCISES) == [f"15.{number}" for number in NUMBERS]
    for number in NUMBERS:
        named = re.match(r"Rules? (\d+)(?: and (\d+))?", DEFECTS[number].__doc__ or "")
        assert named is not None
        assert {rule for rule in named.groups() if rule} <= rules


@pytest.mark.parametrize("number", NUMBERS)
def test_a_broken_broker_leaves_the_sound_one_as_it_was(number: int) -> None:
    before = run(0, 3).history
    assert run(number, 3).history != before
    assert run.__wrapped__(0, 3).history == before


@pytest.mark.parametrize("number", NUMBERS)
def test_the_rule_of_one_broker_finds_nothing_in_most_others(number: int) -> None:
    """Defect 8 finishes records that clients do not know of, so that more than one rule seems to be broken there."""
    rule = solution_of(f"15.{number}")
    finds = {other for other in NUMBERS if any(rule(run(other, seed).history) for seed in range(10))}
    assert number in finds
    assert finds - {number} <= ({7, 8} if number == 8 else {8})
