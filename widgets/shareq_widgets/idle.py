"""A place on a page for a widget that is made later: when the page has drawn what stands beside it."""

from __future__ import annotations

from collections.abc import Callable

import anywidget

from shareq_widgets.player import STATIC


class Idle(anywidget.AnyWidget):
    """An empty widget. `then` is called when a page that shows it has nothing else to do."""

    _esm = STATIC / "idle.js"

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__()
        self.on_msg(lambda *_: then())
