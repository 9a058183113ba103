"""The control room as a learner meets it: the words of its lesson, advice that its reader can follow, a silent end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shareq import Cluster, ShareConsumer, observe, tap
from shareq_widgets import views
from shareq_widgets.screen import TITLES
from shareq_widgets.sources import open_cluster

LESSON = Path(__file__).parents[2] / "notebooks" / "12_control_room.ipynb"

ALWAYS_SHOWN = {"Strip", "Timeline"}
"""Views of the room that have no tab."""

PROGRAM = """
from shareq import Cluster
from shareq_widgets import control_room

cluster = Cluster(brokers=3, trace_messages=True)
cluster.create_topic("orders")
room = control_room(cluster, group="payments", topic="orders")
for control, value in (("add consumer", "accept"), ("produce", 3), ("advance", 2_000)):
    room.panel.steering.do(control, value)
"""


def prose() -> list[str]:
    cells = json.loads(LESSON.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def test_the_lesson_lists_the_views_by_their_titles() -> None:
    [cell] = [text for text in prose() if text.startswith("How to read the views")]
    listed = re.findall(r"\*\*(.+?)\*\*", cell)
    headings = [line.lstrip("# ") for text in prose() for line in text.splitlines() if line.startswith("#")]
    assert sorted(listed) == sorted(ALWAYS_SHOWN | set(TITLES.values()) - {"What if"})
    assert "What if" in headings


def test_a_program_that_ends_with_an_open_room_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def joined(address: str) -> ShareConsumer:
    """A member of the group."""
    consumer = ShareConsumer({"bootstrap.servers": address, "group.id": "payments"})
    consumer.subscribe(["orders"])
    consumer.poll(0.5)
    return consumer


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Cluster(brokers=1, clock="wall") as cluster, cluster.serve() as server:
        cluster.create_topic("orders")
        with joined(server.bootstrap_servers):
            yield server.bootstrap_servers


def tapped(address: str) -> Any:
    opened = tap(address)
    opened.follow("payments")
    return opened


def observed(address: str) -> Any:
    return observe(address, "payments")


@pytest.mark.parametrize("source", [tapped, observed])
@pytest.mark.parametrize("view", [views.messages, views.cluster])
def test_only_the_owner_of_a_cluster_is_advised_to_trace_it(
    source: Callable[[str], Any], view: Callable[..., Any], address: str
) -> None:
    with source(address) as opened:
        opened.refresh()
        assert open_cluster(opened) is None, "views take this for `traceable`"
        assert "trace_messages" not in repr(view(opened, group="payments"))
    with Cluster(brokers=1) as own:
        own.create_topic("orders")
        with joined(own.bootstrap_servers):
            assert "trace_messages" in repr(view(own, group="payments"))
