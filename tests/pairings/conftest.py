"""Assertions of `stage.py` are rewritten, so that pytest shows the differing observations."""

import pytest

pytest.register_assert_rewrite("tests.pairings.stage")
