"""The server under attack, in a process of its own with a bounded address space: `python -m tests.attack.target`."""

from __future__ import annotations

import resource
import sys

from shareq import Cluster
from shareq.wire.server import Server

MOST_ADDRESSES = 6 << 30
"""Above this an allocation fails, so that a successful attack does not take the machine along."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    with Cluster(brokers=1, seed=1, clock="wall", journal=False) as cluster, Server(cluster) as server:
        cluster.create_topic("orders", 10)
        print(server.ports[0], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
