"""`make attack`: each attack against a server of its own, beside a client with one request at a time. With --secured
the server has TLS and SASL, and its clients have logged in.

Prints one table: the client's p99 and longest wait during the attack, the server's peak memory above that at the start,
and the time after the attack until the client is served at once again. Fails above LONGEST_WAIT_MS, MOST_RECOVERY_MS or
MOST_MEMORY_MB, or above the limit of P99_MS. The figures depend on the machine; what the ordinary tests count (work,
objects, bytes) does not.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from shareq.log.records import encode_batch
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.wire.admission import SMALL_BYTES
from tests.attack.attacks import ON_CONNECTIONS
from tests.attack.connection import AUTHORITY, Raw
from tests.attack.coordination import ON_COORDINATION
from tests.wire.certificates import Authority

ATTACKS = {**ON_CONNECTIONS, **ON_COORDINATION}

SECURED = "--secured"
LONGEST_WAIT_MS = 1000
MOST_RECOVERY_MS = 1000
MOST_MEMORY_MB = 500
P99_MS = {"100 connections that pipeline and never read": 50}
"""The limits of attacks whose share of the server's time is bounded by turns."""

VERSION_WITH_NAMES = 9
"""A version of Produce that names topics."""

AT_ONCE_MS = 50
PAUSE_S = 0.005
ATTACK_S = 60
"""An attack that takes longer is ended, and has succeeded."""


class Outcome(NamedTuple):
    title: str
    p99_ms: float
    longest_ms: float
    memory_mb: float
    recovery_ms: float
    took_s: float

    @property
    def is_harmless(self) -> bool:
        return (
            self.p99_ms <= P99_MS.get(self.title, LONGEST_WAIT_MS)
            and self.longest_ms <= LONGEST_WAIT_MS
            and self.recovery_ms <= MOST_RECOVERY_MS
            and self.memory_mb <= MOST_MEMORY_MB
            and self.took_s < ATTACK_S
        )


LARGE_EVERY = 10
"""Every tenth request of the client is larger than those that are never held back."""


class Bystander(threading.Thread):
    """A client with one request at a time; `waits_ms`: (time of the request, how long its response took)."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.waits_ms: list[tuple[float, float]] = []
        self.stopped = threading.Event()
        self._raw = Raw(port)

    def run(self) -> None:
        records = ProduceRequest.Partition(index=0, records=encode_batch([(None, bytes(2 * SMALL_BYTES), (), 0)]))
        large = ProduceRequest(topics=(ProduceRequest.Topic(name="nowhere", partitions=(records,)),))
        with self._raw:
            for number in count():
                if self.stopped.wait(PAUSE_S):
                    break
                began = time.perf_counter()
                if number % LARGE_EVERY:
                    self._raw.ask(MetadataRequest(topics=()))
                else:
                    self._raw.ask(large, VERSION_WITH_NAMES)
                self.waits_ms.append((began, (time.perf_counter() - began) * 1000))


@contextmanager
def served(files: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The process id and the port of a server; `files`: its certificate and key."""
    command = [sys.executable, "-m", "tests.attack.target", *files]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.pid, int(process.stdout.readline())
            process.stdin.close()
            process.wait(30)
        finally:
            process.kill()


def peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def suffered(title: str, files: Sequence[str]) -> Outcome:
    with served(files) as (pid, port):
        bystander = Bystander(port)
        bystander.start()
        time.sleep(0.5)
        before_mb, began = peak_mb(pid), time.perf_counter()
        attacker = multiprocessing.get_context("spawn").Process(target=ATTACKS[title], args=(port,))
        attacker.start()
        attacker.join(ATTACK_S)
        attacker.kill()
        attacker.join()
        ended = time.perf_counter()
        deadline = ended + ATTACK_S
        while not any(at > ended and ms < AT_ONCE_MS for at, ms in list(bystander.waits_ms)):
            if time.perf_counter() > deadline or not bystander.is_alive():
                break
            time.sleep(PAUSE_S)
        recovered = time.perf_counter()
        memory_mb = peak_mb(pid) - before_mb
        bystander.stopped.set()
        bystander.join(ATTACK_S)
        waits = sorted(ms for at, ms in bystander.waits_ms if began <= at <= ended) or [ATTACK_S * 1000.0]
        p99 = waits[min(len(waits) - 1, len(waits) * 99 // 100)]
        return Outcome(title, p99, waits[-1], memory_mb, (recovered - ended) * 1000, ended - began)


def main() -> int:
    words = sys.argv[1:]
    with TemporaryDirectory() as folder:
        files: Sequence[str] = ()
        if SECURED in words:
            words.remove(SECURED)
            authority = Authority(Path(folder), "good")
            issued = authority.issue("127.0.0.1")
            files = issued.cert, issued.key
            os.environ[AUTHORITY] = authority.file
        return attack([title for title in ATTACKS if all(word in title for word in words)], files)


def attack(wanted: Sequence[str], files: Sequence[str]) -> int:
    print(f"{'attack':48} {'p99 ms':>8} {'longest':>8} {'peak MB':>8} {'recovery ms':>12} {'took s':>7}")
    outcomes = []
    for title in wanted:
        outcomes.append(found := suffered(title, files))
        row = f"{found.title:48} {found.p99_ms:8.1f} {found.longest_ms:8.1f} {found.memory_mb:8.1f}"
        print(
            f"{row} {found.recovery_ms:12.1f} {found.took_s:7.1f}{'' if found.is_harmless else '  <- harm'}", flush=True
        )
    return 0 if all(outcome.is_harmless for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
