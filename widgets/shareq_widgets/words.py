"""Texts of the strip: title, chips and a sentence, for the live view and the picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from shareq.model.waits import WAITS_FULL, Wait
from shareq.trace.views.palette import UNKNOWNS
from shareq_widgets.look import MARKS
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


def where(snapshot: dict[str, Any]) -> str:
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


def chips(snapshot: dict[str, Any]) -> list[Chip]:
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


def _kept(snapshot: dict[str, Any]) -> Chip:
    """For which group cleaning by groups keeps the log, and since when; the journal has the reason."""
    kept = snapshot["log_kept"]
    since = time_text(kept["since_ms"] - snapshot["origin_ms"], 0)
    return Chip("log kept", "" if kept["needed_by"] is None else f" for {kept['needed_by']}", f" since {since}")


def _in_flight(snapshot: dict[str, Any]) -> Chip:
    full = snapshot["in_flight"] >= snapshot["max_record_locks"]
    why = snapshot["waits"] if snapshot["waits"] in WAITS_FULL else Wait.WINDOW_FULL
    bound = f" / {snapshot['max_record_locks']}" + (f" · {why}" if full else "")
    return Chip("in flight ", str(snapshot["in_flight"]), bound, full)


def _from_outside(snapshot: dict[str, Any]) -> Iterator[Chip]:
    """The numbers of unknown and returned records, and a warning if the observer cannot read everything."""
    if snapshot["disturbed"]:
        yield Chip("not all can be seen", hot=True)
    counts = Counter[str]()
    for first, end, state, *_ in snapshot["runs"]:
        counts[state] += end - first
    for state in UNKNOWNS:
        if counts[state]:
            yield Chip(f"{state} ", f"{counts[state]:,}")


def last_attempts(snapshot: dict[str, Any]) -> int:
    """The number of records in their last delivery: they are archived unless they are accepted."""
    limit = snapshot["delivery_count_limit"]
    return sum(run[1] - run[0] for run in snapshot["runs"] if run[2] == "acquired" and run[3] >= limit)


def sentence(
    snapshot: dict[str, Any], total: int, message: str = "", error: str = "", *, internals: bool = False
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


def _place(snapshot: dict[str, Any], total: int, first: int) -> str:
    """The events of a sentence, and the time since them."""
    event, order = snapshot["event"], snapshot["order"]
    place = f"events {first}–{order} of {total}: " if first < order else f"event {order} of {total}: "
    since_ms = snapshot["now_ms"] - event["time_ms"] if event else 0
    if since_ms <= 0:
        return place
    return f"{since_ms / 1000:.1f} s after {place}" if since_ms >= 1000 else f"{since_ms} ms after {place}"


def words(
    snapshot: dict[str, Any], total: int, message: str = "", error: str = "", *, internals: bool = False
) -> dict[str, Any]:
    """All texts, in the format of the browser."""
    return {
        "title": snapshot["group"],
        "where": where(snapshot),
        "chips": [list(chip) for chip in chips(snapshot)],
        "sentence": list(sentence(snapshot, total, message, error, internals=internals)),
    }


def clock_text(ms: int) -> str:
    """A time since the origin as mm:ss.mmm, with hours only if there are any."""
    seconds, millis = divmod(max(ms, 0), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:" if hours else "") + f"{minutes:02}:{seconds:02}.{millis:03}"
