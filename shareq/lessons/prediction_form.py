"""The form of a prediction in a notebook: its choices or a field for a number, a button, and then the outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

import ipywidgets as widgets

from shareq.model.printable import escape

_THOUSANDS: Final = re.compile(r",(?=\d{3}\b)")


class Form:
    """The widgets of one question. The button calls `commit` with the chosen answer; `known()` is the text below it, or
    None before an answer is committed."""

    def __init__(
        self,
        question: str,
        choices: Sequence[Any],
        commit: Callable[[Any], object],
        known: Callable[[], str | None],
    ) -> None:
        self._commit = commit
        self._known = known
        self.field: Any = (
            widgets.RadioButtons(options=choices, value=None, layout={"width": "max-content"})
            if choices
            else widgets.Text(description="a number:", style={"description_width": "initial"})
        )
        self.button = widgets.Button(description="I commit to this")
        self.result = widgets.HTML()
        self._choices = choices
        self.field.observe(lambda _: self.refresh(), names="value")
        self.button.on_click(lambda _: self._commit(self._answer()))
        title = widgets.HTML(f"<b>Predict:</b> {escape(question)}")
        self.box = widgets.VBox([title, self.field, self.button, self.result])
        self.refresh()

    def bundle(self) -> dict[str, Any]:
        """What Jupyter displays."""
        made: dict[str, Any] = self.box._repr_mimebundle_()
        return made

    def _answer(self) -> Any:
        """The choice or the number in the field; None before there is one, so that no click commits to nothing."""
        if self._choices:
            return self.field.value
        try:
            number = float(_THOUSANDS.sub("", self.field.value))
        except ValueError:
            return None
        return int(number) if number.is_integer() else number if isfinite(number) else None

    def refresh(self) -> None:
        """Show what is known by now. A committed answer cannot be changed."""
        text = self._known()
        self.field.disabled = text is not None
        self.button.disabled = text is not None or self._answer() is None
        self.result.value = "" if text is None else f"<pre>{escape(text)}</pre>"
