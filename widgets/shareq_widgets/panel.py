"""The control panel: sliders, buttons and choices over `steering`, and the line of code of what was done last."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import ipywidgets

from shareq.model.errors import KafkaException
from shareq.model.printable import escape
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq_widgets.inputs import on_change, on_click
from shareq_widgets.labels import labelled
from shareq_widgets.panel_hint import hint
from shareq_widgets.panel_row import Maker, PanelRow, breakable
from shareq_widgets.steering import STORIES, Control, Steering, Story
from shareq_widgets.steering.dynamic_configs import GROUP
from shareq_widgets.steering.panel import BROKERS, CLOCK, CONSUMERS, RECORDS
from shareq_widgets.words import clock_text

OPEN: Final = (RECORDS, CONSUMERS, BROKERS, CLOCK)
"""The areas that are open at first."""

COMPARE: Final = "Lock duration and limits against p99, redeliveries and throughput, from simulated runs."

A_SECOND: Final = 1000
"""The time by which the button beside the clock advances it, ms."""
FIRST: Final = "Add a consumer, produce records, and advance the clock; or choose a story."
"""What a person can do first with a group without members."""

OWN_CLUSTER: Final = "It has a cluster of its own: yours waits, and is shown again at its end."
END_OF_STORY: Final = "That was the last step. Ending the story shows your cluster again."

REFUSALS = (KafkaException, ValueError)


@used_by_one_thread
class Panel(ipywidgets.VBox):
    """The controls of a cluster by area, its stories, and the code of what was done.

    `begin` is called with the name of a preset, to show its story. `story`: the story whose steps are shown; `leave` is
    called to end it. `compare` is called to show what settings of the group cost.
    """

    def __init__(
        self,
        steering: Steering,
        *,
        story: Story | None = None,
        begin: Callable[[str], object] | None = None,
        leave: Callable[[], None] | None = None,
        compare: Callable[[], None] | None = None,
    ) -> None:
        self.steering = steering
        self.story = story
        self._make = Maker()
        self._controls: dict[str, Control] = {}
        self._rows: dict[str, PanelRow] = {}
        """The rows of the folds that are open, or have been: a hundred rows would take a second to make."""
        self.changed: Callable[[], None] = lambda: None
        """Called after each use of a control."""
        self.plays: Callable[[], bool] = lambda: False
        """True while the views beside the panel are on their way to the present."""
        self._used_ms = -1
        """When a control was last used that does not move the clock, ms since the epoch."""
        self._stories = {} if begin is None else {name: self._story_button(name, begin) for name in STORIES}
        self._step = ipywidgets.HTML()
        self._next = ipywidgets.Button(description="what happens?", button_style="primary")
        on_click(self._next, self.next)
        self._leave = ipywidgets.Button(description="end the story", disabled=leave is None)
        self._compare = ipywidgets.Button(description="what if: compare settings", tooltip=COMPARE)
        for button, act in ((self._leave, leave), (self._compare, compare)):
            on_click(button, act or (lambda: None))
        self._beside: dict[str, list[ipywidgets.Widget]] = {} if compare is None else {GROUP: [self._compare]}
        self._code, self._hint, self._clock = _html("sq-done"), _html("sq-hint"), ipywidgets.HTML()
        self._clock_shown: tuple[int, ...] = ()
        self._advance = ipywidgets.Button(description="advance 1 s", tooltip=f"cluster.advance({A_SECOND})")
        on_click(self._advance, lambda: self.act(self.steering["advance"], A_SECOND))
        standing = self._make(ipywidgets.Box, [self._clock, self._advance], classes="sq-standing")
        hints = self._make(ipywidgets.VBox, [self._hint, self._code], classes="sq-hints")
        top = [*([standing] if steering.cluster.loop.virtual else []), hints]
        self._top = self._make(ipywidgets.VBox, top, classes="sq-top")
        self._folds: dict[str, ipywidgets.Accordion] = {}
        self._listed: dict[str, list[str]] = {}
        """The names of the controls in a fold."""
        self._contents: dict[str, Callable[[], ipywidgets.Widget]] = {}
        """What makes the content of a fold that has not been opened yet."""
        super().__init__()
        self.add_class("sq-panel")
        self._labels = labelled(self)
        self.refresh()
        self._show_step()
        self._show_code("")

    def _story_button(self, name: str, begin: Callable[[str], object]) -> ipywidgets.Button:
        preset = STORIES[name]
        button = ipywidgets.Button(description=_numbered(name), tooltip=f"{preset.title}: {preset.about}")
        if name == next(iter(STORIES)):
            button.add_class("sq-first")
        on_click(button, lambda: begin(name))
        return button

    # ---- what a person does ------------------------------------------------------------------------------------------

    def act(self, control: Control, value: Any = None) -> None:
        """Use a control, and show its line of code, or the reason why it was refused."""
        try:
            line = control.do(value)
        except REFUSALS as refusal:
            row = self._rows.get(control.name)
            if row is None or not row.refuse(str(refusal)):
                self._show_code("", refusal=str(refusal))
        else:
            if control.name in self._rows:
                self._rows[control.name].accept()
            self._show_code(line, meaning=control.meaning)
            if control.area != CLOCK:
                self._used_ms = self.steering.cluster.now_ms
        self.refresh()
        self.changed()

    def next(self) -> None:
        """Do the next step of the story."""
        if self.story is not None and not self.story.done:
            before = len(self.steering.log)
            self.story.next()
            self._show_code("\n".join(self.steering.log[before:]))
            self._show_step()
            self.refresh()
            self.changed()

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show the present controls, values and availability."""
        before, self._controls = list(self._controls), {control.name: control for control in self.steering.controls()}
        if list(self._controls) != before:
            self._rows = {name: row for name, row in self._rows.items() if name in self._controls}
            self._lay_out()
        for name, row in self._rows.items():
            row.update(self._controls[name])
        self.show_clock()

    def show_clock(self) -> None:
        """Show where a virtual clock stands, and what the group waits for, or that the effect of a click is to come; or
        where the clock of the views goes, while they play up to the present: until then nothing else is ahead of them.
        """
        cluster, plays = self.steering.cluster, self.plays()
        shown = cluster.journal.total, cluster.now_ms, len(self.steering.log), plays
        if not cluster.loop.virtual or cluster.closed or shown == self._clock_shown:
            return
        self._clock_shown = shown
        time = clock_text(cluster.now_ms - cluster.journal.origin_ms)
        self._clock.value = f"The clock {'goes to' if plays else 'stands at'} {time}."
        self._hint.value = "" if plays else escape(self._follows())

    def _follows(self) -> str:
        if self.story is None and not self.steering.log:
            return "" if self.steering.members() else FIRST
        waits = "Advance it to see what follows." if self._used_ms == self.steering.cluster.now_ms else ""
        return hint(self.steering) or waits

    def _row(self, name: str, text: str = "") -> ipywidgets.Widget:
        """The widgets of a control; `text`: on its button, if not its name."""
        if name not in self._rows:
            self._rows[name] = PanelRow(self._controls[name], self.act, self._make, text)
        return self._rows[name].widget

    def _lay_out(self) -> None:
        """A fold for each area, and in it one for each consumer."""
        by_area: dict[str, list[Control]] = {}
        for control in self._controls.values():
            by_area.setdefault(control.area, []).append(control)
        for area, found in by_area.items():
            names = [control.name for control in found]
            self._fold(area, names, partial(self._content, found), opened=area in OPEN)
        heading = self._make(ipywidgets.HTML, "<b>Stories</b>: begin with 1")
        stories, moves = self._box([heading, *self._stories.values()]), self._box([self._next, self._leave])
        steps = [moves, self._step] if self.story is not None else []  # a longer text must not move the buttons
        shown = [self._folds[area] for area in by_area]
        self.children = (self._top, *steps, *([stories] if self._stories else []), *shown, self._labels)

    def _content(self, controls: list[Control]) -> ipywidgets.Widget:
        """The controls of an area; those of a consumer are folded under its name, those of a broker are one line."""
        by_subject: dict[str, list[str]] = {}
        for control in controls:
            by_subject.setdefault(control.subject, []).append(control.name)
        parts: list[ipywidgets.Widget] = [*self._beside.get(controls[0].area, [])]
        for subject, names in by_subject.items():
            if controls[0].area == CONSUMERS and subject:
                parts.append(self._fold(f"consumer {subject}", names, partial(self._box_of, names), opened=False))
            elif controls[0].area == BROKERS and subject:
                parts.append(self._line_of(subject, names))
            else:
                parts += map(self._row, names)
        return self._box(parts)

    def _box_of(self, names: list[str]) -> ipywidgets.Widget:
        return self._box([self._row(name) for name in names])

    def _box(self, children: list[ipywidgets.Widget]) -> ipywidgets.Box:
        return self._make(ipywidgets.Box, children, classes="sq-controls")

    def _line_of(self, subject: str, names: list[str]) -> ipywidgets.Widget:
        """The buttons of a subject in one line, behind its name."""
        buttons = [self._row(name, name.removesuffix(f" {subject}")) for name in names]
        children = [self._make(ipywidgets.HTML, escape(subject)), *buttons]
        return self._make(ipywidgets.Box, children, classes="sq-control sq-subject")

    def _fold(
        self, title: str, names: list[str], content: Callable[[], ipywidgets.Widget], *, opened: bool
    ) -> ipywidgets.Accordion:
        """The fold of these controls; one that exists stays open or closed as a person has left it. Its content is made
        when it is first opened, and again for other controls only: a page that shows it anew drops what a person is
        typing there."""
        if title not in self._folds:
            index = 0 if opened else None
            fold = ipywidgets.Accordion(children=(self._box([]),), titles=(title,), selected_index=index)
            on_change(fold, lambda _: self._fill(title), "selected_index")
            self._folds[title] = fold
        if self._listed.get(title) != names:
            self._listed[title], self._contents[title] = names, content
        self._fill(title)
        return self._folds[title]

    def _fill(self, title: str) -> None:
        """Make the content of a fold, if it is open and does not have it."""
        if self._folds[title].selected_index is not None and title in self._contents:
            self._folds[title].children = (self._contents.pop(title)(),)

    def _show_step(self) -> None:
        story = self.story
        if story is None:
            return
        answer = f"<p>{escape(story.answer or f'{story.preset.about} {OWN_CLUSTER}')}</p>"
        ahead = f"<p>{escape(story.text)} <b>{escape(story.question)}</b></p>"
        if story.done:
            ahead = f"<p>{END_OF_STORY}</p>"
        progress = "●" * story.position + "○" * (story.count - story.position)
        self._step.value = (
            f'<div class="sq-story" aria-live="polite"><b>{escape(story.preset.title)}</b> '
            f'<span class="sq-progress" aria-hidden="true">{progress}</span> '
            f"step {story.position} of {story.count}{answer}{ahead}</div>"
        )
        button = self._stories.get(story.preset.name)
        if button is not None:
            button.description = f"{_numbered(story.preset.name)}: {story.position} of {story.count}"
            button.add_class("sq-on")
        self._next.layout.display = "none" if story.done else None
        self._leave.button_style = "primary" if story.done else ""

    def _show_code(self, line: str, *, meaning: str = "", refusal: str = "") -> None:
        """`line` is shown as code; what it does, or why it was refused, as a sentence."""
        shown = f'<p class="sq-refused" role="alert">{escape(refusal)}</p>' if refusal else ""
        shown += f'<p class="sq-meaning">{escape(meaning)}</p>' if meaning else ""
        code = breakable(line) or "# Each click shows its line of Python here."
        self._code.value = f'<pre class="sq-code" aria-label="the code of the last click">{code}</pre>{shown}'


def _numbered(name: str) -> str:
    """The text of a story's button: its place in their order, and its label."""
    return f"{list(STORIES).index(name) + 1} {STORIES[name].label}"


def _html(name: str) -> ipywidgets.HTML:
    """A text with a class of its own."""
    return ipywidgets.HTML(_dom_classes=(name,))
