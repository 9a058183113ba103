"""A wait for records that are not delivered fails with what explains it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

import shareq
from shareq.kafka import LocalKafka
from tests.backend import serving as module
from tests.backend.serving import Work, serving


def test_the_failure_names_the_offsets_the_leaders_the_members_and_what_the_fetch_waits_for(
    kafka: LocalKafka, fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group = fresh("topic"), fresh("group")
    with ExitStack() as stack:
        process = stack.enter_context(serving(kafka.bootstrap_servers))
        names = (process.address, topic, group)
        work = Work(kafka, *names, stack, libraries=[shareq], processes=[process])
        work.produce(3)
        with work.running():
            work.until_done()
            work.drain()
        work.produced.add((0, 3))
        monkeypatch.setattr(module, "PATIENCE_S", -1)
        with pytest.raises(AssertionError) as failure:
            work.until_done()
    found = str(failure.value)
    for text in (
        "lost: [(0, 3)], held: {}",
        "log 0: start 0, high watermark 3, last stable offset 3",
        f"leaders by {process.address}: [0]",
        f"'shareq ({topic}:0)'",
        "fleet: term",
        f"{group} {topic}-0: waits for",
        "log end 3, next 3, window 3 to 3",
        "partitions [0], errors {}",
        "shard __share_group_state-0: elected True, loaded True",
    ):
        assert text in found, found
