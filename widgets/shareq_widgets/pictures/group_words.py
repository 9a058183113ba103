"""The picture of a group in words: tooltips, the words of its rows, and the text form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shareq.model.ids import Place
from shareq_widgets.pictures.group_content import GroupContent, Link, LinkKind, MemberContent
from shareq_widgets.pictures.partitions import PartitionContent
from shareq_widgets.pictures.words import rate_words, seconds


class Shown(NamedTuple):
    """The members and partitions that fit, and the numbers of others."""

    members: Sequence[MemberContent]
    partitions: Sequence[PartitionContent]
    more_members: int
    more_partitions: int


def beat_words(member: MemberContent, group: GroupContent) -> Sequence[str]:
    """The heartbeat in words, from the longest to the shortest; "{}" is the time since it."""
    if member.state == "gone":
        return f"{member.reason} {{}} ago", member.reason, "gone {}"
    if member.silent:
        of = f" of {seconds(group.session_timeout_ms)}" if group.session_timeout_ms else ""
        if member.state == "silent":
            return f"silent {{}}{of}", "silent {}"
        return f"{member.state} · silent {{}}{of}", f"{member.state} · silent {{}}", member.state
    of, per = (f" of {member.group_epoch}", f"/{member.group_epoch}") if member.behind else ("", "")
    if no_heartbeats(group) and not member.error:
        return f"epoch {member.member_epoch}{of}", f"e{member.member_epoch}{per}"
    beat = "♥ {}" if member.heartbeat_ms is not None else "♥ not known"
    if member.error:
        beat = f"♥ {member.error}"
    return f"epoch {member.member_epoch}{of} · {beat}", f"e{member.member_epoch}{per} · {beat}", beat


def no_heartbeats(group: GroupContent) -> bool:
    """True if no heartbeat is known, which a note says of all members."""
    return group.observed and bool(group.members) and all(member.state == "not known" for member in group.members)


def no_records(group: GroupContent) -> bool:
    """True if the note says that it is not known of any member what it holds."""
    return no_heartbeats(group) and all(member.held is None for member in group.members)


def records_words(member: MemberContent, group: GroupContent) -> Sequence[str]:
    """What the member holds and its throughput, from the longest to the shortest."""
    if member.held is None:
        return ("",) if no_records(group) else ("records not known", "not known")
    held = f"holds {member.held:,}"
    if member.state == "gone" or member.rate is None:
        return (held,)
    rate = f"{rate_words(member.rate)}/s"
    return f"{held} · {rate}", rate, held


def joining_words(names: Sequence[str]) -> Sequence[str]:
    """That clients have not joined yet, with their names and without."""
    verb = "joins" if len(names) == 1 else "join"
    return f"{', '.join(names)} {verb} when the clock moves", f"{verb} when the clock moves"


def rate_of(links: Iterable[Link]) -> float:
    return sum(link.rate or 0.0 for link in links)


def kind_of(links: Sequence[Link]) -> LinkKind:
    """The kind of a line: of a bundle, assigned if any of its links is."""
    kinds = {link.kind for link in links}
    return "assigned" if "assigned" in kinds else "target" if "target" in kinds else "held"


def link_text(member: MemberContent | None, links: Sequence[Link], kind: LinkKind) -> str:
    subject = f"{member.letter} {member.name}" if member else f"{len({link.member_id for link in links})} members"
    at = {link.at for link in links}
    where = name_of(links[0].at) if len(at) == 1 else f"{len(at)} partitions"
    what = {"assigned": "", "target": ", only in the target assignment", "held": ", not assigned"}[kind]
    rate = ", throughput not known" if links[0].rate is None else f", {rate_words(rate_of(links))} records/s"
    held = sum(link.held for link in links)
    return f"{subject} – {where}{what}{rate}" + (f", holds {held:,}" if held else "")


def name_of(at: Place) -> str:
    return f"{at[0]}-{at[1]}"


def notes_of(group: GroupContent, hidden: int) -> list[str]:
    notes = [] if group.members else ["no members yet"] if group.joining else ["no members"]
    if no_heartbeats(group):
        what = "heartbeats and held records" if no_records(group) else "heartbeats"
        notes.append(f"seen from outside: {what} not known")
    if hidden:
        notes.append(f"{hidden:,} links without a line")
    return notes


def member_text(member: MemberContent, group: GroupContent) -> str:
    """All that is known of a member."""
    parts = [f"{member.letter} {member.name}"]
    if member.state == "gone":
        parts.append(member.reason + (f", its heartbeat was answered {member.error}" if member.error else ""))
    else:
        behind = f" behind group epoch {member.group_epoch}" if member.behind else ""
        parts += [f"epoch {member.member_epoch}{behind}", *_session_words(member, group)]
        parts.append("assigned " + (" ".join(map(name_of, member.assignment)) or "nothing"))
        if member.target is not None:
            parts.append("target " + (" ".join(map(name_of, member.target)) or "nothing"))
    parts.append("records not known" if member.held is None else f"holds {member.held:,}")
    if member.rate is not None and member.state != "gone":
        parts.append(f"{rate_words(member.rate)} records/s")
    return ", ".join(parts)


def _session_words(member: MemberContent, group: GroupContent) -> list[str]:
    if member.silent_ms is None:
        return ["heartbeat not known"]
    words = [f"{'silent for' if member.silent else 'heartbeat'} {seconds(member.silent_ms)}"]
    if member.state in ("crashed", "frozen"):
        words[0] = f"{member.state}, {words[0]}"
    if member.state == "alive":
        words[0] += " ago"
    if member.error:
        words.append(f"answered {member.error}")
    if member.session_left_ms is not None:
        words.append(f"session {seconds(member.session_left_ms)} left of {seconds(group.session_timeout_ms or 0)}")
    return words


def text_of(group: GroupContent, shown: Shown) -> str:
    """The picture in words: a line for the group, each shown member and each shown partition."""
    assignment = "" if group.assignment_epoch is None else f", assignment epoch {group.assignment_epoch}"
    head = f"{group.group_id}: {group.state}, group epoch {group.group_epoch}{assignment}"
    lines = [head, *notes_of(group, 0), *(member_text(member, group) for member in shown.members)]
    lines += [joining_words(group.joining)[0]] if group.joining else []
    if shown.more_members:
        lines.append(f"and {shown.more_members:,} more members")
    lines += [f"{one.name}: {one.leader_words}, {one.words}" for one in shown.partitions]
    if shown.more_partitions:
        lines.append(f"and {shown.more_partitions:,} more partitions")
    return "\n".join(lines)
