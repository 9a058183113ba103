"""What a newcomer reads after a mistake: a sentence that names the mistake, and what is right, within three seconds.
`mistakes` has the table, and prints it with the seconds until each answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.budgets import cases
from tests.house.mistakes import COMMANDS, LATEST_S, PYTHON, Stage, opened_stage

PATIENCE = cases(5, 1)
"""The first ring runs on busy machines."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with opened_stage() as opened:
        yield opened


@pytest.mark.parametrize(("mistake", "answer"), PYTHON, ids=[mistake for mistake, _ in PYTHON])
def test_a_mistake_has_an_answer_that_says_what_is_right(stage: Stage, mistake: str, answer: str) -> None:
    found = stage.python(mistake)
    assert answer in found.text
    assert found.seconds < LATEST_S * PATIENCE


@pytest.mark.parametrize(("mistake", "answer"), COMMANDS, ids=[mistake for mistake, _ in COMMANDS])
def test_a_wrong_command_ends_with_a_sentence_and_without_a_traceback(stage: Stage, mistake: str, answer: str) -> None:
    found = stage.command(mistake)
    assert answer in found.text
    assert found.seconds < LATEST_S * PATIENCE
    assert "Traceback" not in found.text
    assert isinstance(found.error, int | None), "no other exception than the end of the command"
