"""The control panel: sliders, buttons and choices over `steering`, and the line of code of what was done last."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from math import log10
from typing import Any, Final

import ipywidgets

from shareq.model.errors import KafkaException
from shareq_widgets.labels import labelled
from shareq_widgets.steering import STORIES, Control, Steering, Story
from shareq_widgets.steering.control import BUTTON, SLIDER
from shareq_widgets.steering.dynamic_configs import GROUP
from shareq_widgets.steering.panel import CONSUMERS

OPEN: Final = ("records", "consumers", "clock")
"""The areas that are open at first."""

COMPARE: Final = "Lock duration and limits against p99, redeliveries and throughput, from simulated runs."

REFUSALS = (KafkaException, ValueError)


class Row:
    """The widgets of one control. `act` is called with the control and a value.

    A whole number is typed beside its slider, also outside the slider's range: the control refuses it with a reason.
    """

    def __init__(self, control: Control, act: Callable[[Control, Any], None]) -> None:
        self.control = control
        self._act = act
        self._updating = False
        self._chosen = False
        """True once a person has changed the proposal of a momentary control."""
        self._exact: ipywidgets.IntText | None = None
        self._field = self._make_field(control)
        if control.kind == SLIDER and control.whole:
            self._exact = ipywidgets.IntText(continuous_update=False)
            self._exact.add_class("sq-exact")
            self._exact.observe(self._typed, "value")
            self._field.observe(self._slid, "value")
        self._button = ipywidgets.Button(description=control.name, tooltip=_tooltip(control))
        self._button.on_click(lambda _: self._send())
        if self._field is not None:
            self._field.observe(self._changed, "value")
        self.widget = self._lay_out(control)
        self.update(control)

    def _make_field(self, control: Control) -> Any:
        """The slider or the list of choices; None of a button."""
        if control.kind == BUTTON:
            return None
        if control.kind != SLIDER:
            return ipywidgets.Dropdown(options=[(str(choice), choice) for choice in control.choices])
        low, high = control.low or 0, control.high or 0
        if control.log and low > 0:
            return ipywidgets.FloatLogSlider(
                min=log10(low),
                max=log10(high),
                step=0.05,
                continuous_update=False,
                readout=not control.whole,
                readout_format=".3g",
            )
        if control.whole:
            return ipywidgets.IntSlider(min=low, max=high, continuous_update=False, readout=False)
        return ipywidgets.FloatSlider(min=low, max=high, continuous_update=False)

    def _lay_out(self, control: Control) -> ipywidgets.Widget:
        """The button, or the name, with the field beside it."""
        if self._field is None:
            return self._button
        self._field.tooltip = _tooltip(control)
        label = ipywidgets.HTML(f'<span title="{escape(_tooltip(control))}">{escape(control.name)}</span>')
        exact = [] if self._exact is None else [self._exact]
        if self._exact is not None:
            self._exact.tooltip = _tooltip(control)
        row = ipywidgets.Box([self._button if control.momentary else label, self._field, *exact])
        row.add_class("sq-control")
        return row

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
        if control.momentary and self._chosen:
            return  # a proposal that a person has changed stays
        self._updating = True
        try:
            self._show(control.value)
        finally:
            self._updating = False

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


class Panel(ipywidgets.VBox):
    """The controls of a cluster by area, its stories, and the code of what was done.

    `tell` is called with the name of a preset, to show its story. `story`: the story whose steps are shown; `leave` is
    called to end it. `compare` is called to show what settings of the group cost.
    """

    def __init__(
        self,
        steering: Steering,
        *,
        story: Story | None = None,
        tell: Callable[[str], object] | None = None,
        leave: Callable[[], None] | None = None,
        compare: Callable[[], None] | None = None,
    ) -> None:
        self.steering = steering
        self.story = story
        self._controls: dict[str, Control] = {}
        self._rows: dict[str, Row] = {}
        """The rows of the folds that are open, or have been: a hundred rows would take a second to make."""
        self._stories = [self._story_button(name, tell) for name in STORIES] if tell is not None else []
        self._telling = ipywidgets.HTML()
        self._next = ipywidgets.Button(description="what happens?", button_style="primary")
        self._next.on_click(lambda _: self.next())
        self._leave = ipywidgets.Button(description="end the story", disabled=leave is None)
        self._leave.on_click(lambda _: leave() if leave is not None else None)
        self._compare = ipywidgets.Button(description="what if: compare settings", tooltip=COMPARE)
        self._compare.on_click(lambda _: compare() if compare is not None else None)
        self._beside: dict[str, list[ipywidgets.Widget]] = {} if compare is None else {GROUP: [self._compare]}
        self._code = ipywidgets.HTML()
        self._folds: dict[str, ipywidgets.Accordion] = {}
        self._listed: dict[str, list[str]] = {}
        """The names of the controls in a fold."""
        self._contents: dict[str, Callable[[], ipywidgets.Widget]] = {}
        """What makes the content of a fold that has not been opened yet."""
        super().__init__()
        self.add_class("sq-panel")
        self._labels = labelled(self)
        self.refresh()
        self._tell()
        self._show_code("")

    def _story_button(self, name: str, tell: Callable[[str], object]) -> ipywidgets.Button:
        button = ipywidgets.Button(description=STORIES[name].title, tooltip=STORIES[name].about)
        button.on_click(lambda _: tell(name))
        return button

    # ---- what a person does ------------------------------------------------------------------------------------------

    def act(self, control: Control, value: Any = None) -> None:
        """Use a control, and show its line of code, or the reason why it was refused."""
        try:
            line = control.do(value)
        except REFUSALS as refusal:
            self._show_code("", refusal=str(refusal))
        else:
            self._show_code(line, meaning=control.meaning)
        self.refresh()

    def next(self) -> None:
        """Do the next step of the story."""
        if self.story is not None and not self.story.done:
            before = len(self.steering.log)
            self.story.next()
            self._show_code("\n".join(self.steering.log[before:]))
            self._tell()
            self.refresh()

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show the present controls, values and availability."""
        before, self._controls = list(self._controls), {control.name: control for control in self.steering.controls()}
        if list(self._controls) != before:
            self._rows = {name: row for name, row in self._rows.items() if name in self._controls}
            self._lay_out()
        for name, row in self._rows.items():
            row.update(self._controls[name])

    def _row(self, name: str) -> ipywidgets.Widget:
        if name not in self._rows:
            self._rows[name] = Row(self._controls[name], self.act)
        return self._rows[name].widget

    def _lay_out(self) -> None:
        """A fold for each area, and in it one for each consumer."""
        by_area: dict[str, list[Control]] = {}
        for control in self._controls.values():
            by_area.setdefault(control.area, []).append(control)
        for area, found in by_area.items():
            names = [control.name for control in found]
            self._fold(area, names, partial(self._content, found), opened=area in OPEN)
        heading = ipywidgets.HTML("<b>Stories</b>: a failure each, step by step")
        stories, moves = _box([heading, *self._stories]), _box([self._next, self._leave])
        told = [self._telling, moves] if self.story is not None else []
        shown = [self._folds[area] for area in by_area]
        self.children = (*([stories] if self._stories else []), *told, self._code, *shown, self._labels)

    def _content(self, controls: list[Control]) -> ipywidgets.Widget:
        """The controls of an area; those of a consumer are folded under its name."""
        by_subject: dict[str, list[str]] = {}
        for control in controls:
            by_subject.setdefault(control.subject, []).append(control.name)
        parts: list[ipywidgets.Widget] = [*self._beside.get(controls[0].area, [])]
        for subject, names in by_subject.items():
            if controls[0].area == CONSUMERS and subject:
                parts.append(self._fold(f"consumer {subject}", names, partial(self._box_of, names), opened=False))
            else:
                parts += map(self._row, names)
        return _box(parts)

    def _box_of(self, names: list[str]) -> ipywidgets.Widget:
        return _box([self._row(name) for name in names])

    def _fold(
        self, title: str, names: list[str], content: Callable[[], ipywidgets.Widget], *, opened: bool
    ) -> ipywidgets.Accordion:
        """The fold of these controls; one that exists stays open or closed as a person has left it. Its content is made
        when it is first opened, and again for other controls only: a page that shows it anew drops what a person is
        typing there."""
        if title not in self._folds:
            index = 0 if opened else None
            fold = ipywidgets.Accordion(children=(_box([]),), titles=(title,), selected_index=index)
            fold.observe(lambda _: self._fill(title), "selected_index")
            self._folds[title] = fold
        if self._listed.get(title) != names:
            self._listed[title], self._contents[title] = names, content
        self._fill(title)
        return self._folds[title]

    def _fill(self, title: str) -> None:
        """Make the content of a fold, if it is open and does not have it."""
        if self._folds[title].selected_index is not None and title in self._contents:
            self._folds[title].children = (self._contents.pop(title)(),)

    def _tell(self) -> None:
        story = self.story
        if story is None:
            return
        answer = f"<p>{escape(story.answer)}</p>" if story.answer else f"<p>{escape(story.preset.about)}</p>"
        ahead = "" if story.done else f"<p>{escape(story.text)} <b>{escape(story.question)}</b></p>"
        self._telling.value = (
            f'<div class="sq-story" aria-live="polite"><b>{escape(story.preset.title)}</b> '
            f"step {story.position} of {story.count}{answer}{ahead}</div>"
        )
        self._next.disabled = story.done
        self._next.description = "the end" if story.done else "what happens?"

    def _show_code(self, line: str, *, meaning: str = "", refusal: str = "") -> None:
        """`line` is shown as code; what it does, or why it was refused, as a sentence."""
        shown = f'<p class="sq-refused" role="alert">{escape(refusal)}</p>' if refusal else ""
        shown += f'<p class="sq-meaning">{escape(meaning)}</p>' if meaning else ""
        code = escape(line) or "# Each click shows its line of Python here."
        self._code.value = f'<pre class="sq-code" aria-label="the code of the last click">{code}</pre>{shown}'


def _box(children: list[ipywidgets.Widget]) -> ipywidgets.Box:
    box = ipywidgets.Box(children)
    box.add_class("sq-controls")
    return box


def _tooltip(control: Control) -> str:
    """The meaning, the range and the unit, and the reason if the control is not available."""
    parts = [control.meaning]
    if control.kind == SLIDER:
        parts.append(f"{control.low:g} to {control.high:g} {control.unit}.".replace(" .", "."))
    if control.reason:
        parts.append(f"Not available: {control.reason}.")
    return " ".join(parts)
