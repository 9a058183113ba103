"""The picture of a cluster in words: roles and states of brokers, notes, and the text form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shareq.trace.journal.event_text import count_text, list_text
from shareq_widgets.pictures.cluster_content import BrokerContent, ClusterChange, ClusterContent

NAMES = 4
"""Number of partitions that a line names; further ones are counted."""


def state_words(broker: BrokerContent) -> Sequence[str]:
    """The state of a broker that does not run, from the longest to the shortest; "{}" is the time since then."""
    return (f"{broker.state} {{}} ago", broker.state) if broker.down else ()


def role_words(broker: BrokerContent) -> Sequence[str]:
    """What the broker does for the group beside leading partitions, from the longest to the shortest."""
    group = ["coordinates the group"] if broker.coordinates else []
    others = [f"leads {count_text(broker.others, 'other partition')}"] if broker.others else []
    if not broker.state_of:
        return (" · ".join([*group, *others]), *group) if group or others else ()
    state = f"state of {list_text(_names(broker), NAMES)}"
    count = len(broker.state_of)
    counted = f"state of {count_text(count, 'partition')}"
    choices = [[*group, state, *others], [*group, state], [*group, counted], [*group, f"state of {count}"]]
    return *map(" · ".join, choices), " · ".join([*(["group"] if group else []), f"state of {count}"])


def _names(broker: BrokerContent) -> list[str]:
    return [f"{topic}-{partition}" for topic, partition in broker.state_of]


def broker_text(broker: BrokerContent) -> str:
    """All that is known of a broker."""
    parts = [f"broker {broker.broker_id} {'' if broker.state == 'not known' else broker.state}".rstrip()]
    parts += ["coordinates the group"] if broker.coordinates else []
    parts += [f"keeps the state of {', '.join(_names(broker))}"] if broker.state_of else []
    leads = [f"{one.name} ({one.words})" for one in broker.partitions]
    parts += [f"leads {list_text(leads, 2 * NAMES)}"] if leads else []
    return ", ".join(parts)


class News(NamedTuple):
    """Changes in one line; `order` is that of the first one."""

    order: int
    text: str
    alarming: bool


def news_of(changes: Sequence[ClusterChange]) -> list[News]:
    """The changes in lines, with one line for all elections of the same kind; the alarming ones first."""
    by_kind: dict[str, list[ClusterChange]] = {}
    for change in changes:
        by_kind.setdefault(change.what, []).append(change)
    lines = []
    for what, same in by_kind.items():
        names = sorted({name for change in same for name in change.names})
        text = f"{what} {list_text(names, NAMES)}".rstrip()
        lines.append(News(same[0].order, text, any(change.alarming for change in same)))
    return sorted(lines, key=lambda line: not line.alarming)


def notes_of(cluster: ClusterContent) -> list[str]:
    """What is not known."""
    if cluster.observed:
        return ["seen from outside: which brokers run and coordinate, and messages, are not known"]
    advice = ": Cluster(trace_messages=True) records them" if cluster.traceable else ""
    return [] if cluster.traced else [f"no messages recorded{advice}"]


def text_of(cluster: ClusterContent, brokers: Sequence[BrokerContent]) -> str:
    """The picture in words: a line for each shown broker, change and message."""
    lines = [broker_text(broker) for broker in brokers]
    if len(brokers) < len(cluster.brokers):
        lines.append(f"and {len(cluster.brokers) - len(brokers):,} more brokers")
    lines += [f"{one.name}: no leader, {one.words}" for one in cluster.leaderless]
    lines += [news.text for news in news_of(cluster.changes)] + [message.text for message in cluster.messages]
    return "\n".join([*lines, *notes_of(cluster)])
