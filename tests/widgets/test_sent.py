"""What a front end is sent: all traits at first, then the changes of the large ones."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, RLock, Thread
from typing import Any

import pytest

from shareq.trace import view as view_of
from shareq.trace.analysis import one_thread
from shareq_widgets import control_room, strip, views
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
        self.traits |= {name: changed(self.traits[name], change) for name, change in changes.items()}


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
        assert not front.messages[0] & set(view.large)
        assert {name: front.traits[name] for name in view.large} == {name: getattr(view, name) for name in view.large}
    assert view.get_state()["snapshot"] == view.snapshot


def test_a_width_of_the_browser_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    view = views.group(busy_cluster(), group="g")
    front = FrontEnd(view, monkeypatch)
    monkeypatch.setattr(view, "send", lambda _answer: None)
    view._on_message(view, {"do": "width", "value": 480}, [])
    assert (len(front.messages), front.traits["width"], front.traits["drawing"]["width"]) == (1, 480, 480)
    assert front.traits["drawing"] == view.drawing


# ---- views that no front end shows -----------------------------------------------------------------------------------


def report(view: Player, *, visible: bool, copy: str = "") -> None:
    """What a copy of a view in a page reports."""
    view._on_message(view, {"do": "visible", "value": {"visible": visible, "copy": copy}}, [])


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> tuple[Player, Player, FrontEnd]:
    """Two linked views, and the front end of the second one."""
    cluster = busy_cluster()
    one, two = strip(cluster, group="g", topic="orders"), views.locks(cluster, group="g")
    monkeypatch.setattr(two, "send", lambda _answer: None)
    return one, two, FrontEnd(two, monkeypatch)


def test_a_hidden_view_stands_at_the_moment_and_sends_it_when_it_is_visible_again(
    linked: tuple[Player, Player, FrontEnd],
) -> None:
    one, two, front = linked
    report(two, visible=False)
    one.seek(3)
    assert two.snapshot["now_ms"] == one.snapshot["now_ms"]
    assert front.messages == []
    report(two, visible=True)
    assert len(front.messages) == 1
    assert {name: front.traits[name] for name in two.large} == {name: getattr(two, name) for name in two.large}
    assert front.traits["drawing"]["now_ms"] == one.snapshot["now_ms"]


def test_a_view_is_hidden_when_no_copy_of_it_is_on_a_screen(linked: tuple[Player, Player, FrontEnd]) -> None:
    one, two, front = linked
    for copy in "ab":
        report(two, visible=True, copy=copy)
    report(two, visible=False, copy="a")
    one.seek(3)
    assert len(front.messages) == 1
    report(two, visible=False, copy="b")
    one.seek(2)
    assert len(front.messages) == 1


def test_copies_without_names_are_counted(linked: tuple[Player, Player, FrontEnd]) -> None:
    """A page of an earlier version does not name them."""
    _, two, _ = linked
    hidden = []
    for visible in (True, True, False, True, False, False, False, True):
        two._on_message(two, {"do": "visible", "value": visible}, [])
        hidden.append(two.hidden)
    assert hidden == [False, False, False, False, False, True, True, False]


def test_a_class_of_a_hidden_view_is_sent(linked: tuple[Player, Player, FrontEnd]) -> None:
    _, two, front = linked
    report(two, visible=False)
    two.add_class("wide")
    assert front.messages == [{"_dom_classes"}]


def test_a_hidden_view_is_printed_at_the_moment_of_the_others(linked: tuple[Player, Player, FrontEnd]) -> None:
    one, two, _ = linked
    report(two, visible=False)
    one.seek(0)
    assert "No record is held" in repr(two)


def test_a_command_is_answered_before_hidden_views_follow(
    linked: tuple[Player, Player, FrontEnd], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = linked
    report(two, visible=False)
    at_the_answer: list[int] = []
    monkeypatch.setattr(one, "send", lambda _answer: at_the_answer.append(two.snapshot["now_ms"]))
    end_ms = two.snapshot["now_ms"]
    one._on_message(one, {"do": "seek", "value": 0}, [])
    assert at_the_answer == [end_ms]
    assert two.snapshot["now_ms"] == one.snapshot["now_ms"] < end_ms


# ---- messages of a page in another thread than the cells: a kernel with subshells ------------------------------------


class Watched:
    """A lock that reports when a thread has to wait for it."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.awaited = Event()

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.awaited.set()
            self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched()
    monkeypatch.setattr(one_thread, "LOCK", watched)
    return watched


def amid(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> None:
    """Let the next call of a method of `owner` begin with `call`."""
    method, calls = getattr(owner, name), [call]

    def run(*args: Any, **kwargs: Any) -> Any:
        if calls:
            calls.pop()()
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, run)


def beside(call: Callable[[], object], lock: Watched) -> Thread:
    """Run `call` in another thread, until it has returned or waits for the lock."""

    def run() -> None:
        call()
        lock.awaited.set()

    thread = Thread(target=run)
    thread.start()
    assert lock.awaited.wait(60)
    return thread


BACK = {"content": {"data": {"method": "custom", "content": {"do": "back"}}}, "buffers": []}


def test_a_cell_amid_a_message_of_the_page_loses_no_change(monkeypatch: pytest.MonkeyPatch, lock: Watched) -> None:
    """The traits that the cell has set, and not sent yet, are no longer to be sent when the message is done."""
    view = views.locks(busy_cluster(), group="g")
    monkeypatch.setattr(view, "send", lambda _answer: None)
    front, done, threads = FrontEnd(view, monkeypatch), Event(), []

    def wait_for_the_message() -> None:
        lock.awaited.set()
        assert done.wait(60)

    def draw_until_the_message_is_done() -> None:
        amid(view, "_draw", monkeypatch, wait_for_the_message)
        view.first()

    amid(view, "_send", monkeypatch, lambda: threads.append(beside(draw_until_the_message_is_done, lock)))
    view._handle_msg(BACK)
    done.set()
    threads[0].join()
    assert view.order == 0
    assert {name: front.traits[name] for name in view.large} == {name: getattr(view, name) for name in view.large}


def test_a_trait_that_a_cell_sets_amid_a_message_is_sent(monkeypatch: pytest.MonkeyPatch, lock: Watched) -> None:
    view = views.locks(busy_cluster(), group="g")
    monkeypatch.setattr(view, "send", lambda _answer: None)
    front, threads = FrontEnd(view, monkeypatch), []
    amid(view, "_draw", monkeypatch, lambda: threads.append(beside(lambda: setattr(view, "speed", 5.0), lock)))
    view._handle_msg(BACK)
    threads[0].join()
    assert front.traits["speed"] == view.speed == 5.0


def test_readers_of_one_history_take_turns(monkeypatch: pytest.MonkeyPatch, lock: Watched) -> None:
    """A fold that another thread moves amid a reading would show two moments as one."""
    cluster = busy_cluster()
    reader, other = view_of(cluster, "g", "orders"), view_of(cluster, "g", "orders")
    wanted, threads = reader.snapshot(3), []
    amid(reader, "_shown_marks", monkeypatch, lambda: threads.append(beside(other.snapshot, lock)))
    assert reader.snapshot(3) == wanted
    threads[0].join()


def test_a_click_in_the_panel_waits_for_the_cell(lock: Watched) -> None:
    cluster = busy_cluster()
    room = control_room(cluster, group="g", topic="orders")
    assert room.panel is not None
    button = room.panel._advance
    message = {"content": {"data": {"method": "custom", "content": {"event": "click"}}}, "buffers": []}
    before = cluster.now_ms
    with lock:
        click = beside(lambda: button.comm.handle_msg(message), lock)
        assert cluster.now_ms == before
    click.join()
    assert cluster.now_ms == before + 1000
    room.close()
