"""The number of cases of random tests: few in the first ring, more in `make test-all`, many in `make deep`."""

from __future__ import annotations

import os

from hypothesis import settings

DEEP = 20
"""`make deep` tries this many times the cases of `make test-all`."""


def cases(few: int, more: int, variable: str = "") -> int:
    """The number of runs or steps of a random test in this session. `variable`: an environment variable that sets it.

    In the rings the seed is fixed, so more cases there would be the same ones again with every change.
    """
    chosen = os.environ.get(variable, "")
    if chosen:
        return int(chosen)
    return {"dev": few, "first": few, "all": more, "deep": DEEP * more}[settings.get_current_profile_name()]
