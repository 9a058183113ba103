"""The hooks of a group type: its reactions to loading, resignation and changes of metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from shareq.coordinator.groups.context import Context
from shareq.model.image import ClusterImage
from shareq.model.workflow import Workflow


class TopicsChanged(NamedTuple):
    """The difference between two images: names of topics that were created, changed or deleted. `affects_all`: True if
    racks or configurations changed, which affects all groups."""

    names: frozenset[str]
    affects_all: bool


def _nothing_to_load(context: Context, group: Any) -> Iterable[Workflow[object]]:
    del context, group
    return ()


def _nothing_to_do(context: Context, group: Any) -> None:
    del context, group


def _nothing_changed(context: Context, group: Any, change: TopicsChanged) -> None:
    del context, group, change


def _nothing_configured(context: Context, group: Any, before: ClusterImage) -> None:
    del context, group, before


class GroupHooks(NamedTuple):
    """Called for each group of the type, with `Any` being its class.

    `loaded`: the shard has been loaded; the returned workflows have the first turns. `resigned`: another broker leads
    the shard; requests that wait at the group are answered. `topics_changed`: the metadata image has changed.
    `configured`: configurations of the brokers or of groups have changed since the image that is passed.
    """

    loaded: Callable[[Context, Any], Iterable[Workflow[object]]] = _nothing_to_load
    resigned: Callable[[Context, Any], None] = _nothing_to_do
    topics_changed: Callable[[Context, Any, TopicsChanged], None] = _nothing_changed
    configured: Callable[[Context, Any, ClusterImage], None] = _nothing_configured
