"""`race(...)`: the same work done by a consumer group and a share group, with the work and the workers as sliders."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

import ipywidgets

from shareq.model.printable import escape
from shareq.sim.race import BOUNDS, RaceSetting
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq_widgets import stored
from shareq_widgets.inputs import on_change
from shareq_widgets.labels import labelled
from shareq_widgets.look import THEMES
from shareq_widgets.pictures import race as picture
from shareq_widgets.svg import svg_of, to_svg

WIDTHS: Final = (380, 560, 860, 1180)
"""Widths of the drawings, px. The style shows the widest one that fits its place, as wide as the place."""
WIDE: Final = WIDTHS[2]
"""The width of a static picture."""
FRAMES: Final = 120
"""Steps of a replay."""
FRAME_MS: Final = 50

SLIDERS: Final = {
    "workers": "workers",
    "partitions": "partitions",
    "slow_share": "slow records",
    "slow_factor": "times as slow",
}
"""The fields that have sliders, and their names."""


@used_by_one_thread
class Race(ipywidgets.VBox):
    """The race of one `setting`, with sliders, a replay and the result in words. Create one with `race(...)`.

    `setting` may be set. `shown`: the share of the time that is shown, 0 to 1.
    """

    def __init__(self, setting: RaceSetting, theme: str = "auto") -> None:
        """ValueError for an unknown theme."""
        if theme != "auto" and theme not in THEMES:
            raise ValueError(f"theme must be one of auto, {', '.join(THEMES)}, not {theme!r}")
        self._theme = theme
        self._setting = setting
        self._content = picture.content(setting)
        self._shown = 1.0
        self._updating = False
        self._html = ipywidgets.HTML()
        self._sliders = {name: _slider(name) for name in SLIDERS}
        self._play = ipywidgets.Play(min=0, max=FRAMES, value=FRAMES, interval=FRAME_MS, show_repeat=False)
        self._time = ipywidgets.IntSlider(min=0, max=FRAMES, value=FRAMES, readout=False, description="time")
        ipywidgets.jslink((self._play, "value"), (self._time, "value"))
        for slider in self._sliders.values():
            on_change(slider, self._turned)
        on_change(self._time, self._moved)
        grid = ipywidgets.Box(list(self._sliders.values()), layout={"flex_flow": "row wrap"})
        moves = ipywidgets.Box([self._play, self._time], layout={"flex_flow": "row wrap"})
        super().__init__()
        self.children = (grid, moves, self._html, labelled(self))
        self.add_class("sq-race")
        self.setting = setting

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def setting(self) -> RaceSetting:
        """The work and the workers."""
        return self._setting

    @setting.setter
    def setting(self, setting: RaceSetting) -> None:
        self._setting = setting
        self._content = picture.content(setting)
        self._updating = True
        try:
            for name, slider in self._sliders.items():
                slider.value = getattr(setting, name)
        finally:
            self._updating = False
        self.shown = 1.0

    @property
    def content(self) -> picture.RaceContent:
        """What the picture shows."""
        return self._content._replace(now_ms=round(self._shown * self._content.end_ms))

    @property
    def shown(self) -> float:
        """The share of the time that is shown."""
        return self._shown

    @shown.setter
    def shown(self, share: float) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"shown={share!r}: must be a number in 0..1")
        self._shown = share
        self._updating = True
        try:
            self._time.value = self._play.value = round(share * FRAMES)
        finally:
            self._updating = False
        self._html.value = self._markup()

    def _turned(self, _change: Any) -> None:
        if not self._updating:
            turned = {name: slider.value for name, slider in self._sliders.items()}
            self.setting = replace(self._setting, **turned)

    def _moved(self, change: Any) -> None:
        if not self._updating:
            self._shown = change["new"] / FRAMES
            self._html.value = self._markup()

    # ---- forms -------------------------------------------------------------------------------------------------------

    def _markup(self) -> str:
        """The drawing at several widths, in colours that follow the notebook's theme."""
        colours = {name: f"var(--sq-{name})" for name in THEMES["light"]}
        if self._theme != "auto":
            colours = THEMES[self._theme]
        pictures = {width: svg_of(picture.draw(self.content, width), colours) for width in WIDTHS}
        drawn = "".join(f'<div class="sq-race-{width}">{svg}</div>' for width, svg in pictures.items())
        words = escape("\n".join(picture.sentences(self.content)))
        return f'<style>{STYLE}</style><div class="sq-race-picture">{drawn}<p class="sq-race-text">{words}</p></div>'

    def to_svg(self, theme: str = "light", width: int = WIDE) -> str:
        """The shown moment as a self-contained SVG picture, `width` px wide."""
        return to_svg(picture.draw(self.content, width), theme=theme)

    def picture(self, *, whole: bool = False) -> str:
        """What a notebook stores: the shown moment, or the end of the race."""
        content = self._content._replace(now_ms=self._content.end_ms) if whole else self.content
        return to_svg(picture.draw(content, WIDE))

    def __repr__(self) -> str:
        return "\n".join(["Race", *picture.sentences(self.content)])

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live widget, with pictures and a text for readers without widgets."""
        return {**(super()._repr_mimebundle_(**kwargs) or {}), **stored.bundle(self)}


def race(*, theme: str = "auto", **setting: Any) -> Race:
    """The same work done by a consumer group and a share group, side by side.

    `setting`: the fields of `RaceSetting`, such as `workers`, `partitions`, `slow_share` and `slow_factor`, which have
    sliders, `records`, `work_ms`, `poll_records`, `round_trip_ms` and `seed`. ConfigException names a bad one.
    """
    known = [field.name for field in fields(RaceSetting)]
    for name in setting:
        if name not in known:
            raise TypeError(f"race() got an unexpected keyword argument {name!r}")
    return Race(RaceSetting(**setting), theme)


def _slider(name: str) -> Any:
    low, high = BOUNDS[name]
    style = {"description_width": "max-content"}
    more: dict[str, Any] = {"description": SLIDERS[name], "continuous_update": False, "style": style}
    if name == "slow_share":
        return ipywidgets.FloatSlider(min=low, max=high, step=0.01, readout_format=".0%", **more)
    return ipywidgets.IntSlider(min=int(low), max=int(high), **more)


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--sq-{name}:{colour};" for name, colour in colours.items())


def _from(width: int, following: int | None) -> str:
    """The rule that hides a drawing in a place that is too narrow for it, or wide enough for the following one."""
    hidden = f"{{.sq-race-{width}{{display:none}}}}"
    narrower = f"@container(max-width:{width - 0.02}px){hidden}" if width > WIDTHS[0] else ""
    return narrower + (f"@container(min-width:{following}px){hidden}" if following else "")


STYLE: Final = (
    ".sq-race-picture{container-type:inline-size;min-width:320px}"
    f".sq-race-picture{{{_variables(THEMES['light'])}}}"
    f"body[data-jp-theme-light=false] .sq-race-picture{{{_variables(THEMES['dark'])}}}"
    "@media(prefers-color-scheme:dark){body:not([data-jp-theme-light]) .sq-race-picture"
    f"{{{_variables(THEMES['dark'])}}}}}"
    "[class^=sq-race-] svg{display:block;width:100%}"
    f"{''.join(_from(width, following) for width, following in zip(WIDTHS, (*WIDTHS[1:], None), strict=True))}"
    ".sq-race-text{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);"
    "white-space:pre-line}"
)
"""The colours by theme, and the choice of the drawing by width. The text is for screen readers."""
