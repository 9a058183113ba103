"""A program that ends with views open ends at once, without a message."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from shareq import Cluster
from shareq_widgets import control_room, strip
cluster = Cluster(clock={clock!r})
cluster.create_topic("orders")
cluster.configure_group("payments", {{"share.auto.offset.reset": "earliest"}})
room = control_room(cluster, group="payments", topic="orders")
shown = strip(cluster, group="payments", topic="orders")
room.panel.steering.do("add consumer", "accept")
room.panel.steering.do("produce", 5)
{more}
"""


@pytest.mark.parametrize("clock", ["virtual", "wall"])
@pytest.mark.parametrize("more", ["", "room.begin_story('crashed consumer')"], ids=["room", "story"])
def test_a_program_may_end_with_a_room_open(clock: str, more: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(clock=clock, more=more)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
