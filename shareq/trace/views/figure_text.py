"""Names that clients have chosen, as texts of a figure."""

from __future__ import annotations

from shareq.model.printable import printable

MOST_CHARACTERS = 100


def figure_text(text: str, most_characters: int = MOST_CHARACTERS) -> str:
    """The text for matplotlib: a pair of dollars is not mathematics, and a long text has an ellipsis in the middle, so
    that the figure keeps its room for the data. Control characters, which fonts lack, are escaped."""
    if len(text) > most_characters:
        half = most_characters // 2
        text = f"{text[:half]}…{text[-half:]}"
    return printable(text).replace("$", r"\$")
