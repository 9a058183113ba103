"""Each term that a view shows has a sentence where it is shown, and a place in a notebook that explains it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shareq_widgets.pictures import group, state_topic
from shareq_widgets.terms import TERMS, meanings
from tests.widgets.pictures.contents import made_up_group
from tests.widgets.pictures.test_state_topic import START, shown

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.parametrize("name", TERMS)
def test_a_notebook_explains_the_term(name: str) -> None:
    cells = json.loads((NOTEBOOKS / f"{TERMS[name].notebook}.ipynb").read_text())["cells"]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert name in text.lower()


@pytest.mark.parametrize("name", TERMS)
def test_a_meaning_is_one_sentence(name: str) -> None:
    assert TERMS[name].meaning.count(".") == 1
    assert TERMS[name].meaning.endswith(".")


def test_the_epochs_of_a_group_have_their_meanings_as_tooltips() -> None:
    content = made_up_group(5, 3)
    drawing = group.draw(content, 760)
    assert drawing.find("epochs")["title"] == meanings("group epoch", "assignment epoch")
    for member in content.members:
        title = drawing.find(f"member {member.member_id} beat")["title"]
        assert TERMS["member epoch"].meaning in title
        assert ("fence" in title) == ("FENCED" in member.error)


def test_the_epoch_of_a_leader_has_its_meaning_as_a_tooltip() -> None:
    drawing = state_topic.draw(shown(START), 760)
    assert drawing.find("memory left")["title"] == meanings("leader epoch")
