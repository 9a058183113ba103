"""The names that a view accepts: the groups, topics and partitions of a journal."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.model.errors import ConfigException
from shareq.model.events import PartitionsAdded, TopicCreated
from shareq.trace.analysis.groups import groups_of
from shareq.trace.journal import Journal


def check_subject(journal: Journal, group: str, topic: str | None = None, partition: int | None = None) -> None:
    """ConfigException, with the known names, for a group, topic or partition that a journal does not have.

    A journal without any topic, or without any group, accepts every name: its events are yet to come. So does a bounded
    journal that has dropped events.
    """
    if journal.dropped:
        return
    if topic is not None:
        _check_name("topic", topic, list(dict.fromkeys(s.topic for s in journal.subjects() if s.topic is not None)))
    _check_name("group", group, groups_of(journal))
    if topic is None:
        return
    known = _partitions_of(journal, topic)
    if partition is not None and known and partition not in known:
        raise ConfigException(f"partition={partition}: topic {topic!r} has the partitions {_shown(sorted(known))}")


def _check_name(kind: str, name: str, known: list[str]) -> None:
    if known and name not in known:
        raise ConfigException(f"{kind}={name!r}: the journal has no such {kind}, it has {_shown(known)}")


def _partitions_of(journal: Journal, topic: str) -> set[int]:
    """The partitions of a topic: those that it was created with, added later, or that have events."""
    found = {s.partition for s in journal.subjects() if s.topic == topic and s.partition is not None}
    for entry in journal.select(TopicCreated, PartitionsAdded, topic=topic):
        if isinstance(entry.event, (TopicCreated, PartitionsAdded)):
            found.update(range(entry.event.partition_count))
    return found


def _shown(names: Sequence[object], limit: int = 10) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(repr, names[:limit])) + more
