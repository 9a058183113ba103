"""Rich reprs of what is derived from the journal: tables, and a share-partition as a small strip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from shareq.model.events import MemberJoined
from shareq.model.html import Html, html, strong, table
from shareq.trace.fold import SharePartitionState
from shareq.trace.groups import Assignment, ClusterView, GroupView
from shareq.trace.journal import Journal
from shareq.trace.ledger import Ledger
from shareq.trace.metrics import Metrics
from shareq.trace.palette import LIGHT, STATES, SYMBOLS, UNKNOWNS
from shareq.trace.runs import Cell
from shareq.trace.strip_text import strip_text
from shareq.trace.words import member_name, sentence

STRIP_CELLS = 48
"""How many offsets the small strip shows; a longer window is told in words."""
LAST_EVENTS = 8
_CELL = "display: inline-block; min-width: 1.5em; padding: 1px 2px; margin: 0 1px 2px 0; border-radius: 4px"
_VEIL = f"background: repeating-linear-gradient(0deg, transparent 0 3px, {LIGHT['unknown']}66 3px 5px)"
_SHAPES = {
    "available": f"border: 2px solid {LIGHT['available']}",
    "acquired": f"border: 2px solid {LIGHT['acquired']}; background: {LIGHT['acquired']}; color: {LIGHT['onfill']}",
    "acknowledged": f"border: 2px solid {LIGHT['acknowledged']}; background: {LIGHT['acknowledged']}; "
    f"color: {LIGHT['onfill']}",
    "archiving": f"border: 2px dotted {LIGHT['archiving']}",
    "archived": f"border: 2px solid {LIGHT['archived']}; "
    f"background: repeating-linear-gradient(45deg, transparent 0 3px, {LIGHT['archived']}66 3px 5px)",
    "returned": f"border: 2px solid {LIGHT['returned']}; {_VEIL}",
    "unknown": f"border: 2px solid {LIGHT['unknown']}; {_VEIL}",
}


def journal_html(journal: Journal) -> str:
    """How many events of each type, and the last few in words."""
    counts = Counter(type(entry.event).__name__ for entry in journal)
    kinds = table(("event", "times"), counts.most_common(), caption=strong(repr(journal)[1:-1]), limit=12)
    joined = [entry.event for entry in journal.select(MemberJoined) if isinstance(entry.event, MemberJoined)]
    names = {event.member_id: event.client_id for event in joined if event.client_id}
    last = [
        (
            order,
            f"{(time_ms - journal.origin_ms) / 1000:,.3f} s",
            sentence(broker, event, lambda m: names.get(m, member_name(m))),
        )
        for order, time_ms, broker, event in journal[-LAST_EVENTS:]
    ]
    return kinds + (table(("order", "time", "what happened"), last, caption="The last events") if last else "")


def share_partition_html(
    state: SharePartitionState,
    name: Callable[[str], str] = member_name,
    letter: Callable[[str], str] = lambda _: SYMBOLS["acquired"],
) -> str:
    """The window as a strip, the figures, and who holds what."""
    absent = "nothing durable" if state.observed else "not loaded"
    where = f"{state.topic}-{state.partition} · " + (f"leader broker {state.leader}" if state.loaded else absent)
    head = f"<div>{strong(state.group_id)} {html(where)}</div>"
    figures = table(
        ("SPSO", "SPEO", "in flight", "delivery complete", "lag", "log start", "log end"),
        [
            (
                state.spso,
                None if state.observed else max(state.speo - 1, state.spso),
                None if state.observed else state.in_flight,
                state.delivery_complete_count,
                state.lag,
                state.log_start,
                state.log_end if state.log_end >= 0 else None,
            )
        ],
    )
    return head + _strip(state, letter) + figures + _states(state) + _holders(state, name)


def _strip(state: SharePartitionState, letter: Callable[[str], str]) -> str:
    """The first cells of the window; its text form is what a screen reader says."""
    cells, position = [], state.spso
    for first, end, cell in state.runs:
        cells += [_gap(offset) for offset in range(position, min(first, position + STRIP_CELLS))]
        cells += [_cell(offset, cell, letter) for offset in range(first, min(end, first + STRIP_CELLS))]
        position = end
        if len(cells) >= STRIP_CELLS:
            break
    rest = state.speo - state.spso - STRIP_CELLS
    more = f" … and {rest:,} more" if rest > 0 else ""
    label = html(strip_text(state, letter))
    return f'<div role="img" aria-label="{label}" title="{label}">{"".join(cells[:STRIP_CELLS])}{more}</div>'


def _cell(offset: int, cell: Cell, letter: Callable[[str], str]) -> str:
    state = cell.name
    sign = letter(cell.member_id) if state == "acquired" and cell.member_id else SYMBOLS[state]
    count = f"<sup>{cell.delivery_count}</sup>" if cell.delivery_count > cell.known else ""
    dashed = "" if cell.write_id is None else "; border-style: dashed; border-color: currentcolor"
    style = f"{_CELL}; text-align: center; {_SHAPES[state]}{dashed}"
    return f'<span style="{style}" title="{offset} {state}">{html(sign)}{count}</span>'


def _gap(offset: int) -> str:
    return f'<span style="{_CELL}; text-align: center" title="{offset} no record">–</span>'


def _states(state: SharePartitionState) -> str:
    """How many records of the window are in which state."""
    counts: Counter[str] = Counter()
    for first, end, cell in state.runs:
        counts[cell.name] += end - first
    rows = [(f"{SYMBOLS[s]} {s}", counts[s]) for s in (*STATES, *UNKNOWNS) if counts[s]]
    return table(("state", "records"), rows) if counts else ""


def _holders(state: SharePartitionState, name: Callable[[str], str]) -> str:
    held: Counter[str] = Counter()
    for first, end, cell in state.runs:
        if cell.member_id is not None:
            held[cell.member_id] += end - first
    return (
        table(("held by", "records"), [(name(member_id), count) for member_id, count in held.items()]) if held else ""
    )


def ledger_html(account: Ledger) -> str:
    """The figures by partition and in all, and how many deliveries the records needed."""
    columns = ("partition", *(figure.replace("_", " ") for figure in Ledger.FIGURES))
    rows = [(str(number), *(getattr(part, f) for f in Ledger.FIGURES)) for number, part in account.items()]
    total = (strong("all"), *(strong(getattr(account, f)) for f in Ledger.FIGURES))
    attempts = table(("delivery count", "records"), account.attempts.items(), caption="Deliveries of the delivered")
    caption = Html(f"{strong(account.group)} · {html(account.topic)}")
    return table(columns, [*rows, total], caption=caption) + attempts


def metrics_html(metrics: Metrics) -> str:
    """Name, tags and value of each."""
    rows = [
        (m.name, ", ".join(f"{tag}={value}" for tag, value in m.tags), m.attribute, value)
        for m, value in metrics.items()
    ]
    return table(("metric", "tags", "attribute", "value"), rows, limit=200)


def group_html(group: GroupView) -> str:
    """The group's epochs and its members."""
    epochs = f"{group.state} · group epoch {group.group_epoch} · assignment epoch {group.assignment_epoch}"
    rows = [
        (
            m.client_id or "–",
            member_name(m.member_id),
            m.member_epoch,
            ", ".join(m.subscribed_topic_names),
            _assigned(m.assignment),
            "yes" if m.assignment == m.target else _assigned(m.target),
        )
        for m in group.members.values()
    ]
    columns = ("client", "member", "epoch", "subscribed", "holds", "as targeted")
    return table(columns, rows, caption=Html(f"{strong(group.group_id)} · {html(epochs)}"))


def _assigned(assignment: Assignment) -> str:
    return (
        ", ".join(f"{topic}-{partition}" for topic, partitions in assignment for partition in partitions) or "nothing"
    )


def cluster_html(cluster: ClusterView) -> str:
    """Brokers, and the topics that are not internal."""
    brokers = [(broker, "running" if alive else "down") for broker, alive in sorted(cluster.brokers.items())]
    rows = [
        (f"{topic}-{i}", p.leader if p.leader >= 0 else None, p.leader_epoch, p.log_start, p.log_end)
        for topic, partitions in sorted(cluster.own_topics().items())
        for i, p in enumerate(partitions)
    ]
    internal = len(cluster.topics) - len(cluster.own_topics())
    return table(("broker", "state"), brokers, caption=strong("Brokers")) + table(
        ("partition", "leader", "epoch", "log start", "log end"),
        rows,
        caption=Html(f"{strong('Partitions')} and {html(internal)} internal topics"),
    )
