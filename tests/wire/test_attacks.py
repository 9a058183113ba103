"""The quick ones of the attacks: what they take of the server's memory, and that another client is served during them.

`make attack` runs all of them, and measures how long the other client waits, too.
"""

from __future__ import annotations

import pytest

from tests.attack.__main__ import AT_ONCE_MS, ATTACK_S, ATTACKS, MOST_MEMORY_MB, suffered

QUICK = [
    "zstd: 960 kB that stand for 30 GB",
    "a header with 4,000,000 tags",
    "200 frames that state 2 GB",
    "3 connections that announce 100 MB each",
]


@pytest.mark.parametrize("title", QUICK)
def test_a_server_survives(title: str) -> None:
    assert title in ATTACKS
    found = suffered(title, ())
    assert found.memory_mb <= MOST_MEMORY_MB
    assert found.longest_ms < ATTACK_S * 1000, "another client is served"
    assert found.recovery_ms < ATTACK_S * 1000, f"and again within {AT_ONCE_MS} ms"
