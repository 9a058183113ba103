"""Texts that clients have chosen, for terminals and for XML."""

from __future__ import annotations

from xml.dom.minidom import parseString

import pytest

from shareq.html import html
from shareq.model.printable import escape, printable

FORBIDDEN = [*(chr(code) for code in range(32) if chr(code) not in "\t\n\r"), "\ufffe", "\uffff", "\ud800", "\udfff"]
ALLOWED = ["\t", "\n", "\r", " ", "\x7f", "\x85", "\ud7ff", "\ue000", "\ufffd", "\U00010000", "\U0010ffff", "&<>\"'"]


@pytest.mark.parametrize("text", FORBIDDEN, ids=ascii)
def test_what_xml_forbids_is_written_as_python_does(text: str) -> None:
    made = parseString(f'<p title="{escape(text)}">a{escape(text)}</p>'.encode()).documentElement
    assert made is not None
    assert made.firstChild is not None
    assert made.firstChild.nodeValue == f"a{repr(text)[1:-1]}" == f"a{made.getAttribute('title')}"
    assert html(text) == escape(text)


@pytest.mark.parametrize("text", ALLOWED, ids=ascii)
def test_all_else_is_content_as_it_is(text: str) -> None:
    parsed = parseString(f"<p>a{escape(text)}</p>".encode()).documentElement
    assert parsed is not None
    assert parsed.firstChild is not None
    assert parsed.firstChild.nodeValue == f"a{text}".replace("\r", "\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("日本 é", "日本 é"),
        ("a\x1b[31mb\nc\td", r"a\x1b[31mb\nc\td"),
        ("\x00\x7f\x9b\u2028\ud800", r"\x00\x7f\x9b\u2028\ud800"),
    ],
)
def test_printable_text_is_on_one_line_and_steers_no_terminal(text: str, expected: str) -> None:
    assert printable(text) == expected
