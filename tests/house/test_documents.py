"""The documents name files and modules that exist, and terms once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = re.compile(r"`((?:shareq|tests|widgets|notebooks|binder)/[\w./-]*)`")


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "README.md"])
def test_paths_in_a_document_exist(document: str) -> None:
    named = PATH.findall((ROOT / document).read_text())
    assert [path for path in named if not (ROOT / path).exists() and "NN_" not in path] == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_names_beside_a_path_exist_in_that_file(document: str) -> None:
    """A name in parentheses after a path, as in `shareq/leader/window.py` (`advance`)."""
    named = re.findall(r"`((?:shareq|tests)/[\w./]+\.py)` \(`(\w+)", (ROOT / document).read_text())
    assert named
    assert [(path, name) for path, name in named if not re.search(rf"\b{name}\b", (ROOT / path).read_text())] == []


@pytest.mark.parametrize(("document", "heading"), [("ARCHITECTURE.md", "## The rooms"), ("README.md", "## The rooms")])
def test_the_list_of_rooms_has_every_room(document: str, heading: str) -> None:
    text = (ROOT / document).read_text().split(heading)[1].split("\n## ")[0]
    rooms = {path.parent.name for path in (ROOT / "shareq").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", text)} == set()


def test_the_hops_of_a_request_are_numbered_and_cross_every_room_on_the_way() -> None:
    hops = re.findall(r"^\| (\d+) \| (.*?) \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert [int(number) for number, _ in hops] == list(range(1, len(hops) + 1))
    crossed = set(re.findall(r"`shareq/(\w+)/", " ".join(files for _, files in hops)))
    assert crossed >= {"consumer", "client", "wire", "broker", "leader", "persister", "coordinator", "log"}


def test_a_term_of_the_glossary_is_explained_once() -> None:
    terms = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", (ROOT / "GLOSSARY.md").read_text(), re.MULTILINE)
    assert len(terms) > 40
    assert [term for term, count in Counter(terms).items() if count > 1 and term != "Term"] == []
