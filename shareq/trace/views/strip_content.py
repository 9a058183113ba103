"""What a strip shows of a share-partition. Its picture, its text and its HTML form read this content alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from shareq.trace.analysis.runs import Runs
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.waits import waits_for
from shareq.trace.journal.event_text import list_text, member_name, range_text, write_text
from shareq.trace.views.member_names import MemberName
from shareq.trace.views.palette import SYMBOLS, member_colour
from shareq.trace.views.snapshot import Member, Run, StripContent, Write
from shareq.trace.views.strip_text import strip_text

VERSION = 2


def nameless(member_id: str) -> MemberName:
    """A member without a name: all holders have one letter."""
    return MemberName(0, member_name(member_id), SYMBOLS["acquired"])


def content(
    state: SharePartitionState,
    name: Callable[[str], MemberName] = nameless,
    present: Collection[str] = (),
    faults: Mapping[str, str] = MappingProxyType({}),
) -> StripContent:
    """The content at the moment of a state. `name`: of a member; `present`: the members of the group; `faults`:
    "crashed" or "frozen" of members with such a fault."""
    wait = waits_for(state)
    shown: StripContent = {
        "group": state.group_id,
        "version": VERSION,
        "topic": state.topic,
        "partition": state.partition,
        "leader": state.leader,
        "loaded": state.loaded,
        "observed": state.uncertain,
        "tapped": state.observed and not state.uncertain,
        "disturbed": state.disturbed,
        "spso": state.spso,
        "window_end": state.window_end,
        "log_start": state.log_start,
        "log_end": state.log_end,
        "delivery_count_limit": state.delivery_count_limit,
        "max_record_locks": state.max_record_locks,
        "lock_duration_ms": state.lock_duration_ms,
        "in_flight": None if state.uncertain else state.in_flight,
        "lag": state.lag,
        "runs": _runs(state),
        "past": [[first, end, status.state.name.lower(), status.delivery_count] for first, end, status in state.past],
        "members": _members(state.runs, name, present, faults),
        "writes": _writes(state),
        "waits": None if wait is None else wait.value,
        "text": "",
    }
    if state.log_kept is not None:
        since_ms, kept = state.log_kept
        shown["log_kept"] = {"since_ms": since_ms, "needed_by": kept.needed_by, "reason": kept.reason}
    shown["text"] = strip_text(shown)
    return shown


def _runs(state: SharePartitionState) -> list[Run]:
    return [
        [first, end, status.name, *status[1:5], None if status.to_state is None else status.to_state.name.lower()]
        for first, end, status in state.runs
    ]


def _members(
    runs: Runs, name: Callable[[str], MemberName], present: Collection[str], faults: Mapping[str, str]
) -> list[Member]:
    """The members that hold records or are in the group, by letter."""
    held: dict[str, tuple[int, int | None]] = dict.fromkeys(present, (0, None))
    for first, end, status in runs:
        if status.member_id is not None:
            count, deadline_ms = held.get(status.member_id, (0, None))
            if status.deadline_ms is not None:
                deadline_ms = status.deadline_ms if deadline_ms is None else min(deadline_ms, status.deadline_ms)
            held[status.member_id] = (count + end - first, deadline_ms)
    return [
        {
            "id": member_id,
            "name": member.name,
            "letter": member.letter,
            "colour": member_colour(member.place),
            "held": held[member_id][0],
            "deadline_ms": held[member_id][1],
            "alive": member_id in present and faults.get(member_id) != "crashed",
            "frozen": member_id in present and faults.get(member_id) == "frozen",
        }
        for member, member_id in sorted((name(member_id), member_id) for member_id in held)
    ]


def _writes(state: SharePartitionState) -> list[Write]:
    if not state.writes:
        return []
    texts_of: dict[int, list[str]] = {write_id: [] for write_id in state.writes}
    for first, end, status in state.runs:
        if status.write_id in texts_of:
            texts_of[status.write_id].append(f"{range_text(first, end)} {status.why}")
    return [
        {"id": write_id, "since_ms": since_ms, "text": list_text(texts_of[write_id], 3) or write_text(event)}
        for write_id, (since_ms, event) in state.writes.items()
    ]
