"""Each term that a view shows has a sentence where it is shown, and a place in a notebook that explains it.

The sentence is that of the glossary, which may go on with a configuration or a detail.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from shareq_widgets import race, strip, what_if
from shareq_widgets.pictures import group, state_topic
from shareq_widgets.svg import to_svg
from shareq_widgets.terms import TERMS, explained, meanings, terms_in
from tests.browser.busy import GROUP, TOPIC, VIEWS, busy, shown
from tests.browser.story import payments
from tests.widgets.pictures.contents import made_up_group
from tests.widgets.pictures.test_state_topic import START
from tests.widgets.pictures.test_state_topic import shown as state_of

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = (*(view for view in VIEWS if view != "timeline"), "strip", "strip of payments", "what-if", "race")
EVERYDAY = {
    *("record", "broker", "producer", "consumer", "topic", "partition", "offset", "record batch", "consumer group"),
    *("share group", "member", "share-partition"),
}
"""Terms of the glossary that the first page of the course explains, and of which every second text is made."""


@cache
def glossary() -> tuple[dict[str, str], dict[str, str]]:
    """The meanings of Kafka's terms, and of those of shareq."""
    kafka, ours = (
        re.findall(r"^\| ([^|(]+?)(?: \([A-Z]+\))? \| ([^|]+?) \|$", part, re.MULTILINE)
        for part in (ROOT / "GLOSSARY.md").read_text().split("## shareq")
    )
    return dict(kafka), dict(ours)


@cache
def pictures() -> dict[str, str]:
    """The static pictures of all views."""
    cluster = busy()
    made = {name: view.to_svg() for name, view in shown(cluster).items()}
    made["strip"] = strip(cluster, group=GROUP, topic=TOPIC).to_svg()
    made["strip of payments"] = strip(payments(), group="payments", topic="orders").to_svg()
    made["what-if"] = what_if().to_svg()
    made["race"] = race(records=60).to_svg()
    return made


def texts(markup: str) -> list[tuple[str, str]]:
    """Each text of a picture with its tooltip."""
    nodes = list(ET.fromstring(markup).iter(f"{SVG}text"))
    titles = [node.findtext(f"{SVG}title", "") for node in nodes]
    return [("".join(node.itertext()).removesuffix(title), title) for node, title in zip(nodes, titles, strict=True)]


@pytest.mark.parametrize("name", TERMS)
def test_a_notebook_explains_the_term(name: str) -> None:
    cells = json.loads((ROOT / "notebooks" / f"{TERMS[name].notebook}.ipynb").read_text())["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert name in terms_in(prose)


@pytest.mark.parametrize("name", TERMS)
def test_a_meaning_is_the_sentence_of_the_glossary(name: str) -> None:
    kafka, ours = glossary()
    row = (ours | kafka)[name].replace("`", "")
    assert re.match(rf"{re.escape(TERMS[name].meaning)}(?=$|[;:.]| \()", row)
    assert "." not in TERMS[name].meaning


def test_each_word_stands_for_one_term() -> None:
    words = [word.lower() for term in TERMS.values() for word in term.words]
    assert len(words) == len(set(words))
    assert all(terms_in(word) == [name] for name, term in TERMS.items() for word in term.words)


@pytest.mark.parametrize("view", PICTURES)
def test_a_text_explains_its_terms(view: str) -> None:
    found = texts(pictures()[view])
    assert found
    assert [(text, title) for text, title in found for name in terms_in(text) if meanings(name) not in title] == []


def test_each_of_kafkas_terms_in_a_view_is_a_term_with_a_sentence() -> None:
    words = "\n".join(text for markup in pictures().values() for text, _ in texts(markup))
    names = [name for row in glossary()[0] for name in row.split(", ")]
    seen = {name for name in names if re.search(rf"\b{re.escape(name)}s?\b", words, re.IGNORECASE)}
    assert seen
    assert {name for name in seen - EVERYDAY if not terms_in(name)} == set()


def test_the_key_of_a_configuration_is_no_term() -> None:
    assert terms_in("share.record.lock.duration.ms=5000, lag.") == ["lag"]


def test_a_text_keeps_its_own_title() -> None:
    assert explained("lag 3", "topic orders") == f"topic orders\n{meanings('lag')}"
    assert explained("3 records", "topic orders") == "topic orders"
    assert explained("lag 3", meanings("SPSO", "lag")) == meanings("SPSO", "lag")


def test_the_epochs_of_a_group_have_their_meanings_as_tooltips() -> None:
    content = made_up_group(5, 3)
    drawing = group.draw(content, 760)
    assert drawing.find("epochs")["title"] == meanings("group epoch", "assignment epoch")
    for member in content.members:
        title = drawing.find(f"member {member.member_id} beat")["title"]
        assert TERMS["member epoch"].meaning in title
        assert (TERMS["fenced"].meaning in title) == ("FENCED" in member.error)


def test_the_epoch_of_a_heartbeat_has_its_meaning_as_a_tooltip() -> None:
    titles = [title for text, title in texts(pictures()["messages"]) if text.startswith("epoch ")]
    assert titles
    assert [title for title in titles if meanings("member epoch") not in title] == []


def test_the_epoch_of_a_leader_has_its_meaning_as_a_tooltip() -> None:
    drawing = state_topic.draw(state_of(START), 760)
    [title] = [title for text, title in texts(to_svg(drawing)) if text == drawing.find("memory left")["text"]]
    assert meanings("leader epoch") in title
