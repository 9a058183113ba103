"""The widgets of one control: its button, its slider or list of choices, and a field for exact numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log10
from typing import Any, Final, TypeVar

import ipywidgets

from shareq.model.printable import escape
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq_widgets.inputs import on_change, on_click
from shareq_widgets.steering import Control
from shareq_widgets.steering.control import BUTTON, SLIDER

W = TypeVar("W", bound=ipywidgets.DOMWidget)

UNITS: Final = {"minutes": "min", "records/s": "/s", "x": "×"}
"""Units that are shorter behind a field than in words."""
RECORDS: Final = {"records": "rec."}
"""Where the name stands beside the slider, a longer word would leave it no room."""
BESIDE: Final = 12
"""The most characters of a name that has room beside its slider."""
FEWEST_DIGITS: Final = 5
"""Every field has room for so many digits."""
_KEY: Final = re.compile(r"^[\w.]+(?: of \S+)?=")
"""The beginning of a reason that names the control: the field is there."""
NO_WORD: Final = '""'
"""The label of a choice that is the empty text."""


class Maker:
    """Makes the widgets of a panel: those of a kind share a layout and a style, and have all their traits from the
    beginning.

    Each layout, each style and each later change is a message to the page. The folds of a panel have some hundred
    widgets, and of a burst of 2,000 messages ZeroMQ drops what its queues cannot hold: the page would never show it.
    """

    def __init__(self) -> None:
        self._looks: dict[tuple[type, str | None], dict[str, Any]] = {}

    def __call__(self, kind: type[W], *children: Any, classes: str = "", width: str | None = None, **traits: Any) -> W:
        """A widget of a kind. `classes`: of CSS, separated by spaces; `width`: of CSS, instead of the kind's own."""
        looks = self._looks.get((kind, width), {} if width is None else {"layout": {"width": width}})
        made: W = kind(*children, _dom_classes=tuple(classes.split()), **looks, **traits)
        names = ("layout", "style") if made.has_trait("style") else ("layout",)
        self._looks[kind, width] = {name: getattr(made, name) for name in names}
        return made


@used_by_one_thread
class PanelRow:
    """The widgets of one control. `act` is called with the control and a value. `text`: on the button, if not the name.
    `make` makes the widgets.

    A whole number is typed beside its slider, also outside the slider's range: the control refuses it with a reason.
    """

    def __init__(self, control: Control, act: Callable[[Control, Any], None], make: Maker, text: str = "") -> None:
        self.control = control
        self._make = make
        self._act = act
        self._updating = False
        self._chosen = False
        """True once a person has changed the proposal of a momentary control."""
        self._refused = False
        """True while the field shows a value that was refused, and the reason stands below it."""
        self._in_force: Any = None
        self._answer = make(ipywidgets.HTML, classes="sq-answer")
        self._exact: ipywidgets.IntText | None = None
        beginning: dict[str, Any] = {"tooltip": _tooltip(control), "disabled": not control.available}
        self._field = self._make_field(control, beginning)
        if control.kind == SLIDER and control.whole:
            traits: dict[str, Any] = {"value": control.value or 0, "continuous_update": False, **beginning}
            self._exact = make(ipywidgets.IntText, classes="sq-exact", width=_room(control), **traits)
            on_change(self._exact, self._typed)
            on_change(self._field, self._slid)
        self._button = make(ipywidgets.Button, description=text or control.name, **beginning)
        on_click(self._button, self._send)
        if self._field is not None:
            on_change(self._field, self._changed)
        self.widget = self._lay_out(control)
        self.update(control)

    def _make_field(self, control: Control, beginning: dict[str, Any]) -> Any:
        """The slider or the list of choices; None of a button. `beginning`: its tooltip, and whether it is disabled."""
        if control.kind == BUTTON:
            return None
        if control.kind != SLIDER:
            options = [(str(choice) or NO_WORD, choice) for choice in control.choices]
            value = control.value if control.value in control.choices else None
            return self._make(ipywidgets.Dropdown, options=options, value=value, **beginning)
        low, high = control.low or 0, control.high or 0
        traits = {"continuous_update": False, **beginning}
        if control.value is not None:
            traits["value"] = min(max(control.value, low), high)
        if control.log and low > 0:
            traits |= {"min": log10(low), "max": log10(high), "step": 0.05}
            traits |= {"readout": not control.whole, "readout_format": ".3g"}
            return self._make(ipywidgets.FloatLogSlider, **traits)
        if control.whole:
            return self._make(ipywidgets.IntSlider, min=low, max=high, readout=False, **traits)
        return self._make(ipywidgets.FloatSlider, min=low, max=high, **traits)

    def _lay_out(self, control: Control) -> ipywidgets.Widget:
        """The button, or the name, with the field beside it."""
        if self._field is None:
            return self._button
        name = f'<span title="{escape(_tooltip(control))}">{breakable(control.name)}</span>'
        exact: list[ipywidgets.Widget] = [] if self._exact is None else [self._exact]
        beside = len(control.name) <= BESIDE and not control.momentary
        if control.unit and control.kind == SLIDER:
            unit = (UNITS | RECORDS if beside else UNITS).get(control.unit, control.unit)
            exact.append(self._make(ipywidgets.HTML, f'<span class="sq-unit">{unit}</span>'))
        first = self._button if control.momentary else self._make(ipywidgets.HTML, name)
        classes = "sq-control sq-beside" if beside else "sq-control"
        return self._make(ipywidgets.Box, [first, self._field, *exact, self._answer], classes=classes)

    def update(self, control: Control) -> None:
        """Show the value and the availability of the control."""
        self.control = control
        self._button.disabled = not control.available
        self._button.tooltip = _tooltip(control)
        if self._field is None:
            return
        for field in (self._field, self._exact):
            if field is not None:
                field.disabled = not control.available
        if self._refused and control.value != self._in_force:
            self.accept()
        if self._refused or (control.momentary and self._chosen):
            return  # a proposal that a person has changed stays, and so does a value that was refused
        self._updating = True
        try:
            self._show(control.value)
        finally:
            self._updating = False

    def refuse(self, reason: str) -> bool:
        """Show below the field why its value was refused: the field keeps it, to be corrected, and the slider shows the
        value in force. False without a field."""
        if self._field is None:
            return False
        self._refused, self._in_force = True, self.control.value
        self._answer.value = f'<span class="sq-refused" role="alert">{escape(_KEY.sub("", reason))}</span>'
        if self._exact is not None and not self.control.momentary:
            self._updating = True
            try:
                self._show_field(self._in_force)
            finally:
                self._updating = False
        return True

    def accept(self) -> None:
        """Take back the reason of a refusal: a value was accepted since."""
        self._refused, self._answer.value = False, ""

    def _show(self, value: Any) -> None:
        if self._exact is not None and value is not None:
            self._exact.value = value
        self._show_field(value)

    def _show_field(self, value: Any) -> None:
        field = self._field
        if isinstance(field, ipywidgets.Dropdown):
            field.value = value if value in self.control.choices else None
        elif value is not None:
            low, high = field.min, field.max
            if isinstance(field, ipywidgets.FloatLogSlider):
                low, high = 10**low, 10**high
            field.value = min(max(value, low), high)

    def _slid(self, change: Any) -> None:
        """Show the slider's number in the field beside it."""
        if not self._updating and self._exact is not None:
            self._exact.value = round(change["new"])

    def _typed(self, change: Any) -> None:
        """Move the slider to the number, and set it."""
        if self._updating:
            return
        self._chosen, self._updating = True, True
        try:
            self._show_field(change["new"])
        finally:
            self._updating = False
        if not self.control.momentary:
            self._send()

    def _changed(self, _change: Any) -> None:
        self._chosen = self._chosen or not self._updating
        if not self._updating and self._exact is None and not self.control.momentary:
            self._send()

    def _send(self) -> None:
        value: Any = None if self._field is None else self._field.value
        self._act(self.control, value if self._exact is None else self._exact.value)


def _room(control: Control) -> str:
    """The width of a field for its number and those of the slider, which has the rest of the line. Numbers of more than
    ten digits stand for no limit."""
    digits = max(len(f"{number or 0:.0f}") for number in (control.high, control.value))
    return f"calc({min(max(digits, FEWEST_DIGITS), 10)}ch + 16px)"


def breakable(text: str) -> str:
    """A name or a line of code for a narrow place: it breaks behind a dot, a bracket or an underscore."""
    return re.sub(r"([._(])", r"\1<wbr>", escape(text))


def _tooltip(control: Control) -> str:
    """The meaning, the range and the unit, and the reason if the control is not available."""
    parts = [control.meaning]
    if control.kind == SLIDER:
        parts.append(f"{control.low:g} to {control.high:g} {control.unit}.".replace(" .", "."))
    if control.reason:
        parts.append(f"Not available: {control.reason}.")
    return " ".join(parts)
