"""What each table of a trace has, in words; `TABLES.md` beside this file is the same to read.

`VERSION` counts up when a column changes its meaning or goes; new columns and tables do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shareq.spark.pipeline import events, figures, tables
from shareq.spark.pipeline.columns import Table, columns

VERSION: Final = 1


_KEY = "journal group_id topic partition"

TABLES: Final[Mapping[str, Table]] = {
    "journals": Table(
        "The journals, and what is missing of them.",
        tables.JOURNALS,
        columns("""
            journal
            events i; good ones
            first_order i; order of the first one
            last_order i; order of the last one
            missing i; orders in between that are not there: bad lines, or what a bounded journal has dropped
            since_ms i; time of the first event
            until_ms i; time of the last event
        """),
    ),
    "leaderships": Table(
        "Each time a broker had a share-partition in memory.",
        tables.LEADERSHIPS,
        columns(f"""
            {_KEY} load
            next_load i; the load after this one, by whomever
            leader i; the broker
            since_ms i; when it was loaded
            until_ms i; when that ended; null while it lasts
            ended s; dropped, stopped (its broker was), superseded (another one loaded it), or null
            spso i; where the window began then
            speo i; where it ended
            max_record_locks i; how wide the window may be
            delivery_count_limit i; how often a record may be delivered
            lock_duration_ms i; how long a lock lasts
            state_epoch i; of the durable state
            leader_epoch i; of the partition
            topic_made i; order of the topic's creation; null: before the journal begins
            next_made i; order of its next creation
        """),
        "since_ms",
    ),
    "deliveries": Table(
        "What polls returned to applications.",
        tables.DELIVERIES,
        columns(f"""
            {_KEY} order time_ms member_id client_id first end
            records i; how many of the offsets are records
            delivery_count i; 0: not told
        """),
        "time_ms",
    ),
    "locks": Table(
        "Every lock that was taken, renewed, or ran out.",
        tables.LOCKS,
        columns(f"""
            {_KEY} load order time_ms leader first end records delivery_count
            event s; acquired, renewed or timed_out
            member_id s; who holds it; null when it has run out
            deadline_ms i; when it runs out, unless something happens
            lock_ms i; how long that is from now
            state s; of the records now: acquired, available, archived
        """),
        "time_ms",
    ),
    "windows": Table(
        "The window of a share-partition after each of its moves.",
        tables.WINDOWS,
        columns(f"""
            {_KEY} load order time_ms
            until_ms i; when it moved again, or its leader ended; null while it stands
            leader
            spso i; share-partition start offset: what is below is done with
            speo i; the offset after the last one in flight
            in_flight i; offsets between them
            record_locks i; how many may be
            complete i; offsets in the window that are done with, durably
            log_end i; end of the log
            lag i; log_end - spso - complete
        """),
        "time_ms",
    ),
    "attempts": Table(
        "What became of records that were acquired: a row a run of offsets that fared alike.",
        tables.ATTEMPTS,
        columns(f"""
            {_KEY} load
            order i; place of the acquisition in the journal
            leader first end records delivery_count member_id
            appended_ms i; when the records were written to the log; null if the journal does not tell
            acquired_ms i; when the member acquired them
            renewals i; how often their locks were renewed
            ended_ms i; when the outcome was known, and durable where it has to be
            outcome s; {tables.OUTCOMES}
            state s; of the records afterwards: available, acknowledged, archived; null where nothing ended
        """),
        "acquired_ms",
    ),
    "members": Table(
        "Each time a member was in a group.",
        tables.MEMBERS,
        columns("""
            journal group_id member_id
            spell i; which time, from 1; 0: joined before the journal begins
            client_id
            topics a; what it subscribed to
            since_ms i; when it was first heard of
            until_ms i; when it was last heard of
            left_ms i; when it left; null if it did not
            reason s; why
            member_epoch i; the highest
            heartbeats i; how many came
            refused_heartbeats i; those that were answered with an error
        """),
        "since_ms",
    ),
    "writes": Table(
        "State writes, as the leaders that sent them saw them.",
        tables.WRITES,
        columns(f"""
            {_KEY} order leader
            write_id i; counts up while a share-partition is loaded
            prepared_ms i; when it was sent
            settled_ms i; when the answer came; null: never
            error i; Kafka's code
            outcome s; durable, failed, or untold
            start_offset i; the SPSO that it writes, -1: the one before
            delivery_complete_count i; of the window then
            batches i; state batches
            records i; offsets in them
        """),
        "prepared_ms",
    ),
    "latency": Table(
        "How long records waited: from the append to the first acquisition (delivery), from an acquisition to its "
        "durable acceptance (processing), and from the append to it (whole).",
        figures.LATENCY,
        columns("""
            journal group_id topic
            stage s; delivery, processing or whole
            records i; how many it is about
            mean_ms d; the mean
            p50_ms d; the median
            p90_ms d; nine of ten waited no longer
            p95_ms d; 19 of 20
            p99_ms d; 99 of 100
            max_ms d; the longest
        """),
    ),
    "redeliveries": Table(
        "How the nth deliveries ended.",
        figures.REDELIVERIES,
        columns("""
            journal group_id topic delivery_count
            outcome s; as in attempts
            records
        """),
    ),
    "rates": Table(
        "What became of the records of a topic.",
        figures.RATES,
        columns("""
            journal group_id topic acquired accepted
            released i; given back by members
            rejected i; refused by members
            timed_out i; whose locks ran out
            session_released i; given back because a session ended
            lost i; whose leader ended
            held i; still acquired
            archived i; archived after they had been acquired
            redelivered i; of the acquired ones, not for the first time
            redelivery_rate d; redelivered / acquired
            time_out_rate d; timed_out / acquired
            archive_rate d; archived / (accepted + archived)
            accepted_per_s d; accepted / length of the journal
        """),
    ),
    "activity": Table(
        "What happened to records over time.",
        figures.ACTIVITY,
        columns("""
            journal group_id topic
            what s; acquired, accepted, returned or archived
            bin
            records
        """),
    ),
    "occupancy": Table(
        "How full windows were, on average over the time that a leader had them.",
        figures.OCCUPANCY,
        columns(f"""
            {_KEY}
            ms i; how long that was
            mean_in_flight d; offsets in flight
            max_in_flight i; at most
            mean_occupancy d; in_flight / record_locks
            full_share d; part of the time in which the window was as wide as it may be
        """),
    ),
    "shares": Table(
        "What each member did.",
        figures.SHARES,
        columns("""
            journal group_id member_id client_id acquired accepted
        """),
    ),
    "fairness": Table(
        "How evenly the members of a group worked.",
        figures.FAIRNESS,
        columns("""
            journal group_id
            members i; all that were ever there
            accepted
            fairness d; Jain's index of what they accepted: 1 if all accepted the same, 1 / members if one did all
        """),
    ),
    "poison": Table(
        "Records that failed twice or more, or were archived for it.",
        figures.POISON,
        columns(f"""
            {_KEY} first end records
            failures i; how often they were acquired in vain
            time_outs i; because the lock ran out
            releases i; because they were released
            rejects i; because they were rejected
            session_releases i; because the session ended
            archived b; whether that was their end
        """),
    ),
    "lag": Table(
        "How far a group was behind at the end of each part of the journal's time.",
        figures.LAG,
        columns(f"""
            {_KEY} bin
            log_end i; end of the log
            done i; SPSO + complete
            lag i; log_end - done
        """),
    ),
}  # fmt: skip
"""By name, each after those that it is made of."""

FRAMES: Final[Mapping[str, str]] = {"reigns": tables.REIGNS}
"""What several tables are made of, and is none itself: so few rows that all tasks get them, by way of the driver."""

EVENTS_SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in events.columns().items())


def as_json() -> dict[str, Any]:
    """What stands in `schema.json` beside the tables."""
    described = {name: [column._asdict() for column in table.dated()] for name, table in TABLES.items()}
    return {"version": VERSION, "tables": described}


def as_markdown() -> str:
    """The document `TABLES.md`."""
    about = (
        f"Version {VERSION} of the schema, as `shareq pipeline run TRACE --out DIR` writes them: Parquet, a folder a "
        "table. Offsets are half-open ranges [first, end), times ms since the epoch. Tables that have a date are "
        "partitioned by `group_id` and `date` (UTC). Beside them: `events` (every event, a column for each field of "
        "`shareq.model.events`, partitioned by batch and type), `_bad` (journal, reason, line: what was no event), "
        "`schema.json`, `report.html`."
    )
    parts = ["# The tables of a trace", about]
    for name, table in TABLES.items():
        rows = "\n".join(f"| `{c.name}` | {c.type} | {c.says} |" for c in table.dated())
        parts.append(f"## {name}\n\n{table.says}\n\n| column | type | what it says |\n| --- | --- | --- |\n{rows}")
    return "\n\n".join(parts) + "\n"
