"""The rules that tests cite are in the repository: sections of BEHAVIOUR.md beside the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("admin", "broker", "wire")


def sections(room: str) -> set[str]:
    return set(re.findall(r"^## (\d+\.\d+) ", (ROOT / "shareq" / room / "BEHAVIOUR.md").read_text(), re.MULTILINE))


def cited(room: str) -> set[str]:
    """Section numbers at the start of test ids, such as id="2.7 an append ends it"."""
    texts = [path.read_text() for path in (ROOT / "tests" / room).glob("*.py")]
    return {number for text in texts for number in re.findall(r'(?:id=|")"?(\d\.\d{1,2}) [a-z(-]', text)}


@pytest.mark.parametrize("room", ["broker", "wire"])
def test_every_cited_section_exists(room: str) -> None:
    assert cited(room)
    assert cited(room) <= sections("broker") | sections("wire")


def test_a_section_has_one_place() -> None:
    found = [number for room in ROOMS for number in sections(room)]
    assert len(found) == len(set(found))


def numbered(room: str) -> set[str]:
    """The rules of a BEHAVIOUR.md whose paragraphs begin with their numbers."""
    return set(re.findall(r"^(\d+\.\d+) ", (ROOT / "shareq" / room / "BEHAVIOUR.md").read_text(), re.MULTILINE))


def test_the_rules_of_monitors_are_those_that_tests_cite() -> None:
    """Numbers at the start of test ids and of docstrings."""
    texts = [path.read_text() for path in (ROOT / "tests" / "observer" / "health").glob("*.py")]
    heads = [head for text in texts for head in re.findall(r'(?:id=|case\(\s*|""")"?((?:\d\.\d+(?:, )?)+)', text)]
    cited = {number for head in heads for number in head.split(", ") if number}
    assert cited == numbered("observer")
