"""Texts that clients have chosen, such as group ids, where not every character is allowed or harmless."""

from __future__ import annotations

import re

_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What no XML document may contain, not even as a reference. (Its complement takes eight times as long to compile.)"""


def printable(text: str) -> str:
    """The text on one line, with control characters as Python writes them: a terminal would obey them."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def escape(text: str) -> str:
    """The text as a value of an attribute, or as content, of HTML and XML. Characters that XML forbids are written as
    Python does: with one of them a picture would be malformed."""
    from html import escape as escaped  # noqa: TID251  # here alone, and late: it has a table of two thousand names

    return escaped(_NOT_XML.sub(lambda found: repr(found[0])[1:-1], text))
