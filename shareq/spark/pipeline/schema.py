"""The schema of the tables of a trace, with descriptions; `TABLES.md` beside this file is generated from it.

`VERSION` is raised when a column changes its meaning or is removed; new columns and tables do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shareq.spark.pipeline import events, figures, tables
from shareq.spark.pipeline.columns import TableSpec, columns

VERSION: Final = 3


_KEY = "journal group_id topic partition"

TABLES: Final[Mapping[str, TableSpec]] = {
    "journals": TableSpec(
        "The journals, and what is missing in them.",
        tables.JOURNALS,
        columns("""
            journal
            events i; number of valid events
            first_order i; order of the first event
            last_order i; order of the last event
            missing i; missing orders in between: bad lines, or entries that a bounded journal has dropped
            since_ms i; time of the first event
            until_ms i; time of the last event
        """),
    ),
    "leaderships": TableSpec(
        "The leaderships: each time a broker loaded a share-partition.",
        tables.LEADERSHIPS,
        columns(f"""
            {_KEY} load
            next_load i; the next load, by any broker
            leader i; the broker
            since_ms i; time of the load
            until_ms i; time of its end; null while it lasts
            ended s; dropped, stopped (the broker was), superseded (another broker loaded it), or null
            spso i; SPSO at the load
            window_end i; the offset after the SPEO at the load; spso if the window was empty
            max_record_locks i; the limit of locked records
            delivery_count_limit i; the limit of deliveries of a record
            lock_duration_ms i; the lock duration
            state_epoch i; of the durable state
            leader_epoch i; of the partition
            topic_made i; order of the topic's creation; null: before the journal begins
            next_made i; order of the next creation of a topic with this name
        """),
        "since_ms",
    ),
    "deliveries": TableSpec(
        "The records that polls returned to applications.",
        tables.DELIVERIES,
        columns(f"""
            {_KEY} order time_ms member_id client_id first end
            records i; number of records among the offsets
            delivery_count i; 0: unknown
        """),
        "time_ms",
    ),
    "locks": TableSpec(
        "Every acquisition, renewal and expiration of locks.",
        tables.LOCKS,
        columns(f"""
            {_KEY} load order time_ms leader first end records delivery_count
            event s; acquired, renewed or timed_out
            member_id s; the owner of the locks; null after an expiration
            deadline_ms i; time at which the locks expire
            lock_ms i; time from now to the deadline
            state s; of the records afterwards: acquired, available, archiving, archived
        """),
        "time_ms",
    ),
    "kept_back": TableSpec(
        "What keeps records from being acquired: rests after a release, acknowledgements in open transactions, and the "
        "time to live of records. Only the brokers' experiments have such events.",
        tables.KEPT_BACK,
        columns(f"""
            {_KEY} load order time_ms leader first end records delivery_count
            event s; rests, rested, staged, txn_commit, txn_abort, expired, or skipped: expired, and never in the window
            acknowledgement s; accept, reject or release; null: none
            until_ms i; end of the rest; null if none begins
            state s; of the records afterwards; null if they are skipped
        """),
        "time_ms",
    ),
    "windows": TableSpec(
        "The window of a share-partition after each of its moves.",
        tables.WINDOWS,
        columns(f"""
            {_KEY} load order time_ms
            until_ms i; time of the next move, or of the end of the leadership; null while it lasts
            leader
            spso i; share-partition start offset: all offsets below are finished
            window_end i; the offset after the SPEO, the last one in flight; spso if the window is empty
            in_flight i; offsets between them
            record_locks i; the limit of in_flight
            complete i; offsets in the window that are durably finished
            log_end i; end of the log
            lag i; log_end - spso - complete
        """),
        "time_ms",
    ),
    "attempts": TableSpec(
        "The outcomes of acquisitions: one row per run of offsets with the same history.",
        tables.ATTEMPTS,
        columns(f"""
            {_KEY} load
            order i; order of the acquisition in the journal
            leader first end records delivery_count member_id
            appended_ms i; time of the append; null if the journal does not have it
            acquired_ms i; time of the acquisition
            renewals i; number of lock renewals
            ended_ms i; time at which the outcome was known, and durable if it is written to the state
            outcome s; {tables.OUTCOMES}
            state s; of the records afterwards: available, acknowledged, archiving, archived; null if it has not ended
        """),
        "acquired_ms",
    ),
    "members": TableSpec(
        "The memberships: each time a member was in a group.",
        tables.MEMBERS,
        columns("""
            journal group_id member_id
            spell i; number of the membership, from 1; 0: joined before the journal begins
            client_id
            topics a; the subscription
            since_ms i; time of the first event
            until_ms i; time of the last event
            left_ms i; time of leaving; null if the member did not leave
            reason s; the reason of leaving
            member_epoch i; the highest one
            heartbeats i; number of heartbeats
            refused_heartbeats i; number of heartbeats with an error in the response
        """),
        "since_ms",
    ),
    "writes": TableSpec(
        "State writes, as recorded by the leaders that sent them.",
        tables.WRITES,
        columns(f"""
            {_KEY} order leader
            write_id i; counts up while a share-partition is loaded
            prepared_ms i; time of sending
            settled_ms i; time of the response; null: none
            error i; Kafka's code
            outcome s; durable, failed, or unknown (no response)
            start_offset i; the written SPSO; -1: unchanged
            delivery_complete_count i; of the window at that time
            batches i; number of state batches
            records i; number of offsets in them
        """),
        "prepared_ms",
    ),
    "latency": TableSpec(
        "Waiting times of records: from the append to the first acquisition (delivery), from an acquisition to its "
        "durable acceptance (processing), and from the append to the acceptance (whole).",
        figures.LATENCY,
        columns("""
            journal group_id topic
            stage s; delivery, processing or whole
            records i; number of records
            mean_ms d; the mean
            p50_ms d; the median
            p90_ms d; the 90th percentile
            p95_ms d; the 95th percentile
            p99_ms d; the 99th percentile
            max_ms d; the maximum
        """),
    ),
    "redeliveries": TableSpec(
        "The outcomes of the nth deliveries.",
        figures.REDELIVERIES,
        columns("""
            journal group_id topic delivery_count
            outcome s; as in attempts
            records
        """),
    ),
    "rates": TableSpec(
        "The outcomes of the records of a topic.",
        figures.RATES,
        columns("""
            journal group_id topic acquired accepted
            released i; released by members
            rejected i; rejected by members
            timed_out i; whose locks expired
            session_released i; released at the end of a share session
            txn_aborted i; acknowledged in transactions that were aborted
            lost i; in flight at the end of a leadership
            held i; still acquired
            archived i; archived after an acquisition
            redelivered i; acquired, but not for the first time
            expired i; archived instead of acquired, as their time to live was over
            redelivery_rate d; redelivered / acquired
            time_out_rate d; timed_out / acquired
            archive_rate d; archived / (accepted + archived)
            accepted_per_s d; accepted / length of the journal
        """),
    ),
    "activity": TableSpec(
        "Records by what happened to them, over time.",
        figures.ACTIVITY,
        columns("""
            journal group_id topic
            what s; acquired, accepted, returned, archived, or expired: archived instead of acquired
            bin
            records
        """),
    ),
    "occupancy": TableSpec(
        "The occupancy of windows, averaged over the time of a leadership.",
        figures.OCCUPANCY,
        columns(f"""
            {_KEY}
            ms i; the duration of the average
            mean_in_flight d; mean offsets in flight
            max_in_flight i; most offsets in flight
            mean_occupancy d; mean of in_flight / record_locks
            full_share d; part of the time in which in_flight was at its limit
        """),
    ),
    "shares": TableSpec(
        "The work of each member.",
        figures.SHARES,
        columns("""
            journal group_id member_id client_id acquired accepted
        """),
    ),
    "fairness": TableSpec(
        "The distribution of work among the members of a group.",
        figures.FAIRNESS,
        columns("""
            journal group_id
            members i; all members over time
            accepted
            fairness d; Jain's index of accepted records: 1 if all accepted the same, 1 / members if one accepted all
        """),
    ),
    "poison": TableSpec(
        "Records that failed twice or more, or were archived after a failure.",
        figures.POISON,
        columns(f"""
            {_KEY} first end records
            failures i; acquisitions that failed
            time_outs i; by an expired lock
            releases i; by a release
            rejects i; by a reject
            session_releases i; by the end of a share session
            txn_aborts i; by the abort of the transaction that acknowledged them
            archived b; true if the records were archived
        """),
    ),
    "lag": TableSpec(
        "The lag of a group in each time bin, from the moment on at which the group's start offset is known.",
        figures.LAG,
        columns(f"""
            {_KEY} bin
            log_end i; end of the log at the end of the bin
            done i; SPSO and the durably finished offsets above it, at the end of the bin
            lag i; log_end - done
            max_lag i; the most at any millisecond of the bin
        """),
    ),
}  # fmt: skip
"""The tables by name, each after its inputs."""

FRAMES: Final[Mapping[str, str]] = {"all_leaderships": tables.ALL_LEADERSHIPS, "worst": figures.WORST}
"""What is not written: an input of several tables, and the part of one that the report shows. Both are small."""

EVENTS_SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in events.columns().items())


def as_json() -> dict[str, Any]:
    """The contents of `schema.json` beside the tables."""
    described = {name: [column._asdict() for column in table.dated()] for name, table in TABLES.items()}
    return {"version": VERSION, "tables": described}


def as_markdown() -> str:
    """The document `TABLES.md`."""
    about = (
        f"Version {VERSION} of the schema, as written by `shareq pipeline run TRACE --out DIR`: Parquet, one folder "
        "per table. Offsets are half-open ranges [first, end), times ms since the epoch. Tables with a date are "
        "partitioned by `group_id` and `date` (UTC). Beside them: `events` (every event, a column for each field of "
        "`shareq.model.events`, partitioned by batch and type), `_bad` (journal, reason, line: the invalid lines), "
        "`schema.json`, `report.html`."
    )
    parts = ["# The tables of a trace", about]
    for name, table in TABLES.items():
        rows = "\n".join(f"| `{c.name}` | {c.type} | {c.meaning} |" for c in table.dated())
        parts.append(f"## {name}\n\n{table.about}\n\n| column | type | meaning |\n| --- | --- | --- |\n{rows}")
    return "\n\n".join(parts) + "\n"
