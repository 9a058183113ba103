"""Mistakes with the address of a Kafka: a port at which nothing listens, and one that accepts connections and never
answers. Part of the table in `mistakes`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

CLOSED = "127.0.0.1:1"
"""An address at which nothing listens."""

CANNOT = "broker at 127.0.0.1:1 cannot be reached: connection refused"
SILENT = "SILENT does not answer; trying until "


@contextmanager
def silent_address() -> Iterator[str]:
    """The address of a socket that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


PYTHON = (
    ("Admin({'bootstrap.servers': CLOSED}).alter_group_configs('payments', {'share.auto.offset.reset': 'earliest'})",
     f"{CANNOT}; trying until "),
    ("consumer({'bootstrap.servers': CLOSED}, ['orders']).poll(60)",
     f"poll is empty: {CANNOT}; the consumer tries again"),
    ("view(CLOSED, 'payments', 'orders')", "127.0.0.1:1 cannot be shown: the cluster does not answer"),
    ("strip(CLOSED, group='payments', topic='orders')", "127.0.0.1:1 cannot be shown: the cluster does not answer"),
    ("Cluster(backend=CLOSED)", f"{CANNOT}; trying until "),
    ("tap(CLOSED)", "no Kafka at 127.0.0.1:1 answers"),
    ("control_room(CLOSED, group='g', topic='t')", "127.0.0.1:1 cannot be shown: the cluster does not answer"),
    ("Admin({'bootstrap.servers': SILENT}).list_topics()", SILENT),
    ("consumer({'bootstrap.servers': SILENT}, ['orders']).poll(60)",
     "poll is empty: SILENT does not answer; the consumer tries until it does"),
    ("silenced.produce('orders', 'a'); silenced.flush()",
     "records wait: SILENT does not answer; the producer tries until it does"),
    ("view(SILENT, 'payments', 'orders')", SILENT),
    ("strip(SILENT, group='payments', topic='orders')", SILENT),
    ("lag_plot(SILENT, 'payments')", SILENT),
    ("Cluster(backend=SILENT)", SILENT),
    ("tap(SILENT)", SILENT),
)  # fmt: skip

THERE = f"--bootstrap-server {CLOSED} --timeout 1000"
COMMANDS = (
    ("show 127.0.0.1:1 --no-browser", f"{CANNOT}; trying until "),
    ("serve --port 0 --backend 127.0.0.1:1", f"{CANNOT}; trying until "),
    (f"observe {CLOSED} payments --once", f"{CLOSED} is unreachable: the cluster does not answer: {CANNOT}"),
    (f"tap {CLOSED}", f"no Kafka at {CLOSED} answers"),
    (f"groups --list {THERE}", CANNOT),
    (f"topics --list {THERE}", CANNOT),
    (f"dlq list {THERE}", CANNOT),
    ("groups --list --bootstrap-server SILENT", SILENT),
    ("show SILENT --no-browser", SILENT),
    ("serve --port 0 --backend SILENT", SILENT),
    ("tap SILENT --port 0", SILENT),
    ("observe SILENT payments --once", SILENT),
    (
        "consume --topic orders --bootstrap-server SILENT",
        "poll is empty: SILENT does not answer; the consumer tries until ",
    ),
    (
        "produce --topic orders --bootstrap-server SILENT",
        "records wait: SILENT does not answer; the producer tries until ",
    ),
)

PATIENT = frozenset(command for command, answer in COMMANDS if " until " in answer)
"""Commands that go on trying after their answer."""
