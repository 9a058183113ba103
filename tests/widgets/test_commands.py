"""The table of commands: each row is carried out at one place, and what rows name is there.

The check of the JavaScript's types compares the table with what a page and a saved page carry out.
"""

from __future__ import annotations

from collections import Counter

import pytest

from shareq import Cluster
from shareq_widgets import PartitionStrip, locks, strip
from shareq_widgets.commands import COMMANDS, OF_TRAITS
from shareq_widgets.player import Player


@pytest.fixture(scope="module")
def views() -> list[Player]:
    """A strip and a picture."""
    cluster = Cluster()
    return [strip(cluster, group="g", topic="t"), locks(cluster, group="g")]


def test_each_command_is_carried_out_at_one_place(views: list[Player]) -> None:
    own = {name for view in views for name in view._own_commands()}
    places = {name: [row.moves, name in own, row.page, row.strip].count(True) for name, row in COMMANDS.items()}
    assert set(places.values()) == {1}, places
    assert own <= COMMANDS.keys()


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.moves])
def test_the_playback_has_a_method_for_each_move(views: list[Player], name: str) -> None:
    method = getattr(views[0]._playback, f"set_{name}" if COMMANDS[name].trait == name else name)
    assert method.__code__.co_argcount == 1 + bool(COMMANDS[name].value)


def test_each_trait_has_one_command() -> None:
    assert len(OF_TRAITS) == sum(bool(row.trait) for row in COMMANDS.values())
    assert OF_TRAITS.keys() <= set(PartitionStrip.class_trait_names(sync=True))


def test_each_key_has_one_command_and_each_button_a_title() -> None:
    keys = Counter(key for row in COMMANDS.values() for key in row.keys)
    assert keys.most_common(1)[0][1] == 1
    assert [name for name, row in COMMANDS.items() if row.text and not row.title] == []
