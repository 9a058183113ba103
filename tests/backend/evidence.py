"""What explains records that have not been delivered, from all sides. It is collected only when a test fails."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Protocol

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from shareq import Admin
from tests.backend import witness

LIMIT_S = 5
"""How long each look may take."""


class Witness(Protocol):
    """A process of `witness.py`."""

    @property
    def address(self) -> str: ...
    @property
    def errors(self) -> str: ...
    def signal(self, number: signal.Signals, /) -> None: ...


def collected(
    backend: str,
    servers: str,
    topic: str,
    group: str,
    missing: Iterable[tuple[int, int]],
    *,
    processes: Collection[Witness] = (),
) -> str:
    """All that is known of the partitions of the records that are missing."""
    partitions = sorted({partition for partition, _ in missing})
    return "\n".join(
        [
            *(attempt(f"log {one}", partial(of_log, backend, topic, one)) for one in partitions),
            *(attempt(f"leaders by {one}", partial(of_leaders, one, topic)) for one in servers.split(",")),
            attempt("group", partial(of_group, servers, group, topic, partitions)),
            *(attempt(one.address, partial(testimony, one)) for one in processes),
        ]
    )


def attempt(name: str, look: Callable[[], object]) -> str:
    """What a look finds, or why it finds nothing: one that fails must not hide the others."""
    try:
        return f"{name}: {look()}"
    except Exception as failure:
        return f"{name}: {failure!r}"


def of_log(servers: str, topic: str, partition: int) -> str:
    """The offsets of a log. One replica has it, so that its end is the high watermark."""
    at = TopicPartition(topic, partition)
    client = AdminClient({"bootstrap.servers": servers})

    def offset(spec: OffsetSpec, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> int:
        asked = client.list_offsets({at: spec}, isolation_level=level, request_timeout=LIMIT_S)
        return int(asked[at].result(LIMIT_S).offset)

    start, end = offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())
    stable = offset(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
    return f"start {start}, high watermark {end}, last stable offset {stable}"


def of_group(servers: str, group: str, topic: str, partitions: Iterable[int]) -> str:
    """The members with what is assigned to them, and the start offsets and lags of these partitions."""
    with Admin({"bootstrap.servers": servers}) as admin:
        described = admin.describe_share_groups([group], timeout=LIMIT_S)[group]
        offsets = admin.list_share_group_offsets(group, [(topic, one) for one in partitions], timeout=LIMIT_S)
        members = [(one.member_id, str(one)) for one in described.members]
        return f"{described.state}, {members}, {list(offsets.values())}"


def of_leaders(server: str, topic: str) -> list[int]:
    """The node that leads each partition, in the metadata of one process."""
    with Admin({"bootstrap.servers": server}) as admin:
        described = admin.describe_topics([topic], timeout=LIMIT_S)[topic]
        return [partition.leader for partition in described.partitions]


def testimony(process: Witness) -> str:
    """What a process leads now, and what that waits for."""
    before = len(process.errors)
    process.signal(signal.SIGUSR1)
    deadline = time.monotonic() + LIMIT_S
    while not (said := process.errors[before:]).endswith(witness.END):
        assert time.monotonic() < deadline, f"it says only {said!r}"
    return said
