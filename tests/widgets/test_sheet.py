"""The printed page: its tables are those of the code, and all of it is on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from shareq.cli import main
from shareq.model.configs import GROUP_CONFIGS
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType, RecordState
from shareq_widgets import sheet


@pytest.fixture(scope="module")
def page() -> str:
    return sheet.page()


def texts(page: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)(?:<title>[^<]*</title>)?</text>", page)


def test_each_configuration_of_a_group_is_on_the_page(page: str) -> None:
    shown = texts(page)
    for key, definition in GROUP_CONFIGS.items():
        assert (key in shown) == (key.startswith("share.") and not definition.unused)
    assert "15,000 to 60,000" in shown  # the bounds of the lock duration are those of the brokers


def test_the_next_states_are_those_of_the_transitions() -> None:
    rows = {name: after for name, _, after, _ in sheet._types().rows}
    assert set(rows) == {kind.name for kind in AcknowledgeType}
    assert rows == {
        "ACCEPT": "acknowledged",
        "RELEASE": "available, at the last delivery archived (before, with a dead-letter queue: archiving)",
        "REJECT": "archived (before, with a dead-letter queue: archiving)",
        "RENEW": "acquired",
        "GAP": "archived",
    }


def test_the_epochs_are_terms_of_the_glossary_and_their_errors_those_of_the_protocol() -> None:
    glossary = (Path(__file__).parents[2] / "GLOSSARY.md").read_text()
    terms = re.findall(r"^\| ([^|]* epoch) \|", glossary, re.MULTILINE)
    assert {name for name, _, _ in sheet.EPOCHS} == set(terms)
    assert [error for _, _, error in sheet.EPOCHS if error and error not in Errors.__members__] == []


def test_the_rules_name_configurations_errors_and_a_topic_that_exist() -> None:
    words = {word for rule in sheet.RULES for word in re.findall(r"[\w.]*[a-zA-Z]", rule)}
    keys = {word for word in words if word.startswith("share.")}
    assert len(keys) == 2
    assert keys <= set(GROUP_CONFIGS)
    assert {word for word in words if "_" in word} == {SHARE_STATE_TOPIC, Errors.INVALID_RECORD_STATE.name}


def test_the_run_shows_all_states(page: str) -> None:
    states = [state.name.lower() for state in RecordState if state is not RecordState.ARCHIVING]
    shown = texts(page)
    for state in states:
        assert int(shown[shown.index(state) + 1].partition(" ")[0]) >= 1
    assert {"SPSO 1", "SPEO 11", "accepted", "rejected", "released"} <= set(shown)


def test_no_cell_is_clipped_and_the_columns_end_on_the_page(page: str) -> None:
    assert not [text for text in texts(page) if text.endswith("…")]
    parts = re.findall(
        r'<g transform="translate\(([0-9.]+) ([0-9.]+)\)"><svg [^>]*width="([0-9.]+)" height="([0-9.]+)"', page
    )
    assert len(parts) == 14
    for x, y, width, height in [map(float, part) for part in parts]:
        assert x + width <= sheet.WIDTH - sheet.MARGIN + 1
        assert y + height <= sheet.HEIGHT


def test_equal_pages_every_time(page: str) -> None:
    assert sheet.page() == page


def test_the_command_writes_the_page(tmp_path: Path, page: str) -> None:
    done = CliRunner().invoke(main, ["sheet", str(tmp_path / "page.svg")])
    assert (done.exit_code, (tmp_path / "page.svg").read_text(encoding="utf-8")) == (0, page)
    assert sheet.save(tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("page.pdf", "path must end in one of .svg, .png", id="another suffix"),
        pytest.param("absent/page.svg", "No such file or directory", id="a folder that does not exist"),
    ],
)
def test_a_file_that_cannot_be_written(tmp_path: Path, name: str, reason: str) -> None:
    done = CliRunner().invoke(main, ["sheet", str(tmp_path / name)])
    assert done.exit_code == 1
    assert reason in done.output
    assert not list(tmp_path.iterdir())
