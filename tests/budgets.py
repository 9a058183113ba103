"""The number of cases of random tests: few during development, more in CI, many in `make deep`."""

from __future__ import annotations

import os

from hypothesis import settings

DEEP = 20
"""`make deep` tries this many times the cases of CI."""


def cases(dev: int, ci: int, variable: str = "") -> int:
    """The number of runs or steps of a random test in this session. `variable`: an environment variable that sets it.

    In CI the seed is fixed, so more cases there would be the same ones again with every change.
    """
    chosen = os.environ.get(variable, "")
    if chosen:
        return int(chosen)
    return {"dev": dev, "ci": ci, "deep": DEEP * ci}[settings.get_current_profile_name()]
