"""Python for the browser, as the site has it, made once for a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from binder.site.runtime import make_runtime

BUILD = Path(__file__).parents[2] / "build"


@pytest.fixture(scope="session")
def runtime() -> Path:
    """The folder with Pyodide and all wheels. npm and PyPI are asked for what is not in `build` yet."""
    folder = BUILD / "site-parts" / "lite" / "static" / "pyodide"
    make_runtime(folder, BUILD / "site-parts")
    return folder
