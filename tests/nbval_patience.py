"""A plugin for nbval, which gives a kernel five seconds to hand over what a cell has printed: here it has a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.polling import PATIENCE_S

if TYPE_CHECKING:
    import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        assert vars(item)["output_timeout"]  # else nbval calls it otherwise by now
        vars(item)["output_timeout"] = PATIENCE_S
