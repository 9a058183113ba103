"""The kernel's part of the pictures that a page writes into its notebook after a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq import Cluster
from shareq.trace.views.themed_svg import themed
from shareq_widgets import control_room, stored, strip
from shareq_widgets.refresh import Refresh
from tests.browser.busy import GROUP, TOPIC, busy

BOARD = "moments of the recording"


@pytest.fixture
def cluster() -> Cluster:
    return busy()


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[Any]]]:
    """A function that asks as a page does: the pictures of the response."""
    stored._refresh.cache_clear()
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(Refresh, "send", lambda _widget, content: sent.append(content))

    def asked(*wishes: list[Any]) -> list[list[Any]]:
        stored._refresh()._handle_custom_msg({"wishes": wishes}, [])
        return [list(made) for made in sent.pop()["pictures"]]

    return asked


def test_a_view_that_follows_the_end_has_its_storyboard(cluster: Cluster, ask: Callable[..., Any]) -> None:
    """Also while it plays what has happened since it was displayed."""
    view = strip(cluster, group=GROUP, topic=TOPIC)
    view._repr_mimebundle_()
    cluster.advance(60_000)
    view.tick()
    assert view.live
    assert not view._playback.position.end
    [[model_id, whole, pictures]] = ask([view.model_id, False])
    assert (model_id, whole) == (view.model_id, False)
    assert BOARD in pictures["image/svg+xml"]


def test_a_page_that_stores_pictures_gets_them_when_it_asks(cluster: Cluster, ask: Callable[..., Any]) -> None:
    """A view does not wait for its pictures then. Without a page, as where a program runs the notebook, it has them."""
    view = strip(cluster, group=GROUP, topic=TOPIC)
    alone = stored.bundle(view)
    stored._refresh()._handle_custom_msg({"stores": True}, [])
    assert alone.keys() == {"text/plain", "image/svg+xml", "image/png"}
    assert stored.bundle(view) == {"text/plain": repr(view)}
    [[_, _, pictures]] = ask([view.model_id, False])
    assert BOARD in pictures["image/svg+xml"]


def test_a_room_has_the_pictures_of_its_recording(cluster: Cluster, ask: Callable[..., Any]) -> None:
    room = control_room(cluster, group=GROUP, topic=TOPIC)
    room._repr_mimebundle_()
    assert ask([room.model_id, False]) == [[room.model_id, False, stored.pictures(room.picture(whole=True))]]
    room.close()


def test_a_moved_view_has_its_moment_and_the_tagged_cell_the_recording(
    cluster: Cluster, ask: Callable[..., Any]
) -> None:
    view = strip(cluster, group=GROUP, topic=TOPIC)
    view._repr_mimebundle_()
    view.first()
    moment, whole = ask([view.model_id, False], [view.model_id, True])
    assert moment[2]["image/svg+xml"] == themed(view.to_svg())
    assert BOARD in whole[2]["image/svg+xml"]


def test_pictures_are_made_once_for_what_has_not_changed(
    cluster: Cluster, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    png = stored.png
    view = strip(cluster, group=GROUP, topic=TOPIC)
    view._repr_mimebundle_()

    def counted(svg: str, *, sharp: bool = False) -> str:
        made.append(svg)
        return png(svg, sharp=sharp)

    monkeypatch.setattr(stored, "png", counted)
    assert ask([view.model_id, False]) == ask([view.model_id, False])
    assert len(made) == 1
    view.first()
    ask([view.model_id, False])
    assert len(made) == 2


def test_a_view_of_an_earlier_kernel_keeps_its_picture(ask: Callable[..., Any]) -> None:
    assert ask(["of another kernel", False]) == []


def test_the_page_has_a_response_where_a_view_cannot_be_drawn(
    cluster: Cluster, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would wait for good; the error is in the kernel's log."""
    view, other = (strip(cluster, group=GROUP, topic=TOPIC) for _ in range(2))
    for each in (view, other):
        each._repr_mimebundle_()
    monkeypatch.setattr(view, "picture", lambda *, whole: 1 / 0)
    assert [made[0] for made in ask([other.model_id, False], [view.model_id, False])] == [other.model_id]
