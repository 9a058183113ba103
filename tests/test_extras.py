"""What an installation and a checkout are told to run for an optional dependency."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from shareq.extras import install_command

ROOT = Path(__file__).parents[1]


def test_an_installed_package_names_its_extra(tmp_path: Path) -> None:
    assert install_command("kafka", tmp_path) == "pip install 'shareq[kafka]'"


def test_a_checkout_is_installed_from_its_folder() -> None:
    assert install_command("spark") == f"pip install -e '{ROOT}[spark]'"


@pytest.mark.parametrize("extra", ["kafka", "spark"])
def test_the_extra_exists(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
