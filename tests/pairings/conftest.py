"""What two clients saw is shown side by side where it differs."""

import pytest

pytest.register_assert_rewrite("tests.pairings.scene")
