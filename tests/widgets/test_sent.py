"""What a front end is sent: all traits at first, then the changes of the large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq_widgets import strip, views
from shareq_widgets.changes import changed
from shareq_widgets.player import Player
from tests.trace.test_group_history import busy_cluster

Make = Callable[[Any], Player]


class FrontEnd:
    """The traits of a view as a browser has them, from its messages."""

    def __init__(self, view: Player, monkeypatch: pytest.MonkeyPatch) -> None:
        self.traits = view.get_state()
        self.messages: list[set[str]] = []
        monkeypatch.setattr(view, "_send", self.receive)

    def receive(self, message: dict[str, Any], buffers: Any = None) -> None:
        assert not buffers
        state = dict(message["state"])
        self.messages.append(set(state))
        changes = state.pop("changes", {})
        self.traits |= state
        if "snapshot" in changes:
            self.traits["snapshot"] = changed(self.traits["snapshot"], changes["snapshot"])
        if "drawing" in changes:
            self.traits["drawing"] = redrawn(self.traits["drawing"], changes["drawing"])


def redrawn(drawing: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A drawing after a change, as `changed` in js/group_picture.js makes it."""
    known = {element["key"]: element for element in (*drawing["elements"], *change["changed"])}
    keys = [element["key"] for element in drawing["elements"]] if change["keys"] is None else change["keys"]
    common = {name: value for name, value in change.items() if name not in ("changed", "keys")}
    return {**common, "elements": [known[key] for key in keys]}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda source: strip(source, group="g", topic="orders"), id="strip"),
        pytest.param(lambda source: views.group(source, group="g"), id="group"),
        pytest.param(lambda source: views.locks(source, group="g"), id="locks"),
    ],
)
def test_a_move_is_one_message_with_the_changes_of_large_traits(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    view = make(busy_cluster())
    front = FrontEnd(view, monkeypatch)
    for move in (view.back, view.back, view.first, view.step, view.last):
        front.messages.clear()
        move()
        assert len(front.messages) == 1
        assert not front.messages[0] & view.differences.keys()
        assert {name: front.traits[name] for name in view.differences} == {
            name: getattr(view, name) for name in view.differences
        }
    assert view.get_state()["snapshot"] == view.snapshot


def test_a_width_of_the_browser_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    view = views.group(busy_cluster(), group="g")
    front = FrontEnd(view, monkeypatch)
    monkeypatch.setattr(view, "send", lambda _answer: None)
    view._on_message(view, {"do": "width", "value": 480}, [])
    assert (len(front.messages), front.traits["width"], front.traits["drawing"]["width"]) == (1, 480, 480)
    assert front.traits["drawing"] == view.drawing
