"""The table of exceptions names what there is."""

from __future__ import annotations

import pytest

from tests.pairings import test_acknowledging, test_groups, test_misuse, test_progress, test_records
from tests.pairings.exceptions import EXCEPTIONS
from tests.pairings.scene import CLIENTS


@pytest.mark.parametrize(("scenario", "who"), EXCEPTIONS)
def test_an_exception_is_of_a_scenario_and_of_a_client_or_a_broker(scenario: str, who: str) -> None:
    modules = (test_acknowledging, test_groups, test_misuse, test_progress, test_records)
    assert sum(hasattr(module, scenario) for module in modules) == 1
    assert who in {*CLIENTS, "served", "kafka"}
