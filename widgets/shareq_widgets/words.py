"""Texts of the strip, for the live view and the picture: those around it, and those in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from shareq.model.waits import WAITS_FULL, Wait
from shareq.trace.views.palette import UNKNOWNS
from shareq.trace.views.snapshot import Member, Snapshot, StripSnapshot
from shareq_widgets.look import FROZEN, GONE, MARKS, SIZES, in_legend
from shareq_widgets.text_fit import text_width
from shareq_widgets.time_scale import time_text

_BLOCKED = (Wait.PAUSED, Wait.RESTING, Wait.KEY_ORDER)
"""What a share-partition waits for that its other figures do not show."""


class Chip(NamedTuple):
    """A figure with text around it; a `hot` chip needs attention and has the alarm colour."""

    before: str
    value: str = ""
    after: str = ""
    hot: bool = False


class Sentence(NamedTuple):
    """An event (`what`, emphasized), its reason or consequence (`why`), and its place in the journal."""

    place: str
    what: str
    why: str
    hot: bool


class Lane(NamedTuple):
    """The lane of a member. Texts are pairs: that of a wide picture, and of a narrow one. `holds`: what it holds, where
    no end of a lock is known."""

    id: str
    name: tuple[str, str]
    holds: tuple[str, str]
    held: int
    deadline_ms: int | None


def where(snapshot: StripSnapshot) -> str:
    """The partition, its leader, and where the knowledge of an observed one is from."""
    leader = f"leader broker {snapshot['leader']}" if snapshot["leader"] >= 0 else "no leader"
    if snapshot["observed"]:
        state = f"{leader} · seen from outside" + ("" if snapshot["loaded"] else ", nothing durable yet")
    elif snapshot["tapped"]:
        state = f"{leader} · seen through a tap, time-outs inferred" + (
            "" if snapshot["loaded"] else ", nothing durable yet"
        )
    else:
        state = leader if snapshot["loaded"] else Wait.NOT_LOADED.sentence
    return f"{snapshot['topic']}-{snapshot['partition']} · {state}"


def chips(snapshot: StripSnapshot) -> list[Chip]:
    """The figures above the strip, without the time, which the renderer adds."""
    last, writes = last_attempts(snapshot), len(snapshot["writes"])
    shown = list(_from_outside(snapshot)) if snapshot["observed"] else [_in_flight(snapshot)]
    if snapshot["lag"] is not None:
        shown.append(Chip("lag ", str(snapshot["lag"])))
    if "log_kept" in snapshot:
        shown.append(_kept(snapshot))
    if snapshot["waits"] in _BLOCKED:
        shown.append(Chip(snapshot["waits"], hot=True))
    if last:
        text = f"{last} records on their last attempt" if last > 1 else "1 record on its last attempt"
        shown.append(Chip(text, hot=True))
    if writes:
        shown.append(Chip(f"{writes} state write{'s' if writes > 1 else ''} under way"))
    return shown


def _kept(snapshot: StripSnapshot) -> Chip:
    """For which group cleaning by groups keeps the log, and since when; the journal has the reason."""
    kept = snapshot["log_kept"]
    since = time_text(kept["since_ms"] - snapshot["origin_ms"], 0)
    return Chip("log kept", "" if kept["needed_by"] is None else f" for {kept['needed_by']}", f" since {since}")


def _in_flight(snapshot: StripSnapshot) -> Chip:
    in_flight, most = snapshot["in_flight"] or 0, snapshot["max_record_locks"]
    full = in_flight >= most
    why = snapshot["waits"] if snapshot["waits"] in WAITS_FULL else Wait.WINDOW_FULL
    return Chip("in flight ", str(in_flight), f" / {most}" + (f" · {why}" if full else ""), full)


def _from_outside(snapshot: StripSnapshot) -> Iterator[Chip]:
    """The numbers of unknown and returned records, and a warning if the observer cannot read everything."""
    if snapshot["disturbed"]:
        yield Chip("not all can be seen", hot=True)
    counts = Counter[str]()
    for first, end, state, *_ in snapshot["runs"]:
        counts[state] += end - first
    for state in UNKNOWNS:
        if counts[state]:
            yield Chip(f"{state} ", f"{counts[state]:,}")


def last_attempts(snapshot: StripSnapshot) -> int:
    """The number of records in their last delivery: they are archived unless they are accepted."""
    limit = snapshot["delivery_count_limit"]
    return sum(run[1] - run[0] for run in snapshot["runs"] if run[2] == "acquired" and run[3] >= limit)


def sentence(
    snapshot: Snapshot, total: int, message: str = "", error: str = "", *, internals: bool = False
) -> Sentence:
    """The displayed step, or a message or an error; with `internals`, or inside a step, the displayed event."""
    event = snapshot["event"]
    step = None if internals else snapshot["step"]
    text = error or message or (step or event or {"text": "nothing has happened here yet"})["text"]
    what, comma, why = text.partition(", ")
    first, last = step["first"] if step else snapshot["order"], snapshot["order"]
    kinds = [mark["kind"] for mark in snapshot["marks"] if first <= mark["order"] <= last]
    hot = bool(error) or (not message and any(MARKS.get(kind) == "alarm" for kind in kinds))
    return Sentence(_place(snapshot, total, first), what, comma + why, hot)


def _place(snapshot: Snapshot, total: int, first: int) -> str:
    """The events of a sentence, and the time since them."""
    event, order = snapshot["event"], snapshot["order"]
    place = f"events {first}–{order} of {total}: " if first < order else f"event {order} of {total}: "
    since_ms = snapshot["now_ms"] - event["time_ms"] if event else 0
    if since_ms <= 0:
        return place
    return f"{since_ms / 1000:.1f} s after {place}" if since_ms >= 1000 else f"{since_ms} ms after {place}"


def words(
    snapshot: StripSnapshot,
    total: int,
    message: str = "",
    error: str = "",
    *,
    internals: bool = False,
    in_view: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """All texts, in the format of the browser. `in_view`: as in `lanes`."""
    shown, more = lanes(snapshot, in_view=in_view)
    return {
        "title": snapshot["group"],
        "where": where(snapshot),
        "chips": [list(chip) for chip in chips(snapshot)],
        "sentence": list(sentence(snapshot, total, message, error, internals=internals)),
        "flags": flags(snapshot),
        "ends": ends(snapshot),
        "lanes": [lane._asdict() for lane in shown],
        "more": more,
        "legend": in_legend(snapshot, archiving=any(run[2] == "archiving" for run in snapshot["runs"])),
    }


def flags(snapshot: StripSnapshot) -> tuple[str, str]:
    """The names of the sides of the window; an empty one has one side."""
    if snapshot["spso"] == snapshot["window_end"]:
        return f"SPSO {snapshot['spso']} · empty window", ""
    return f"SPSO {snapshot['spso']}", f"SPEO {'at most ' if snapshot['observed'] else ''}{snapshot['window_end'] - 1}"


def ends(snapshot: StripSnapshot) -> tuple[str, str]:
    """The names of the ends of the log, "" for one that is not known."""
    start, end = snapshot["log_start"], snapshot["log_end"]
    return f"log start {start}" if start >= 0 else "", f"log end {end}" if end >= 0 else ""


def is_stale(snapshot: StripSnapshot) -> bool:
    """True if the records are those of a leader that has lost the share-partition."""
    return not snapshot["loaded"] and not snapshot["observed"]


def lanes(
    snapshot: StripSnapshot, *, everyone: bool = False, in_view: tuple[int, int] | None = None
) -> tuple[list[Lane], str]:
    """The members that have lanes, and the number of the others in words. If there are too many, those come first that
    hold records `in_view`, a half-open range of offsets, and then those that hold others. `everyone`: also members that
    are gone; with too many the last ones have none."""
    members, most = snapshot["members"], int(SIZES["lanes"])
    if not everyone:
        members = [member for member in members if member["alive"] or member["held"]]
        if len(members) > most:
            first, end = in_view or (0, 0)
            seen = {run[4] for run in snapshot["runs"] if run[0] < end and run[1] > first}
            members = sorted(members, key=lambda member: (member["id"] not in seen, not member["held"]))
    more = f"and {len(members) - most} more" if len(members) > most and not everyone else ""
    return [_lane(snapshot, member) for member in members[:most]], more


def _lane(snapshot: StripSnapshot, member: Member) -> Lane:
    sign = f" {GONE}" if not member["alive"] else f" {FROZEN}" if member["frozen"] else ""
    rest = sign if member["name"] == member["letter"] else f"{sign} {member['letter']}"
    wide, narrow = (
        _short(member["name"], SIZES[gutter] - SIZES["name_right"] - text_width(rest)) + rest
        for gutter in ("gutter_left", "gutter_left_narrow")
    )
    holds = "holds nothing", "nothing"
    if member["held"]:
        holds = (f"{'held' if is_stale(snapshot) else 'holds'} {member['held']}",) * 2
    elif snapshot["observed"]:
        holds = ("not known",) * 2
    return Lane(member["id"], (wide, narrow), holds, member["held"], member["deadline_ms"])


def _short(name: str, room: float) -> str:
    """As much of a name as has room: names differ at the end."""
    shorter = (f"{name[:length]}…{name[-3:]}" for length in range(len(name) - 4, 0, -1))
    return next((one for one in (name, *shorter) if text_width(one) <= room), name[-3:])


def clock_text(ms: int) -> str:
    """A time since the origin as mm:ss.mmm, with hours only if there are any."""
    seconds, millis = divmod(max(ms, 0), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:" if hours else "") + f"{minutes:02}:{seconds:02}.{millis:03}"
