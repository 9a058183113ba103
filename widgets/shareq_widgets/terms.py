"""The terms of the field in the texts of the views: one sentence each, for their tooltips, and a notebook that explains
them.

A meaning is that of `GLOSSARY.md`. The page's bundles hold the table (`js/terms.js`), and explain the texts by the same
rules.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple


class Term(NamedTuple):
    """A term: its meaning in one sentence, the notebook with its explanation, and the words for it in views."""

    meaning: str
    notebook: str
    words: tuple[str, ...]


TERMS: Final[dict[str, Term]] = {
    name: Term(**row) for name, row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}
_NAMES: Final = {word.lower(): name for name, term in TERMS.items() for word in term.words}
_WORDS: Final = "|".join(sorted(_NAMES, key=len, reverse=True))
_WORD: Final = re.compile(rf"(?<![\w.])(?:{_WORDS})(?!\.?\w)", re.IGNORECASE)
"""Of "session epoch" and "session" the longer one is found, and none in the key of a configuration."""


def terms_in(text: str) -> list[str]:
    """The names of the terms in a text, in order."""
    return list(dict.fromkeys(_NAMES[word.lower()] for word in _WORD.findall(text)))


def meanings(*names: str) -> str:
    """The meanings of these terms, one line each."""
    return "\n".join(f"{name}: {TERMS[name].meaning}." for name in names)


def explained(text: str, title: str = "") -> str:
    """The tooltip of a text: its own `title`, and the meanings of its terms that the title does not have yet."""
    lines = [title, *(meaning for name in terms_in(text) if (meaning := meanings(name)) not in title)]
    return "\n".join(filter(None, lines))
