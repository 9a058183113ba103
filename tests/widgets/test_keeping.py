"""What the buttons below *save* make: a file, or the state, each with the line of Python that does the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from shareq_widgets import control_room, locks, room_picture, strip
from shareq_widgets.player import Player
from tests.browser.busy import GROUP, TOPIC, busy
from tests.trace.test_group_history import busy_cluster

COPY = "copy 1"


def kept(view: Player, form: str, theme: str = "light") -> tuple[dict[str, Any], list[bytes]]:
    """The message for the browser before its response, and its buffers."""
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    view.send = lambda content, buffers=None: sent.append((content, buffers or []))
    view._on_message(view, {"do": "keep", "value": {"form": form, "theme": theme, "copy": COPY}}, [])
    (content, buffers), (answer, _) = sent
    assert answer.keys() == {"next_ms"}
    assert content["kept"].pop("copy") == COPY
    return content["kept"], buffers


@pytest.mark.parametrize(("suffix", "kind", "begins"), [
    ("png", "image/png", b"\x89PNG"),
    ("svg", "image/svg+xml", b"<svg"),
    ("html", "text/html", b"<!doctype html>"),
])  # fmt: skip
def test_a_file_is_what_its_line_writes(
    suffix: str, kind: str, begins: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = locks(busy_cluster(), group="g")
    kept_as, (content,) = kept(view, suffix)
    file = f"locks-group-g.{suffix}"
    assert kept_as == {"line": f"view.save({file!r})", "file": file, "type": kind}
    assert content.startswith(begins)
    monkeypatch.chdir(tmp_path)
    exec(kept_as["line"], {"view": view})
    assert (tmp_path / file).read_bytes() == content


@pytest.mark.parametrize(("own", "shown", "line"), [
    ("auto", "dark", "view.save('g-orders-0.svg', theme='dark')"),
    ("auto", "light", "view.save('g-orders-0.svg')"),
    ("light", "dark", "view.save('g-orders-0.svg')"),
    ("auto", "dark", "view.save('g-orders-0.html')"),
])  # fmt: skip
def test_a_picture_has_the_colours_of_the_page(
    own: str, shown: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = strip(busy_cluster(), group="g", topic="orders", theme=own)
    kept_as, (content,) = kept(view, "html" if "html" in line else "svg", shown)
    assert kept_as["line"] == line
    monkeypatch.chdir(tmp_path)
    exec(line, {"view": view})
    assert next(tmp_path.iterdir()).read_bytes() == content


def test_the_line_of_a_view_shows_its_moment_again() -> None:
    view = strip(busy_cluster(), group="g", topic="orders")
    view.seek_time(view.snapshot["now_ms"] - 700)
    view.select("record:orders-0:3")
    shown = view.snapshot
    kept_as, _ = kept(view, "state")
    view.last()
    view.select("")
    exec(kept_as["line"], {"view": view})
    assert (view.snapshot, view.selection) == (shown, "record:orders-0:3")
    view.last()
    assert kept(view, "state")[0]["line"].startswith("view.last();")


def test_a_room_is_kept_as_a_whole_also_in_a_story() -> None:
    room = control_room(busy(), group=GROUP, topic=TOPIC, animate=False)
    for _ in range(2):
        timeline = room.screen.timeline
        timeline.back()
        timeline.select(f"record:{TOPIC}-0:3")
        room.screen.slots["left"].shown = "record"
        state = room.state
        line = kept(timeline, "state")[0]["line"]
        kept_as, (picture,) = kept(timeline, "svg")
        assert kept_as["line"] == f"room.save({kept_as['file']!r})"
        width = room_picture.widths(room_picture.SCREEN)["left"]
        assert room.screen.shown["left"].to_svg(width=width) in picture.decode()
        room.state = {"time_ms": None, "selection": "", "views": {"left": "locks"}}
        exec(line, {"room": room})
        assert room.state == state
        room.begin_story("poison").next()
    room.close()


def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shareq_widgets.rasterizer.PACKAGES", ("no_such_package",))
    kept_as, contents = kept(locks(busy_cluster(), group="g"), "png")
    assert "pip install" in kept_as["refusal"]
    assert (set(kept_as), contents) == ({"refusal"}, [])


def test_a_picture_is_made_in_any_thread_of_a_kernel() -> None:
    view = locks(busy_cluster(), group="g")
    first = kept(view, "png")
    with ThreadPoolExecutor(1) as other:
        assert other.submit(kept, view, "png").result() == first


def test_an_unknown_form_is_refused() -> None:
    view = locks(busy_cluster(), group="g")
    with pytest.raises(ValueError, match="form must be one of png, svg, html, state, not 'pdf'"):
        view._command("keep", {"form": "pdf", "theme": "light", "copy": COPY})
