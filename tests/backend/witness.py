"""`shareq`, as a program that writes what it leads, and what that waits for, to its standard error at SIGUSR1."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator

from shareq.broker.backend.coordinators import Coordinators
from shareq.broker.backend.log_watch import Watched
from shareq.broker.backend.runtime import BackendRuntime
from shareq.broker.host import Host
from shareq.cli import main
from shareq.leader import ShareLeader
from shareq.persister import StateTopicPersister

END = "this is all that the process leads\n"

MOST_CHARS = 20_000


def testimony() -> str:
    """The present state, read from the objects themselves: the process may be stuck in any way."""
    lines: list[str] = []
    gc.unfreeze()  # `serve` takes what lives long out of the collection
    for one in gc.get_objects():
        describe = _DESCRIBED.get(type(one))
        if describe is not None:
            try:
                lines += describe(one)
            except Exception as failure:  # it changes while it is read
                lines.append(f"{type(one).__name__}: {failure!r}")
    return "\n".join(lines)[:MOST_CHARS]


def _of_process(runtime: BackendRuntime) -> Iterator[str]:
    membership, fleet = runtime.membership, runtime.mirror.fleet
    yield (
        f"process: lease valid {membership.lease.valid}, joining {membership._joining}, "
        f"trouble {membership.trouble!r}, {len(membership._waiting)} calls wait for the lease"
    )
    if fleet is not None:
        yield f"fleet: term {fleet.term}, settled {fleet.settled}, led by {[(p.slot, p.held) for p in fleet.processes]}"


def _of_actor(host: Host) -> Iterator[str]:
    if host.alive and isinstance(host.actor, ShareLeader):
        yield from _of_leader(host.name, host.actor)
    elif host.alive and isinstance(host.actor, StateTopicPersister):
        actor = host.actor
        yield f"persister: requests {list(actor._sent.values())}, lookups {len(actor._lookups)}, {actor._retries} again"


def _of_leader(name: str, leader: ShareLeader) -> Iterator[str]:
    for led in leader._partitions.all():
        share_partition = led.share_partition
        yield (
            f"{name} {led.key.group_id} {led.topic_partition}: waits for {leader.waits_for(led.key)}, "
            f"{share_partition.status}, lock {led.lock}, log end {led.log_end}, "
            f"next {share_partition.next_fetch_offset}, window {share_partition.spso} to {share_partition.window_end} "
            f"{share_partition.runs()}, {led.writes} writes, fetches {len(led.untried)} untried {len(led.tried)} tried"
        )
    for log, before in leader._partitions._draining.items():
        yield f"{name} {log}: its successor waits for {before.writes} writes and {before.letters_out} letters"
    for session in leader._sessions.all():
        partitions = sorted(at.partition for at in session.partitions)
        yield (
            f"{name} session {session.key}: epoch {session.epoch}, partitions {partitions}, errors {session.errors}, "
            f"{len(session.fetches)} fetches, which wait for {sorted(leader.fetch_waits_for(session.key))}"
        )


def _of_shards(coordinators: Coordinators) -> Iterator[str]:
    if not coordinators._ended:
        for shard, led in coordinators._led.items():
            turns = len(led.log._turns)
            yield f"shard {shard}: elected {led.elected}, loaded {led.loaded}, {turns} appends under way"


def _of_watch(watched: Watched) -> Iterator[str]:
    yield f"watch of {watched.topic_partition} from {watched.offset}"


_DESCRIBED: dict[type, Callable[..., Iterator[str]]] = {
    BackendRuntime: _of_process,
    Host: _of_actor,
    Coordinators: _of_shards,
    Watched: _of_watch,
}


def _testify(*_: object) -> None:
    os.write(2, f"{testimony()}\n{END}".encode())


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _testify)
    main()
