"""The table of exceptions refers to existing scenarios, clients and brokers."""

from __future__ import annotations

import pytest

from tests.pairings import test_acknowledging, test_groups, test_misuse, test_progress, test_records
from tests.pairings.exceptions import EXCEPTIONS
from tests.pairings.stage import CLIENTS


@pytest.mark.parametrize(("scenario", "where"), EXCEPTIONS)
def test_an_exception_names_a_scenario_and_a_client_or_broker(scenario: str, where: str) -> None:
    modules = (test_acknowledging, test_groups, test_misuse, test_progress, test_records)
    assert sum(hasattr(module, scenario) for module in modules) == 1
    assert where in {*CLIENTS, "served", "kafka"}
