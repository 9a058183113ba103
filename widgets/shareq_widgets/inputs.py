"""The buttons, fields and folds of a page. Their messages arrive in any thread; one thread at a time takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from shareq.trace.analysis.one_thread import by_one_thread


def on_click(button: ipywidgets.Button, call: Callable[[], object]) -> None:
    """Call at each click."""
    button.on_click(lambda _: call())
    take_turns(button)


def on_change(field: ipywidgets.Widget, call: Callable[[Any], object], name: str = "value") -> None:
    """Call with each change of a trait, by a person or by a program."""
    field.observe(call, name)
    take_turns(field)


def take_turns(widget: ipywidgets.Widget) -> None:
    """One thread at a time takes the messages of a widget: ipywidgets changes it before it calls its observers."""
    widget.comm.on_msg(by_one_thread(widget._handle_msg))  # noqa: SLF001 the one callback of a comm
