"""Applications that interrupt clients: IPython's cells and %timeit, timeouts of pytest, signal handlers that exit.

The signal arrives at a fixed time of the virtual clock, in the middle of an event of the cluster.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from shareq import Cluster, Producer, ShareConsumer

MOMENTS_MS = (0, 1, 5, 7, 10, 15, 20, 25, 30, 40, 50, 100, 200)
"""A request and its response take 10 ms: some signals arrive while records are in flight or have just arrived."""


class PollingConsumer:
    """A consumer and the messages that its polls returned."""

    def __init__(self) -> None:
        self.cluster = Cluster(brokers=1, latency_ms=5)
        self.cluster.create_topic("t")
        self.cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        address = {"bootstrap.servers": self.cluster.bootstrap_servers}
        self.producer = Producer(address)
        self.consumer = ShareConsumer({**address, "group.id": "g"})
        self.consumer.subscribe(["t"])
        self.seen: tuple[Any, ...] = ()
        self.produced = 0

    def poll(self, timeout: float = 1) -> None:
        self.seen += (self.consumer.poll(timeout),)

    def poll_and_commit(self) -> None:
        self.poll(0)
        self.consumer.commit_sync()

    def values(self) -> list[int]:
        return [int(message.value()) for messages in self.seen for message in messages]

    def send_later(self, number: int, after_ms: int) -> None:
        """Produce records, and raise the signal after `after_ms`."""
        for _ in range(3):
            self.producer.produce("t", str(self.produced))
            self.produced += 1
        self.cluster.loop.at(self.cluster.now_ms + after_ms, lambda: signal.raise_signal(number))

    def check(self) -> None:
        """Check that every record is returned once."""
        self.producer.flush()
        for _ in range(60):
            if len(self.values()) >= self.produced:
                break
            self.poll()
        assert sorted(self.values()) == list(range(self.produced))


@pytest.fixture
def bench() -> Iterator[PollingConsumer]:
    bench = PollingConsumer()
    yield bench
    bench.cluster.close()


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    return InteractiveShell(config=Config(HistoryManager={"enabled": False}, InteractiveShell={"xmode": "Minimal"}))


@pytest.mark.parametrize(
    "cell",
    [
        "while True: bench.poll()",
        "while True: bench.producer.poll(1); bench.poll(0.1)",
        "%timeit -n 10000 -r 1 bench.poll()",
        "%%timeit -n 10000 -r 1\nbench.producer.flush()\nbench.poll()",
    ],
)
def test_records_survive_an_interrupted_cell(bench: PollingConsumer, shell: InteractiveShell, cell: str) -> None:
    shell.user_ns["bench"] = bench
    for after_ms in MOMENTS_MS:
        bench.send_later(signal.SIGINT, after_ms)
        result = shell.run_cell(cell)
        assert isinstance(result.error_in_exec, KeyboardInterrupt)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert shell.run_cell("bench.poll(0)").success
    bench.check()


@pytest.fixture
def handle() -> Iterator[Callable[[int, Any], None]]:
    """Sets signal handlers, which are restored after the test."""
    before: dict[int, Any] = {}

    def handle(number: int, handler: Any) -> None:
        before.setdefault(number, signal.getsignal(number))
        signal.signal(number, handler)

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("call", ["poll", "commit_sync", "flush", "advance"])
def test_records_survive_a_handler_that_exits(
    bench: PollingConsumer, handle: Callable[[int, Any], None], call: str
) -> None:
    handle(signal.SIGTERM, lambda *_: sys.exit(3))
    calls: dict[str, Callable[[], object]] = {
        "poll": bench.poll,
        "commit_sync": bench.poll_and_commit,
        "flush": bench.producer.flush,
        "advance": lambda: bench.cluster.advance(50),
    }

    def work() -> None:
        while True:
            calls[call]()
            bench.cluster.advance(1)

    for after_ms in MOMENTS_MS:
        bench.send_later(signal.SIGTERM, after_ms)
        with pytest.raises(SystemExit, match="3"):
            work()
    bench.check()


TIMED_OUT = """
import pytest
from shareq import Cluster, Producer, ShareConsumer

@pytest.fixture(scope="module", params=["virtual", "wall"])
def clients(request):
    with Cluster(brokers=1, clock=request.param) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        address = {"bootstrap.servers": cluster.bootstrap_servers}
        consumer = ShareConsumer({**address, "group.id": "g"})
        consumer.subscribe(["t"])
        with Producer(address) as producer:
            yield producer, consumer

@pytest.mark.timeout(0.5, method="signal")
def test_a_poll_loop_is_killed(clients):
    while True:
        assert not clients[1].poll(0.01)

def test_the_same_clients_go_on(clients):
    producer, consumer = clients
    producer.produce("t", "after")
    assert producer.flush() == 0
    assert [message.value() for message in consumer.poll(60)] == [b"after"]
    assert set(consumer.commit_sync().values()) == {None}
"""


@pytest.mark.long
def test_clients_survive_a_test_that_times_out(tmp_path: Path) -> None:
    """pytest-timeout raises from a handler of SIGALRM; the next test uses the same clients."""
    (tmp_path / "test_timed_out.py").write_text(TIMED_OUT)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert done.stdout.count("Failed: Timeout (>0.5s)") >= 2
    assert "test_the_same_clients_go_on" not in done.stdout.partition("short test summary")[2]
