"""The server under attack, in a process of its own with a bounded address space: `python -m tests.attack.target`.

With the files of a certificate and a key it has TLS and SASL.
"""

from __future__ import annotations

import resource
import sys

from shareq import Cluster
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.server import Server
from tests.wire.certificates import PASSWORD

MOST_ADDRESSES = 6 << 30
"""Above this an allocation fails, so that a successful attack does not take the machine along."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    security = ListenerSecurity()
    if files := sys.argv[1:]:
        security = ListenerSecurity(tls_cert=files[0], tls_key=files[1], users={"alice": PASSWORD})
    with (
        Cluster(brokers=1, seed=1, clock="wall", journal=False) as cluster,
        Server(cluster, security=security) as server,
    ):
        cluster.create_topic("orders", 10)
        print(server.ports[0], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
