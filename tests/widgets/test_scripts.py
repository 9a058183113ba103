"""The JavaScript of the views: what a linter would check."""

from __future__ import annotations

import re
from pathlib import Path

JS = Path(__file__).parents[2] / "widgets" / "shareq_widgets" / "js"
STRICT = re.compile(r"[!=]== null\b")


def test_none_may_arrive_as_null_or_undefined() -> None:
    """JupyterLite's kernel turns None into undefined: `== null` holds for both."""
    sources = {path.name: path.read_text() for path in JS.glob("*.js")}
    assert any("== null" in source for source in sources.values())
    assert {name: found for name, source in sources.items() if (found := STRICT.findall(source))} == {}
