"""What an event is about: its group, its topic and its partition, taken from its fields."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from shareq.model.events import ConfigChanged, Event, StateLogPruned, StateRecordWritten
from shareq.model.ids import SHARE_STATE_TOPIC


class Subject(NamedTuple):
    """The group, topic and partition that an event is about; None where it names none."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None


def subject_of(event: Event) -> Subject:
    """The subject of an event, taken from its fields."""
    return Subject(*KEYS[type(event)](event))


Key = tuple[str | None, str | None, int | None]
"""A subject as a plain tuple: equal to the subject, with the same hash, and made at a fifth of its cost."""


class _Keys(dict[type, Callable[[Any], Key]]):
    """Event type -> function from an event of this type to the key of its subject."""

    def __missing__(self, event_type: type) -> Callable[[Any], Key]:
        found = self[event_type] = _key_of(event_type)
        return found


def _key_of(event_type: Any) -> Callable[[Any], Key]:
    """A function that takes the key from the fields group_id, topic and partition, as far as the type has them."""
    other = _OTHER_FIELDS.get(event_type)
    if other is not None:
        return other
    names = list(event_type._fields)
    group, topic, partition = (names.index(n) if n in names else -1 for n in KEY_FIELDS)
    if topic < 0:
        return lambda event: (event[group], None, None) if group >= 0 else (None, None, None)
    if group >= 0 and partition >= 0:
        return itemgetter(group, topic, partition)
    if group >= 0:
        return lambda event: (event[group], event[topic], None)
    return lambda event: (None, event[topic], event[partition] if partition >= 0 else None)


def _key_of_config(event: ConfigChanged) -> Key:
    kind, _, name = event.resource.partition(":")
    return name if kind == "group" else None, name if kind == "topic" else None, None


_OTHER_FIELDS: dict[type, Callable[[Any], Key]] = {
    ConfigChanged: _key_of_config,
    StateRecordWritten: lambda event: (event.key.rsplit(":", 2)[0], None, None),
    StateLogPruned: lambda event: (None, SHARE_STATE_TOPIC, event.partition),
}
"""Event types whose subject is in fields with other names."""

KEYS = _Keys()


KEY_FIELDS = ("group_id", "topic", "partition")


def has_plain_key(event_type: Any) -> bool:
    """True if the values of the KEY_FIELDS are the key, None where the type has no such field."""
    fields = event_type._fields
    return event_type not in _OTHER_FIELDS and ("topic" in fields or "partition" not in fields)


Orders = defaultdict[type, defaultdict[Key, list[int]]]
"""Event type -> subject -> the orders of the entries, ascending: whole numbers are merged at a fraction of the cost of
entries."""


def no_orders() -> Orders:
    """The index of no entries."""
    return defaultdict(partial(defaultdict, list))
