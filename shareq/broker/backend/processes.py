"""The processes that share the work on a backend, and which of them leads what: one pure function of the members of
their group. BEHAVIOUR.md, section 6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

from shareq.broker.backend.identity import Identity
from shareq.model.image import Addresses

NODES = 1_000_000
"""The node ids of a process are the backend's broker ids + its slot * NODES. Broker ids of a backend are below it."""

NO_SLOT = -1

NO_ADDRESSES: Addresses = MappingProxyType({})
"""Those of a process for each broker of the backend, if the process is not served."""

Listeners = Mapping[str, Addresses]
"""The addresses of a process by the names of its listeners, if it has several."""

NO_LISTENERS: Listeners = MappingProxyType({})


def node_id(slot: int, broker_id: int) -> int:
    """The node of a process for a broker of the backend."""
    return slot * NODES + broker_id


def backend_id(node: int) -> int:
    """The broker of the backend that a node stands for."""
    return node % NODES


class Process(NamedTuple):
    """A member. `id` is that of one start of the process.

    `held`: the workers by whose view it leads partitions until it gets the next assignment; None: it leads none.
    `member`: its id in the group; only a fleet has it. `least_term`: that of the next fleet. `configs`: of its nodes,
    where they are not the default ones.
    """

    id: str
    slot: int = NO_SLOT
    addresses: Addresses = NO_ADDRESSES
    held: tuple[int, ...] | None = None
    identity: Identity | None = None
    member: str = ""
    least_term: int = 0
    listeners: Listeners = NO_LISTENERS
    configs: Mapping[str, str] = MappingProxyType({})

    def encode(self) -> bytes:
        """The metadata of the member."""
        return json.dumps(self.fields()).encode()

    def fields(self) -> dict[str, object]:
        """The process as JSON has it."""
        listeners = {name: _texts(addresses) for name, addresses in self.listeners.items()}
        configs = dict(self.configs)
        return {**self._asdict(), "addresses": _texts(self.addresses), "listeners": listeners, "configs": configs}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Process:
        """The process with these fields, as JSON has them."""
        listeners = MappingProxyType({name: _addresses(found) for name, found in fields["listeners"].items()})
        held = None if fields["held"] is None else tuple(fields["held"])
        identity = None if fields["identity"] is None else Identity(*fields["identity"])
        return cls(
            fields["id"],
            fields["slot"],
            _addresses(fields["addresses"]),
            held,
            identity,
            fields["member"],
            fields["least_term"],
            listeners,
            fields["configs"],
        )

    def differing(self, other: Process) -> list[str]:
        """The keys whose configurations differ in another process."""
        keys = self.configs.keys() | other.configs.keys()
        return sorted(key for key in keys if self.configs.get(key) != other.configs.get(key))


def _texts(addresses: Addresses) -> dict[str, list[object]]:
    return {str(broker): list(address) for broker, address in addresses.items()}


def _addresses(found: Mapping[str, tuple[str, int]]) -> Addresses:
    return MappingProxyType({int(broker): (host, port) for broker, (host, port) in found.items()})


@dataclass(frozen=True)
class Fleet:
    """All members of one generation of the group, by slot. `term` grows from one generation to the next."""

    term: int
    processes: tuple[Process, ...]

    def encode(self) -> bytes:
        """The assignment, which is the same for all members."""
        return json.dumps({"term": self.term, "processes": [p.fields() for p in self.processes]}).encode()

    @cached_property
    def workers(self) -> tuple[int, ...]:
        """The slots of the processes that lead partitions: all that are served, because only these can be reached from
        everywhere. Without any, the first process leads all."""
        served = tuple(process.slot for process in self.processes if process.addresses)
        return served or tuple(process.slot for process in self.processes[:1])

    @cached_property
    def _unsettled(self) -> tuple[Process, ...]:
        """The processes that have led by another view until now."""
        return tuple(process for process in self.processes if process.held not in (None, self.workers))

    @property
    def settled(self) -> bool:
        """True if no partition waits for its former leader."""
        return not self._unsettled

    def find(self, process_id: str) -> Process:
        """The process with this id."""
        return next(process for process in self.processes if process.id == process_id)

    def owner(self, name: str, partition: int) -> int:
        """The slot of the process that leads a partition, or will as soon as its former leader has stopped."""
        return owner(name, partition, self.workers)

    def leader(self, name: str, partition: int) -> int | None:
        """The slot of the process that leads a partition; None while another process may not yet have stopped."""
        chosen = self.owner(name, partition)
        for process in self._unsettled:
            if process.held and process.slot != chosen and owner(name, partition, process.held) == process.slot:
                return None
        return chosen


def decode_process(metadata: bytes) -> Process:
    """The inverse of `Process.encode`."""
    return Process.of(json.loads(metadata))


def decode_fleet(assignment: bytes) -> Fleet:
    """The inverse of `Fleet.encode`."""
    fields = json.loads(assignment)
    return Fleet(fields["term"], tuple(Process.of(one) for one in fields["processes"]))


def formed(term: int, members: Iterable[Process]) -> Fleet:
    """The next assignment: every process keeps its slot; a process without one gets the lowest that is free. Its term
    is `term`, or the least one that all members allow."""
    taken: dict[int, Process] = {}
    new = []
    members = list(members)
    term = max(term, *(process.least_term for process in members))
    for process in sorted(members, key=lambda one: one.id):
        if process.slot == NO_SLOT or process.slot in taken:
            new.append(process)
        else:
            taken[process.slot] = process
    free = (slot for slot in range(len(taken) + len(new)) if slot not in taken)
    seated = {slot: process._replace(slot=slot, held=None) for process, slot in zip(new, free, strict=False)}
    return Fleet(term, tuple(process for _, process in sorted({**taken, **seated}.items())))


@lru_cache(maxsize=1 << 16)
def owner(name: str, partition: int, workers: tuple[int, ...]) -> int:
    """The worker that leads a partition, by rendezvous hashing in blocks: of as many adjacent partitions as there are
    workers each worker leads one. It depends neither on other topics nor on later partitions, so that processes with
    older and newer metadata agree."""
    free = list(workers)
    first = partition - partition % len(workers)
    for index in range(first, partition):
        free.remove(max(free, key=lambda slot: _weight(name, index, slot)))  # called at once
    return max(free, key=lambda slot: _weight(name, partition, slot))


def _weight(name: str, partition: int, slot: int) -> bytes:
    return blake2b(f"{name}-{partition}-{slot}".encode(), digest_size=8).digest()
