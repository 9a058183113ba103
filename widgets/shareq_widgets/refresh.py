"""Updates the pictures that a notebook stores: a view at the top is displayed before anything has happened."""

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

    A message of the page has `wishes`, [model_id, whole] each; the response has `pictures`: [model_id, whole, the
    pictures by their MIME types] for each widget that is known.
    """

    _esm = _BUNDLE

    def __init__(self, draw: Pictures) -> None:
        self._draw = draw
        super().__init__()
        self.on_msg(self._answer)

    @by_one_thread
    def _answer(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Send the pictures. The page waits for a response, also where one view cannot be drawn."""
        made: list[tuple[str, bool, Mapping[str, str]]] = []
        try:
            for model_id, whole in content["wishes"]:
                if (pictures := self._draw(model_id, whole)) is not None:
                    made.append((model_id, whole, pictures))
        finally:
            self.send({"pictures": made})
