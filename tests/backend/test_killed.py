"""`shareq serve --backend` is killed or paused, and its backend restarted, while clients work: a confirmed acceptance
is kept.

The ledger is kept by the clients' side alone. SHAREQ_KILLS is the number of kills, and that of pauses and restarts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random

import pytest

from shareq import Admin
from shareq.broker.backend.lease import SESSION_MS
from shareq.kafka import LocalKafka
from tests.backend.serving import RECOVERY_S, Work, serving
from tests.polling import PATIENCE_S

KILLS = int(os.environ.get("SHAREQ_KILLS", "3"))
ROUNDS = int(os.environ.get("SHAREQ_KILLS", "2"))
"""Of pauses and restarts, which take turns."""
BURST = 20
"""Records that are produced between two kills."""


def test_accepted_records_stay_accepted_when_the_process_is_killed(
    kafka: LocalKafka, fresh: Callable[[str], str], seed: int
) -> None:
    kill_and_work(kafka, fresh, seed)


def kill_and_work(kafka: LocalKafka, fresh: Callable[[str], str], seed: int, *options: str) -> None:
    """Kill a process with these options again and again while clients work, then check their ledger."""
    rng = Random(seed)
    took = []
    with serving(kafka.bootstrap_servers, *options) as process, ExitStack() as stack:
        work = Work(kafka, process.address, fresh("topic"), fresh("group"), stack)
        with work.running():
            for _ in range(KILLS):
                work.produce(BURST)
                kill = threading.Timer(rng.uniform(0, 0.5), process.kill)  # in the middle of some request
                kill.start()
                while kill.is_alive():
                    work.produce(rng.randint(1, 3))
                    kill.join(0.05)
                killed, before = time.monotonic(), set(work.produced)
                process.start()
                work.produce(BURST)
                work.until_done()
                took.append(work.ledger.first_delivery(work.produced - before) - killed)
                work.drain()
                work.ledger.judge({0})
    work.ledger.check()
    print(f"{KILLS} kills, {len(work.produced)} records, {len(work.ledger.unknown)} acceptances with an unknown result")
    print(f"the next delivery came after {[round(seconds, 1) for seconds in took]} s")
    assert max(took) < RECOVERY_S


def test_accepted_records_stay_accepted_when_the_process_is_paused_or_the_backend_restarts(
    kafka: LocalKafka, fresh: Callable[[str], str], seed: int
) -> None:
    """Pauses end before and after the lease. A restart of the backend ends no lock."""
    rng = Random(seed)
    with serving(kafka.bootstrap_servers) as process, ExitStack() as stack:
        work = Work(kafka, process.address, fresh("topic"), fresh("group"), stack)
        with work.running():
            for number in range(ROUNDS):
                work.produce(BURST)
                moved: set[int] = set()
                if number % 2:
                    kafka.stop_broker(0)
                    kafka.start_broker(0)
                else:
                    moved.add(0)
                    with process.standing_still(rng.uniform(0, 2 * SESSION_MS / 1000)):
                        work.produce(BURST)
                work.produce(BURST)
                work.until_done()
                work.drain()
                work.ledger.judge(moved)
    work.ledger.check()


def test_the_next_run_finds_its_topics(kafka: LocalKafka, fresh: Callable[[str], str]) -> None:
    """`--topic` creates a topic at the first run only."""
    name = fresh("topic")
    command = [sys.executable, "-m", "shareq.cli", "serve", "--backend", kafka.bootstrap_servers, "--port", "0"]
    for _ in range(2):
        with subprocess.Popen([*command, "--topic", f"{name}:3"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert re.match(r"shareq serves 1 broker of .* at 127\.0\.0\.1:\d+\n", process.stdout.readline())
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        (described,) = admin.describe_topics([name]).values()
    assert len(described.partitions) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["--brokers", "3"], "brokers=3: brokers and network are those of the backend", id="brokers"),
        pytest.param(["--racks", "a"], "racks=['a']: brokers and network are those of the backend", id="racks"),
    ],
)
def test_options_that_a_backend_does_not_allow(arguments: list[str], text: str) -> None:
    command = [sys.executable, "-m", "shareq.cli", "serve", "--backend", "127.0.0.1:1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"Error: {text}\n"
