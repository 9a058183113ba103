"""A call at an address where no Kafka is says so at the first refusal, with the time until which it tries."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator

import pytest

from shareq import Admin, Cluster, KafkaException
from shareq.broker.backend import runtime
from shareq.client.patience import SILENT_MS, await_sign


class Clock:
    """Time jumps to the moment at which the condition holds: `facts` by the time from which they are true."""

    def __init__(self, **facts: int) -> None:
        self.now_ms = 0
        self._facts = facts

    def holds(self, fact: str) -> bool:
        return self.now_ms >= self._facts.get(fact, 1 << 40)

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        end = self.now_ms + int(timeout_ms or 0)
        for at in sorted(time for time in (self.now_ms, *self._facts.values(), end) if self.now_ms <= time <= end):
            self.now_ms = at
            if until():
                return True
        return False


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address whose port is bound, and where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


def waited(clock: Clock) -> None:
    def refusal() -> str:
        return "connection refused" if clock.holds("refused") else ""

    await_sign(clock, lambda: clock.holds("heard"), refusal, address="a:1", limit_s=60)


def test_the_first_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(refused=40, heard=500)
    waited(clock)
    assert clock.now_ms == 40
    [line] = caplog.messages
    assert line.startswith("connection refused; trying until ")
    assert line.endswith(" (60 s)")


def test_silence_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(refused=SILENT_MS + 1)
    waited(clock)
    assert clock.now_ms == SILENT_MS
    assert caplog.messages[0].startswith("a:1 does not answer; trying until ")


def test_nothing_is_logged_of_a_cluster_that_answers(caplog: pytest.LogCaptureFixture) -> None:
    waited(Clock(heard=20))
    assert caplog.messages == []


def test_an_admin_logs_a_wrong_address_once(nowhere: str, caplog: pytest.LogCaptureFixture) -> None:
    with Admin({"bootstrap.servers": nowhere}) as admin:
        for _ in range(2):
            with pytest.raises(KafkaException, match="connection refused"):
                admin.list_topics(timeout=0.2)
    [line] = [record for record in caplog.records if record.name == "shareq.client"]
    assert line.levelno == logging.WARNING
    assert line.getMessage().startswith(f"broker at {nowhere} cannot be reached: connection refused; trying until ")


def test_a_backend_logs_a_wrong_address(
    nowhere: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "START_S", 0.2)
    with pytest.raises(KafkaException, match=r"not ready within 0\.2 s"):
        Cluster(backend=nowhere)
    assert f"broker at {nowhere} cannot be reached: connection refused; trying until " in caplog.text
