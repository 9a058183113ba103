"""A process with several share consumers of confluent-kafka, each in its own thread.

    python -m tests.bench.wire_team BOOTSTRAP_SERVERS TOPIC GROUP CONSUMERS

Commands are lines on the standard input:

    run     reset the counts and poll from now on; records are dropped
    time    the same, and record the latency of each record, whose value begins with its send time
    hold    stop polling; prints an empty line when no consumer polls any more
    report  print as JSON the number of records, the time of the last one, and the latencies in seconds

Times are of the monotonic clock that all processes of a machine share. The process ends at the end of the input.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

POLL_S = 0.2
SENT = struct.Struct(">d")


class Team:
    """`size` consumers of one group. They join immediately, and poll while the gate is open."""

    def __init__(self, address: str, topic: str, group: str, size: int) -> None:
        self._address, self._topic, self._group = address, topic, group
        self._gate = threading.Event()
        self._ended = False
        self._timed = False
        self._parked = threading.Semaphore(0)
        self._counts = [0] * size
        self._lasts = [0.0] * size
        self._latencies: list[float] = []
        self._threads = [threading.Thread(target=self._consume, args=(i,)) for i in range(size)]
        self._gate.set()
        for thread in self._threads:
            thread.start()

    def _consume(self, index: int) -> None:
        from confluent_kafka import ShareConsumer

        consumer = ShareConsumer({"bootstrap.servers": self._address, "group.id": self._group, "log_level": 0})
        consumer.subscribe([self._topic])
        while not self._ended:
            if not self._gate.is_set():
                self._parked.release()
                self._gate.wait()
            messages = consumer.poll(POLL_S)
            if messages:
                self._lasts[index] = now = time.monotonic()
                self._counts[index] += len(messages)
                if self._timed:
                    self._latencies += [now - SENT.unpack_from(message.value() or b"")[0] for message in messages]
        consumer.close()

    def run(self, timed: bool) -> None:
        self._timed = timed
        self._counts[:] = [0] * len(self._counts)
        self._latencies.clear()
        self._gate.set()

    def hold(self) -> None:
        self._gate.clear()
        for _ in self._threads:
            self._parked.acquire()

    def report(self) -> dict[str, Any]:
        return {
            "count": sum(self._counts),
            "last": max(self._lasts),
            "latencies": list(self._latencies) if self._timed else [],
        }

    def end(self) -> None:
        self._ended = True
        self._gate.set()
        for thread in self._threads:
            thread.join()


def run_commands(team: Team, lines: Iterable[str]) -> None:
    for line in lines:
        match line.strip():
            case "run":
                team.run(timed=False)
            case "time":
                team.run(timed=True)
            case "hold":
                team.hold()
                print(flush=True)
            case "report":
                print(json.dumps(team.report()), flush=True)
    team.end()


if __name__ == "__main__":
    address, topic, group, size = sys.argv[1:]
    run_commands(Team(address, topic, group, int(size)), sys.stdin)
