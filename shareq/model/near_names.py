"""A misspelled name, and the known one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the known one that is most like it. Empty if none is."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), sorted(known), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""
