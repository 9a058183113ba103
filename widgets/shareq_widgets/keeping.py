"""What a person keeps of a view or of a room in the browser: files to download, and the line of Python that shows the
same again.

The browser asks for a form of `FORMS` or for `STATE`; the answer has the content, and the line that does the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from shareq_widgets.showable import Showable

FORMS: Final = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html"}
"""The suffixes of the files, and their MIME types."""
STATE: Final = "state"
LONGEST_NAME: Final = 80
"""The most characters of a file's name before its suffix."""


class Keepable(Protocol):
    """A view or a room."""

    @property
    def variable(self) -> str:
        """Its name in the lines of Python."""

    @property
    def name(self) -> str:
        """What it shows, for the names of files."""

    @property
    def theme(self) -> str:
        """Its own theme."""

    def state_line(self) -> str:
        """The line of Python that shows the same again."""

    def exported(self, suffix: str, theme: str | None) -> bytes:
        """The content of a file, see `export`."""


class Shown(Showable, Protocol):
    """The part of `Player` that belongs to its state."""

    snapshot: Any
    live: Any
    selection: Any


class KeptView:
    """A view as what is kept."""

    variable = "view"

    def __init__(self, view: Shown) -> None:
        self._view = view

    @property
    def name(self) -> str:
        words = self._view.words
        return f"{words['title']} {words['where'].partition(' · ')[0]}"

    @property
    def theme(self) -> str:
        return str(self._view.theme)

    def state_line(self) -> str:
        view = self._view
        moment = "view.last()" if view.live else f"view.seek_time({view.snapshot['now_ms']})"
        return f"{moment}; view.select({view.selection!r})"

    def exported(self, suffix: str, theme: str | None) -> bytes:
        from shareq_widgets.export import exported

        return exported(self._view, suffix, theme=theme)


def answer(kept: Keepable, wish: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """The message for the browser, and its buffers, for {"form", "theme": that of the page, "copy": of the view}.

    A picture in a theme that follows the page has the colours of the page. A missing package is a "refusal", with the
    command that installs it. ValueError for an unknown form.
    """
    form, of = wish["form"], {"copy": wish["copy"]}
    if form == STATE:
        return {"kept": {**of, "line": kept.state_line()}}, []
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join((*FORMS, STATE))}, not {form!r}")
    dark = form != "html" and kept.theme == "auto" and wish["theme"] == "dark"
    file = f"{_slug(kept.name)}.{form}"
    colours = ", theme='dark'" if dark else ""
    line = f"{kept.variable}.save({file!r}{colours})"
    try:
        content = kept.exported(f".{form}", "dark" if dark else None)
    except ModuleNotFoundError as missing:
        return {"kept": {**of, "refusal": str(missing)}}, []
    return {"kept": {**of, "line": line, "file": file, "type": FORMS[form]}}, [content]


def _slug(name: str) -> str:
    """A name for files of all systems."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:LONGEST_NAME].lower() or "shareq"
