"""The commands of the views: one table for Python, for a page, and for a saved page, which has no kernel.

A command comes from a method, from a trait that was set or linked, or from a page: its buttons, keys and timeline. The
page's bundles hold the table (`js/commands.js`); the order of its rows is that of the buttons.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple


class Command(NamedTuple):
    """A row of the table.

    `value`: what the command needs, "" for nothing. `trait`: setting it is the command. `keys`: names as in a browser's
    events, letters in lower case. `text` and `title`: those of a button, and `on` its text while what it began goes on.
    `choices`: the values that a page offers.

    A command that `moves` is carried out by the playback. Of the others, a page itself carries out `page` and `strip`,
    which only the strip has. A saved page does nothing for one that needs a `kernel`.
    """

    value: str = ""
    trait: str = ""
    keys: tuple[str, ...] = ()
    text: str = ""
    on: str = ""
    title: str = ""
    choices: tuple[float, ...] = ()
    moves: bool = False
    kernel: bool = False
    page: bool = False
    strip: bool = False


COMMANDS: Final[dict[str, Command]] = {
    name: Command(**row) for name, row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}
OF_TRAITS: Final = {command.trait: name for name, command in COMMANDS.items() if command.trait}
"""The command of each trait that may be set."""
