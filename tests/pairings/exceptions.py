"""Where one of the four pairings may see something else, with the reason: none but these differ."""

from __future__ import annotations

from typing import Any

EXCEPTIONS: dict[tuple[str, str, str], Any] = {}
"""(scenario, client, broker) -> what is seen there."""
