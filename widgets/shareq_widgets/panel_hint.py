"""What a group waits for while nothing seems to happen: consumers, their partitions, or other records."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.model.configs import GroupConfig
from shareq.model.waits import WAITS_CALM, Wait
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.waits import waits_for
from shareq.trace.journal.event_text import count_text
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures.group_content import GroupContent, content
from shareq_widgets.pictures.group_words import joining_words
from shareq_widgets.steering import Steering
from shareq_widgets.words import clock_text

RESET = "share.auto.offset.reset"


def hint(steering: Steering) -> str:
    """What the group waits for; "" if its members can acquire records."""
    instant = instant_of(steering.history, now_ms=steering.cluster.now_ms)
    group = content(instant)
    waits = _waits(steering, group, instant)
    if waits and _resets_to_latest(steering):
        waits += "".join(map(_will_skip, _states(steering, instant)))
    elif not waits:
        waits = _blocked(_states(steering, instant))
        if _resets_to_latest(steering):
            waits += "".join(map(_skipped, _states(steering, instant)))
    return waits.strip()


def _waits(steering: Steering, group: GroupContent, instant: Instant) -> str:
    alive = [member for member in group.members if member.state == "alive"]
    if any(member.assignment for member in group.members):
        return ""
    if alive:
        first = min(alive, key=lambda member: member.heartbeat_ms or 0)
        if first.heartbeat_ms is None or group.heartbeat_interval_ms is None:
            return ""
        due = clock_text(first.heartbeat_ms + group.heartbeat_interval_ms - instant.origin_ms)
        return f"{first.name} receives its partitions with its next heartbeat, at {due}. "
    joining = steering.joining()
    return f"{joining_words(joining)[0]}. " if joining else "The group has no consumer: add one. "


def _blocked(states: Sequence[SharePartitionState]) -> str:
    """Why no member can acquire records of some share-partitions, though there are records."""
    names: dict[Wait, list[str]] = {}
    for state in states:
        wait = waits_for(state)
        if wait is not None and wait not in WAITS_CALM:
            names.setdefault(wait, []).append(f"{state.topic}-{state.partition}")
    return "".join(f"{', '.join(found)}: {wait.sentence}. " for wait, found in names.items())


def _resets_to_latest(steering: Steering) -> bool:
    image = steering.cluster.image
    configs = GroupConfig.effective(image.group_configs.get(steering.group, {}), image.broker_config)
    return str(configs.auto_offset_reset) == "latest"


def _states(steering: Steering, instant: Instant) -> list[SharePartitionState]:
    """The share-partitions of the topics, also those without a state."""
    topics = instant.history.cluster(instant.until).topics
    at = [(topic, partition) for topic in steering.topics for partition in range(len(topics.get(topic, ())))]
    return [instant.history.share_partition(topic, partition, instant.until) for topic, partition in at]


def _will_skip(state: SharePartitionState) -> str:
    """That records will not be delivered, because the group begins behind them."""
    if state.loaded or state.state_epoch >= 0 or state.log_end <= state.log_start:
        return ""
    records = count_text(state.log_end - state.log_start, "record")
    return f"The group will begin behind the {records} of {state.topic}-{state.partition}: {RESET} is latest. "


def _skipped(state: SharePartitionState) -> str:
    """That records are not delivered, because the group has begun behind them and acquired none since."""
    new = not state.past and not state.runs and state.log_end == state.spso
    if not new or state.spso <= state.log_start:
        return ""
    place = f"at {state.spso:,} of {state.topic}-{state.partition}, its end then"
    return f"The group began {place}: {RESET} is latest. Produce more records. "
