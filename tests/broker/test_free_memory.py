"""After retention the memory of deleted records goes back to the system, if it is worth the time."""

from __future__ import annotations

import sys

import pytest

from shareq import Cluster
from shareq.broker import free_memory, storage
from shareq.broker.cluster_runtime import CLEAN_INTERVAL_MS
from shareq.log.records import encode_batch


@pytest.mark.parametrize(("kept", "times"), [(24, 0), (8, 1)], ids=["of 8 MiB", "of 24 MiB"])
def test_retention_gives_memory_back(monkeypatch: pytest.MonkeyPatch, kept: int, times: int) -> None:
    given: list[None] = []
    monkeypatch.setattr(storage, "give_back", lambda: given.append(None))
    value = bytes((1 << 20) - 100)
    with Cluster(brokers=1, seed=1) as cluster:
        cluster.create_topic("t", 1, configs={"retention.bytes": str(kept << 20), "segment.bytes": str(1 << 20)})
        for _ in range(32):
            batch = encode_batch([(None, value, (), cluster.now_ms)])
            cluster.log("t", 0).append(batch, now_ms=cluster.now_ms, leader_epoch=0, validate=False)
        cluster.advance(CLEAN_INTERVAL_MS)
    assert len(given) == times


@pytest.mark.parametrize("platform", [sys.platform, "another"])
def test_giving_back_works_everywhere(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    free_memory._malloc_trim.cache_clear()
    free_memory.give_back()
    assert (free_memory._malloc_trim() is None) == (platform == "another")
    free_memory._malloc_trim.cache_clear()
