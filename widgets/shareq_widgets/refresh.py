"""Makes the pictures that a notebook stores, and keeps them up to date: a view at the top is displayed before anything
has happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anywidget

from shareq.trace.analysis.one_thread import by_one_thread

Pictures = Callable[[str, bool], Mapping[str, str] | None]
"""The pictures for the id of a widget's model, of its whole recording if the second argument is true; None: the widget
is unknown."""

_BUNDLE: Final = Path(__file__).parent / "static" / "refresh.js"


class Refresh(anywidget.AnyWidget):
    """An invisible widget, one in a kernel. The page asks it for the pictures of the displayed views when cells have
    run, and when the notebook is saved, and writes them beside the views: the views themselves stay as they are.

    The first message of a page with a notebook is {"stores": true}. A later one has `wishes`, [model_id, whole] each;
    the response has `pictures`: [model_id, whole, the pictures by their MIME types] for each widget that is known.

    `stored_by_page`: a page has reported that it stores pictures.
    """

    _esm = _BUNDLE

    def __init__(self, draw: Pictures) -> None:
        self._draw = draw
        self.stored_by_page = False
        super().__init__()
        self.on_msg(self._on_message)

    def _on_message(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Take a message of a page. The first one also arrives while another thread makes a view."""
        if content.get("stores"):
            self.stored_by_page = True
        else:
            self._answer(content)

    @by_one_thread
    def _answer(self, content: dict[str, Any]) -> None:
        """Send the pictures. The page waits for a response, also where one view cannot be drawn."""
        made: list[tuple[str, bool, Mapping[str, str]]] = []
        try:
            for model_id, whole in content["wishes"]:
                if (pictures := self._draw(model_id, whole)) is not None:
                    made.append((model_id, whole, pictures))
        finally:
            self.send({"pictures": made})
