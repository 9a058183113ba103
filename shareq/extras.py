"""The command that installs an optional dependency."""

from __future__ import annotations

from pathlib import Path

_CHECKOUT = Path(__file__).parents[1]


def install_command(extra: str, checkout: Path = _CHECKOUT) -> str:
    """The shell command that installs an extra of this package: from `checkout` where that is one, else by name."""
    if (checkout / "pyproject.toml").is_file():
        return f"pip install -e '{checkout}[{extra}]'"
    return f"pip install 'shareq[{extra}]'"
