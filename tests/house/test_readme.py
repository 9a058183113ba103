"""What the README says of its blocks, commands and clients; its links and pictures exist. `test_readers_walk` runs the
blocks."""

from __future__ import annotations

import re

import click
import pytest

from readme_tap import PROGRAMS
from shareq.cli import main
from tests.house.readme import BLOCKS, CONNECT, MAKE, OUTPUT, README, ROOT, SERVE
from tests.pairings.other_clients import CLIENTS, OTHER_CLIENTS

LONGEST_PARAGRAPH = 400


def test_first_example_shares_one_partition_between_three_consumers() -> None:
    assert {line[0] for line in OUTPUT.splitlines() if "at offset" in line} == set("ABC")


def test_readme_names_the_block_for_a_second_terminal() -> None:
    between = README.split(SERVE)[1].split(CONNECT)[0]
    assert "In a second terminal" in between


@pytest.mark.parametrize("block", [*BLOCKS, *MAKE], ids=lambda block: block.splitlines()[0][:40])
def test_each_block_says_how_long_it_takes(block: str) -> None:
    before, after = README.split(block)
    near = before.rsplit("\n\n", 2)[-2] + after.split("\n\n", 2)[1]
    assert re.search(r"\bseconds?\b|\bminutes?\b", near)


def test_commands_of_the_table_exist() -> None:
    table = README.split("## Real clients")[1].split("```")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = [word.removeprefix("shareq ").split()[0] for row in rows for word in re.findall(r"`([^`]+)`", row)]
    assert set(named) == set(main.list_commands(click.Context(main)))


def test_the_clients_of_the_table_are_those_that_are_tested() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|(?: ✓ \|){4}$", README, re.MULTILINE)
    assert rows == [(client.name, client.version) for client in OTHER_CLIENTS]


def test_the_programs_in_go_have_the_versions_of_the_table() -> None:
    modules = "".join(module.read_text() for module in CLIENTS.glob("*/go.mod"))
    required = re.findall(r"^require github.com/\w+/(\S+) v(\S+)$", modules, re.MULTILINE)
    assert len(required) == 2
    assert {*required} <= {(client.name.lower(), client.version.split()[0]) for client in OTHER_CLIENTS}


def test_pictures_have_a_text_alternative() -> None:
    pictures = re.findall(r"<img [^>]*>", README)
    assert len(pictures) == 4
    assert all(len(re.findall(r'alt="([^"]{40,})"', picture)) == 1 for picture in pictures)


def test_pictures_of_a_tap_are_small_and_show_holders() -> None:
    for picture in (ROOT / "widgets").glob("tap-*.svg"):
        svg = picture.read_text()
        assert len(svg) < 150_000
        assert [name for name in PROGRAMS if name not in svg] == []
        assert "seen through a tap" in svg


def test_paragraphs_about_real_clients_and_after_are_short() -> None:
    text = re.sub(r"```.*?```", "", README[README.index("## Real clients") :], flags=re.DOTALL)
    paragraphs = [part for part in re.split(r"\n\n+", text) if not part.startswith(("|", "#", "<"))]
    assert [part for part in paragraphs if len(part) > LONGEST_PARAGRAPH] == []


def test_a_table_of_commands_begins_the_part_about_real_clients() -> None:
    assert "| Command | does |" in README.split("## Real clients")[1].split("\n\n")[2]


def test_linked_files_exist() -> None:
    targets = re.findall(r'(?:src|srcset)="([^"]+)"', README) + re.findall(r"\]\(([^)#:]+)\)", README)
    targets += re.findall(r"`((?:notebooks|shareq|tests)/[\w./]+)`", README)
    assert len(targets) > 5
    assert [target for target in targets if not (ROOT / target).exists()] == []
