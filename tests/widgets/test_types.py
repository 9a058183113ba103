"""The types of the JavaScript beside those of Python: fields that both name have the same type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from shareq.trace.views.snapshot import Mark, Member, Step, StripSnapshot
from shareq_widgets.commands import Command

TYPES = (Path(__file__).parents[2] / "widgets" / "shareq_widgets" / "js" / "types.d.ts").read_text()
NAMES = {"int": "number", "float": "number", "str": "string", "bool": "boolean", "NoneType": "null"}


def fields(interface: str) -> dict[str, str]:
    """The fields of an interface of JavaScript and their types."""
    found = re.search(rf"^export interface {interface} {{\n(.*?)^}}", TYPES, re.MULTILINE | re.DOTALL)
    assert found
    return dict(re.findall(r"^  (\w+)\??: (.+);$", found[1], re.MULTILINE))


def in_javascript(kind: Any) -> str:
    """The name of a type of Python in JavaScript."""
    if getattr(kind, "__name__", "") in ("list", "tuple"):
        item = kind.__args__[0]
        return "Run[]" if item == list[Any] else f"{in_javascript(item)}[]"
    if kind is Step:
        return "{ first: number; text: string }"
    if hasattr(kind, "__args__"):
        return " | ".join(in_javascript(one) for one in kind.__args__)
    return NAMES.get(kind.__name__, str(kind.__name__))


@pytest.mark.parametrize(
    ("interface", "kind"),
    [("Snapshot", StripSnapshot), ("Member", Member), ("Mark", Mark), ("Command", Command)],
)
def test_a_field_has_one_type(interface: str, kind: type) -> None:
    found, hints = fields(interface), get_type_hints(kind)
    assert found == {name: in_javascript(hints[name]) for name in found}
    assert found
    assert interface == "Snapshot" or found.keys() == hints.keys()
