"""A slow backend: a tap in front of an Apache Kafka, which sends the answers on later."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest

from shareq.kafka import LocalKafka
from shareq.proxy import link, tap
from shareq.proxy.stream import Buffer


class _LateSide(link.Side):
    """A side that sends what goes to the client `late_by_s` after it has arrived, in its order."""

    late_by_s: ClassVar[float] = 0.0
    delayed: ClassVar[int] = 0
    """How often an answer, or a part of one, was sent late."""

    def __init__(self, of: link.Link) -> None:
        super().__init__(of)
        self._late: deque[bytes] = deque()

    def write(self, data: Buffer) -> None:
        if self is self._link.client and (self.late_by_s or self._late):
            self._late.append(bytes(data))
            asyncio.get_running_loop().call_later(self.late_by_s, self._send_next)
        else:
            super().write(data)

    def _send_next(self) -> None:
        """Send the oldest: the timer of a newer one may be earlier."""
        _LateSide.delayed += 1
        super().write(self._late.popleft())


class LateAnswers:
    """`address`: where the Kafka is slow."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def delayed(self) -> int:
        return _LateSide.delayed

    @contextmanager
    def late_by(self, seconds: float) -> Iterator[None]:
        """Keep back each answer for this time."""
        _LateSide.late_by_s = seconds
        try:
            yield
        finally:
            _LateSide.late_by_s = 0.0


@contextmanager
def late_answers(kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[LateAnswers]:
    monkeypatch.setattr(link, "Side", _LateSide)
    monkeypatch.setattr(_LateSide, "delayed", 0)
    with tap(kafka.bootstrap_servers) as opened:
        yield LateAnswers(opened.bootstrap_servers)
        assert opened.failures == []
