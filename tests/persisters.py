"""Tests of clusters with each persister: for the `conftest.py` of their folders.

Clusters in these tests have the default persister. A test that is marked `every_persister` runs with each that keeps
states. `SHAREQ_PERSISTERS="compacted-topic ..."` runs all tests of these folders with these ones instead. A test is
marked `without(persister, reason)` if one of them cannot pass it.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from shareq.model.configs import BROKER_CONFIGS
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign

KEEPING = [design.value for design in StateDesign if design is not StateDesign.NONE]
CHOSEN = os.environ.get("SHAREQ_PERSISTERS", "").split()


@pytest.fixture(autouse=True)
def persister(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the default persister of clusters in this test."""
    design = StateDesign(getattr(request, "param", StateDesign.STATE_TOPIC))
    chosen = replace(BROKER_CONFIGS[PERSISTER_CLASS], default=design.class_name)
    monkeypatch.setitem(BROKER_CONFIGS, PERSISTER_CLASS, chosen)
    return design.value


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = CHOSEN or (KEEPING if metafunc.definition.get_closest_marker("every_persister") else [])
    left_out = {mark.args[0] for mark in metafunc.definition.iter_markers("without")}
    if "persister" in metafunc.fixturenames and names:
        metafunc.parametrize("persister", [name for name in names if name not in left_out], indirect=True)
