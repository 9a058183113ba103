"""What a type of group adds to the coordinator besides its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Operation
from shareq.model.actor import Effect


class TopicsChanged(NamedTuple):
    """What became different between two images: names of topics that were created, changed or deleted. `everybody`:
    racks or configurations changed, which concerns all groups."""

    names: frozenset[str]
    everybody: bool


def nothing_to_load(context: Context, group: Any, now_ms: int) -> Iterable[Operation[GroupShard, Any]]:
    del context, group, now_ms
    return ()


def nothing_to_do(context: Context, group: Any, now_ms: int) -> list[Effect]:
    del context, group, now_ms
    return []


def nothing_changed(context: Context, group: Any, change: TopicsChanged, now_ms: int) -> list[Effect]:
    del context, group, change, now_ms
    return []


class Kind(NamedTuple):
    """Called for each group of the type, with `Any` being its class.

    `loaded`: the shard has been loaded; the operations run before anybody else's. `resigned`: the shard is led
    elsewhere from now on, who still waits has to be told. `topics_changed`: the image is new.
    """

    loaded: Callable[[Context, Any, int], Iterable[Operation[GroupShard, Any]]] = nothing_to_load
    resigned: Callable[[Context, Any, int], list[Effect]] = nothing_to_do
    topics_changed: Callable[[Context, Any, TopicsChanged, int], list[Effect]] = nothing_changed
