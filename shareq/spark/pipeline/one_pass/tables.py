"""All tables of a small trace, in one pass over its events in order: with the rows that the SQL of `tables` and
`figures` has, without plans of Spark's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline.one_pass import figures
from shareq.spark.pipeline.one_pass.attempts import attempts
from shareq.spark.pipeline.one_pass.events import Event, Events, is_a, journals_in
from shareq.spark.pipeline.one_pass.kept_back import kept_back
from shareq.spark.pipeline.one_pass.leaderships import Leaderships
from shareq.spark.pipeline.one_pass.windows import Windows
from shareq.spark.pipeline.schema import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

_DAY_MS = 86_400_000
_TYPES = {"bigint": "int64", "int": "int32", "string": "string", "double": "float64", "boolean": "bool_"}
_EVENTS = {"acquire": "acquired", "renew": "renewed", "lock_timeout": "timed_out"}


def tables_of(events: pa.Table) -> Mapping[str, pa.Table]:
    """The tables of a trace, and the frames that the report shows, by name."""
    import pyarrow as pa

    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    shown: list[dict[str, Any]] = []
    for journal in journals_in(events):
        found = _Journal(journal)
        for name, mine in found.rows.items():
            rows[name] += ((journal.journal, *row) for row in mine)
        shown += ({"journal": journal.journal, **row} for row in figures.worst(found.rows["poison"]))
    return {name: _table(name, mine) for name, mine in rows.items()} | {"worst": pa.Table.from_pylist(shown)}


class _Journal:
    """The rows of the tables of a journal, without its name."""

    def __init__(self, events: Events) -> None:
        leaderships, appended = Leaderships(events), events.appended()
        found, windows = attempts(events, leaderships, appended), Windows(events, leaderships, appended)
        members = list(_members(events))
        held_back = list(kept_back(events, leaderships))
        topics, shares = figures.by_topic(found), list(figures.shares(found, members))
        self.rows: dict[str, Iterable[Any]] = {
            "journals": [_summary(events)],
            "leaderships": leaderships.rows,
            "deliveries": _deliveries(events),
            "locks": _locks(events, leaderships),
            "kept_back": held_back,
            "windows": windows.rows,
            "attempts": found,
            "members": members,
            "writes": _writes(events),
            "latency": figures.latency(topics),
            "redeliveries": figures.redeliveries(topics),
            "rates": figures.rates(topics, held_back, events),
            "activity": figures.activity(topics, held_back, events),
            "occupancy": figures.occupancy(windows.rows, events),
            "shares": shares,
            "fairness": figures.fairness(shares),
            "poison": list(figures.poison(found)),
            "lag": windows.lag(),
        }


def _summary(events: Events) -> tuple[int, ...]:
    missing = events.last_order - events.first_order + 1 - events.total
    return events.total, events.first_order, events.last_order, missing, events.since_ms, events.until_ms


def _deliveries(events: Events) -> Iterator[tuple[Any, ...]]:
    for e in events.of("RecordsDelivered"):
        yield (e.group_id, e.topic, e.partition, e.order, e.time_ms, e.member_id, e.client_id, e.first, e.end,
               e.record_count, e.delivery_count)  # fmt: skip


def _locks(events: Events, leaderships: Leaderships) -> Iterator[tuple[Any, ...]]:
    for e in events.of("RecordsChanged"):
        if e.cause != "lock_timeout" and not (e.cause in _EVENTS and e.state == "acquired"):
            continue
        if leadership := leaderships.of(e):
            lock_ms = None if e.deadline_ms is None else e.deadline_ms - e.time_ms
            yield (*leadership.key, leadership.load, e.order, e.time_ms, e.broker, e.first, e.end, e.end - e.first,
                   e.delivery_count, _EVENTS[e.cause], e.member_id, e.deadline_ms, lock_ms, e.state)  # fmt: skip


def _members(events: Events) -> Iterator[tuple[Any, ...]]:
    spells: dict[tuple[str, str], list[list[Event]]] = defaultdict(lambda: [[]])
    for event in events.of("MemberJoined", "MemberLeft", "MemberReconciled", "HeartbeatReceived"):
        mine = spells[event.group_id, event.member_id]
        if is_a(event, "MemberJoined"):
            mine.append([])
        mine[-1].append(event)
    for member, found in spells.items():
        for spell, mine in enumerate(found):
            if mine:
                yield *member, spell, *_spell(mine)


def _spell(mine: list[Event]) -> tuple[Any, ...]:
    """A membership, from its events in order."""
    joined = mine[0] if is_a(mine[0], "MemberJoined") else None
    left = [event for event in mine if is_a(event, "MemberLeft")]
    beats = [event for event in mine if is_a(event, "HeartbeatReceived")]
    epochs = [
        event.member_epoch for event in mine if is_a(event, "HeartbeatReceived") or is_a(event, "MemberReconciled")
    ]
    times = [event.time_ms for event in mine]
    return (
        joined and joined.client_id, joined and joined.subscribed_topic_names, min(times), max(times),
        max((event.time_ms for event in left), default=None), left[-1].reason if left else None,
        max(epochs, default=None), len(beats), sum(event.error != 0 for event in beats),
    )  # fmt: skip


def _writes(events: Events) -> Iterator[tuple[Any, ...]]:
    following: dict[tuple[Any, ...], Event] = {}
    for e in reversed(events.of("StateWritePrepared", "StateWriteSettled")):
        write = e.group_id, e.topic, e.partition, e.broker, e.write_id
        after, following[write] = following.get(write), e
        if is_a(e, "StateWriteSettled"):
            continue
        settled = after if is_a(after, "StateWriteSettled") else None
        outcome = "unknown" if settled is None else "failed" if settled.error else "durable"
        yield (*write[:3], e.order, e.broker, e.write_id, e.time_ms, settled and settled.time_ms,
               settled and settled.error, outcome, e.start_offset, e.delivery_complete_count, len(e.state_batches),
               sum(batch[1] - batch[0] + 1 for batch in e.state_batches))  # fmt: skip


def _table(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows with the documented columns."""
    import pyarrow as pa

    spec = TABLES[name]
    schema = pa.schema([(column.name, _arrow(column.type)) for column in spec.columns])
    columns = [*zip(*rows, strict=True)] or [()] * len(schema)
    table = pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema)
    if not spec.time:
        return table
    days = [ms // _DAY_MS for ms in table[spec.time].to_pylist()]
    return table.append_column("date", pa.array(days, pa.int32()).cast(pa.date32()))


def _arrow(kind: str) -> pa.DataType:
    import pyarrow as pa

    return pa.list_(pa.string()) if kind == "array<string>" else getattr(pa, _TYPES[kind])()
