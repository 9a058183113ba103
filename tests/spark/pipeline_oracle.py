"""An independent computation of the tables of a trace: in DuckDB, record by record, on the same journals.

It uses no runs of offsets, no delivery counts and no pass over the events in order: for each record and each
acquisition it looks for the first event that ended it, whatever that costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from shareq.spark.pipeline.events import columns, json_columns
from shareq.spark.pipeline.figures import BINS
from shareq.spark.pipeline.schema import TABLES
from shareq.trace import Entry, Journal
from shareq.trace.journal.event_codec import encode

STATES = ("available", "acquired", "acknowledged", "archiving", "archived")
KEY = "journal, group_id, topic, partition"

BASE = f"""
    CREATE VIEW loads AS SELECT * FROM ev WHERE type = 'SharePartitionLoaded';

    CREATE VIEW changes AS
        SELECT e.*, coalesce(l."order", -1) AS load FROM ev e ASOF LEFT JOIN loads l
          ON e.journal = l.journal AND e.group_id = l.group_id AND e.topic = l.topic AND e.partition = l.partition
         AND e."order" >= l."order"
        WHERE e.type IN ('SharePartitionLoaded', 'WindowMoved', 'RecordsChanged', 'ExpiredRecordsSkipped')
          AND (l.broker IS NULL OR l.broker = e.broker);

    CREATE VIEW journals AS
        SELECT journal, count(*) AS events, min("order") AS first_order, max("order") AS last_order,
               max("order") + 1 - min("order") - count(*) AS missing, min(time_ms) AS since_ms, max(time_ms) AS until_ms
        FROM ev GROUP BY ALL;

    CREATE VIEW spells AS
        SELECT l.*, (SELECT min(n."order") FROM loads n WHERE n.journal = l.journal AND n.group_id = l.group_id
                     AND n.topic = l.topic AND n.partition = l.partition AND n."order" > l."order") AS next_load,
               (SELECT max(t."order") FROM ev t WHERE t.type = 'TopicCreated' AND t.journal = l.journal
                AND t.topic = l.topic AND t."order" < l."order") AS topic_made,
               (SELECT min(t."order") FROM ev t WHERE t.type = 'TopicCreated' AND t.journal = l.journal
                AND t.topic = l.topic AND t."order" > l."order") AS next_made
        FROM loads l;

    CREATE VIEW spell_ends AS
        SELECT s.{KEY.replace(", ", ", s.")}, s."order" AS load, min(e."order") AS ended_by
        FROM spells s JOIN ev e ON e.journal = s.journal AND e."order" > s."order" AND (
               (e.type = 'BrokerStopped' AND e.broker_id = s.broker)
            OR (e.type = 'SharePartitionDropped' AND e.broker = s.broker AND e.group_id = s.group_id
                AND e.topic = s.topic AND e.partition = s.partition)
            OR e."order" = s.next_load)
        GROUP BY ALL;

    CREATE TABLE leaderships AS
        SELECT s.{KEY.replace(", ", ", s.")}, s."order" AS load, s.next_load, s.broker AS leader, s.time_ms AS since_ms,
               e.time_ms AS until_ms, CASE e.type WHEN 'BrokerStopped' THEN 'stopped' WHEN 'SharePartitionDropped'
               THEN 'dropped' WHEN 'SharePartitionLoaded' THEN 'superseded' END AS ended,
               s.spso, s.window_end, s.max_record_locks, s.delivery_count_limit, s.lock_duration_ms, s.state_epoch,
               s.leader_epoch, s.topic_made, s.next_made
        FROM spells s LEFT JOIN spell_ends x ON (s.journal, s.group_id, s.topic, s.partition, s."order")
                                              = (x.journal, x.group_id, x.topic, x.partition, x.load)
        LEFT JOIN ev e ON e.journal = s.journal AND e."order" = x.ended_by;

    CREATE TABLE changed AS
        SELECT {KEY}, load, "order", time_ms, broker, cause, why, state, delivery_count, member_id,
               unnest(range("first", "end")) AS o
        FROM changes WHERE type = 'RecordsChanged';

    CREATE TABLE records AS
        WITH begun AS (
            SELECT *, lead("order") OVER (PARTITION BY {KEY}, load, o ORDER BY "order") AS again
            FROM changed WHERE cause = 'acquire' AND state = 'acquired'
        ), ended AS (
            SELECT b.{KEY.replace(", ", ", b.")}, b."order", b.o, min(e."order") AS ended_by
            FROM begun b JOIN changed e USING ({KEY}, load, o)
            WHERE e."order" > b."order" AND e."order" < coalesce(b.again, 4611686018427387904)
              AND e.cause NOT IN ('acquire', 'renew', 'prepared', 'staged')
              AND NOT (e.cause = 'abandoned' AND e.state = 'acquired')
            GROUP BY ALL
        )
        SELECT b.{KEY.replace(", ", ", b.")}, b.load, b."order", b.broker AS leader, b.o, b.delivery_count, b.member_id,
               (SELECT arg_max(a.time_ms, a."order") FROM ev a WHERE a.type = 'RecordsAppended'
                AND a.journal = b.journal AND a.topic = b.topic AND a.partition = b.partition AND a."order" < b."order"
                AND a."first" <= b.o AND b.o < a."end" AND a."order" > coalesce(l.topic_made, -1)) AS appended_ms,
               b.time_ms AS acquired_ms,
               (SELECT count(*) FROM changed r WHERE r.journal = b.journal AND r.group_id = b.group_id
                AND r.topic = b.topic AND r.partition = b.partition AND r.load = b.load AND r.o = b.o
                AND r.cause = 'renew' AND r."order" > b."order"
                AND r."order" < coalesce(b.again, 4611686018427387904)) AS renewals,
               CASE WHEN e.cause IS NOT NULL THEN e.time_ms WHEN NOT w.spso > b.o THEN l.until_ms END AS ended_ms,
               CASE WHEN e.cause IN ('settled', 'txn_commit') THEN e.why WHEN e.cause IS NOT NULL THEN e.cause
                    WHEN w.spso > b.o THEN 'passed' WHEN l.ended IS NOT NULL THEN 'lost' ELSE 'held' END AS outcome,
               e.state
        FROM begun b LEFT JOIN ended x USING ({KEY}, "order", o)
        LEFT JOIN changed e ON e.journal = b.journal AND e."order" = x.ended_by AND e.o = b.o
        LEFT JOIN leaderships l ON (l.journal, l.group_id, l.topic, l.partition, l.load)
                                 = (b.journal, b.group_id, b.topic, b.partition, b.load)
        LEFT JOIN (SELECT {KEY}, load, max(spso) AS spso FROM changes WHERE spso IS NOT NULL GROUP BY ALL) w
          ON (w.journal, w.group_id, w.topic, w.partition, w.load)
           = (b.journal, b.group_id, b.topic, b.partition, b.load);

    CREATE TABLE done AS
        SELECT {KEY}, load, "order", o FROM changed WHERE state IN ('acknowledged', 'archived')
        UNION ALL
        SELECT {KEY}, load, "order", unnest(range(run[1], run[2])) AS o
        FROM (SELECT *, unnest(runs) AS run FROM changes WHERE type = 'SharePartitionLoaded') WHERE run[3] IN (2, 4);

    CREATE TABLE windows AS
        WITH moves AS (
            SELECT w.{KEY.replace(", ", ", w.")}, w.load, w."order", w.time_ms, w.broker AS leader, w.spso,
                   w.window_end,
                   (SELECT count(*) FROM done d WHERE d.journal = w.journal AND d.group_id = w.group_id
                    AND d.topic = w.topic AND d.partition = w.partition AND d.load = w.load
                    AND d."order" <= w."order" AND d.o >= w.spso) AS complete,
                   (SELECT min(n."order") FROM changes n WHERE n.journal = w.journal AND n.group_id = w.group_id
                    AND n.topic = w.topic AND n.partition = w.partition AND n.load = w.load AND n.spso IS NOT NULL
                    AND n."order" > w."order") AS next_move,
                   (SELECT arg_max(coalesce(TRY_CAST(c.value AS BIGINT), 2000), c."order") FROM ev c
                    WHERE c.type = 'ConfigChanged' AND c.journal = w.journal AND c.resource = 'group:' || w.group_id
                    AND c.key = 'share.partition.max.record.locks' AND c."order" BETWEEN w.load AND w."order") AS locks
            FROM changes w WHERE w.spso IS NOT NULL
        )
        SELECT *, log_end - spso - complete AS lag FROM (
        SELECT m.{KEY.replace(", ", ", m.")}, m.load, m."order", m.time_ms, coalesce(n.time_ms, l.until_ms) AS until_ms,
               m.leader, m.spso, m.window_end, m.window_end - m.spso AS in_flight,
               coalesce(m.locks, l.max_record_locks) AS record_locks,
               m.complete, greatest(m.window_end, (
                   SELECT arg_max(a."end", a."order") FROM ev a WHERE a.type = 'RecordsAppended'
                   AND a.journal = m.journal AND a.topic = m.topic AND a.partition = m.partition
                   AND a."order" BETWEEN coalesce(l.topic_made, -1) AND m."order")) AS log_end
        FROM moves m LEFT JOIN ev n ON n.journal = m.journal AND n."order" = m.next_move
        LEFT JOIN leaderships l ON (l.journal, l.group_id, l.topic, l.partition, l.load)
                                 = (m.journal, m.group_id, m.topic, m.partition, m.load)
        );

    CREATE VIEW deliveries AS
        SELECT {KEY}, "order", time_ms, member_id, client_id, "first", "end", record_count AS records, delivery_count
        FROM ev WHERE type = 'RecordsDelivered';

    CREATE VIEW locks AS
        SELECT {KEY}, load, "order", time_ms, broker AS leader, "first", "end", "end" - "first" AS records,
               delivery_count,
               CASE cause WHEN 'acquire' THEN 'acquired' WHEN 'renew' THEN 'renewed' ELSE 'timed_out' END AS event,
               member_id, deadline_ms, deadline_ms - time_ms AS lock_ms, state
        FROM changes WHERE type = 'RecordsChanged'
          AND (cause IN ('renew', 'lock_timeout') OR (cause = 'acquire' AND state = 'acquired'));

    CREATE VIEW kept_back AS
        SELECT {KEY}, load, "order", time_ms, broker AS leader, "first", "end", "end" - "first" AS records,
               delivery_count, 'rests' AS event, why AS acknowledgement, deadline_ms AS until_ms, state
        FROM changes WHERE type = 'RecordsChanged' AND member_id IS NULL AND deadline_ms IS NOT NULL
        UNION ALL
        SELECT {KEY}, load, "order", time_ms, broker, "first", "end", "end" - "first", delivery_count, cause, why, NULL,
               state
        FROM changes
        WHERE cause IN ('rested', 'expired') OR starts_with(cause, 'txn') OR starts_with(cause, 'stage')
        UNION ALL
        SELECT {KEY}, load, "order", time_ms, broker, "first", "end", "end" - "first", NULL, 'skipped', NULL, NULL, NULL
        FROM changes WHERE type = 'ExpiredRecordsSkipped';

    CREATE VIEW members AS
        WITH seen AS (
            SELECT e.*, (SELECT count(*) FROM ev j WHERE j.type = 'MemberJoined' AND j.journal = e.journal
                         AND j.group_id = e.group_id AND j.member_id = e.member_id AND j."order" <= e."order") AS spell
            FROM ev e WHERE type IN ('MemberJoined', 'MemberLeft', 'MemberReconciled', 'HeartbeatReceived')
        )
        SELECT journal, group_id, member_id, spell, any_value(client_id) AS client_id,
               any_value(subscribed_topic_names) AS topics, min(time_ms) AS since_ms, max(time_ms) AS until_ms,
               max(time_ms) FILTER (type = 'MemberLeft') AS left_ms,
               arg_max(reason, "order") FILTER (type = 'MemberLeft') AS reason, max(member_epoch) AS member_epoch,
               count(*) FILTER (type = 'HeartbeatReceived') AS heartbeats,
               count(*) FILTER (type = 'HeartbeatReceived' AND error <> 0) AS refused_heartbeats
        FROM seen GROUP BY ALL;

    CREATE VIEW writes AS
        WITH sent AS (
            SELECT p.*, (SELECT min(s."order") FROM ev s WHERE s.type LIKE 'StateWrite%' AND s."order" > p."order"
                         AND (s.journal, s.group_id, s.topic, s.partition, s.broker, s.write_id)
                           = (p.journal, p.group_id, p.topic, p.partition, p.broker, p.write_id)) AS next_order
            FROM ev p WHERE p.type = 'StateWritePrepared'
        )
        SELECT p.{KEY.replace(", ", ", p.")}, p."order", p.broker AS leader, p.write_id, p.time_ms AS prepared_ms,
               s.time_ms AS settled_ms, s.error, CASE WHEN s.error = 0 THEN 'durable' WHEN s.error IS NOT NULL
               THEN 'failed' ELSE 'unknown' END AS outcome, p.start_offset, p.delivery_complete_count,
               len(p.state_batches) AS batches,
               coalesce(list_sum(list_transform(p.state_batches, lambda b: b[2] - b[1] + 1)), 0) AS records
        FROM sent p LEFT JOIN ev s
          ON s.journal = p.journal AND s."order" = p.next_order AND s.type = 'StateWriteSettled';
"""

FIGURES = f"""
    CREATE VIEW latency AS
        WITH stages AS (
            SELECT *, 'delivery' AS stage, acquired_ms - appended_ms AS ms FROM records WHERE delivery_count = 1
            UNION ALL SELECT *, 'processing', ended_ms - acquired_ms FROM records WHERE outcome = 'accept'
            UNION ALL SELECT *, 'whole', ended_ms - appended_ms FROM records WHERE outcome = 'accept'
        )
        SELECT journal, group_id, topic, stage, count(*) AS records, avg(ms) AS mean_ms,
               quantile_cont(ms, 0.5) AS p50_ms,
               quantile_cont(ms, 0.9) AS p90_ms, quantile_cont(ms, 0.95) AS p95_ms, quantile_cont(ms, 0.99) AS p99_ms,
               CAST(max(ms) AS DOUBLE) AS max_ms
        FROM stages WHERE ms IS NOT NULL GROUP BY ALL;

    CREATE VIEW redeliveries AS
        SELECT journal, group_id, topic, delivery_count, outcome, count(*) AS records FROM records GROUP BY ALL;

    CREATE VIEW rates AS
        SELECT r.journal, group_id, topic, count(*) AS acquired, count_if(outcome = 'accept') AS accepted,
               count_if(outcome = 'release') AS released, count_if(outcome = 'reject') AS rejected,
               count_if(outcome = 'lock_timeout') AS timed_out,
               count_if(outcome = 'session_release') AS session_released,
               count_if(outcome = 'txn_abort') AS txn_aborted, count_if(outcome = 'lost') AS lost,
               count_if(outcome = 'held') AS held, count_if(state IN ('archiving', 'archived')) AS archived,
               count_if(delivery_count > 1) AS redelivered,
               (SELECT coalesce(sum(len(range(k."first", k."end"))), 0) FROM kept_back k
                WHERE k.journal = r.journal AND k.group_id = r.group_id AND k.topic = r.topic
                AND k.event IN ('expired', 'skipped')) AS expired,
               redelivered / acquired AS redelivery_rate,
               timed_out / acquired AS time_out_rate, archived / nullif(accepted + archived, 0) AS archive_rate,
               accepted * 1000 / nullif(any_value(j.until_ms) - any_value(j.since_ms), 0) AS accepted_per_s
        FROM records r JOIN journals j USING (journal) GROUP BY ALL;

    CREATE VIEW activity AS
        WITH happened AS (
            SELECT *, 'acquired' AS what, acquired_ms AS at_ms FROM records
            UNION ALL SELECT *, 'accepted', ended_ms FROM records WHERE outcome = 'accept'
            UNION ALL SELECT *, 'returned', ended_ms FROM records WHERE state = 'available'
            UNION ALL SELECT *, 'archived', ended_ms FROM records WHERE state IN ('archiving', 'archived')
        ), counted AS (
            SELECT journal, group_id, topic, what, at_ms, 1 AS records FROM happened
            UNION ALL SELECT journal, group_id, topic, 'expired', time_ms, unnest(range("first", "end")) * 0 + 1
            FROM kept_back WHERE event IN ('expired', 'skipped')
        )
        SELECT journal, group_id, topic, what, (at_ms - since_ms) * {BINS} // (until_ms - since_ms + 1) AS bin,
               count(*) AS records
        FROM counted JOIN journals USING (journal) GROUP BY ALL;

    CREATE VIEW occupancy AS
        WITH held AS (
            SELECT w.*, coalesce(w.until_ms, j.until_ms) - w.time_ms AS span
            FROM windows w JOIN journals j USING (journal)
        )
        SELECT {KEY}, sum(span) AS ms, sum(in_flight * span) / nullif(sum(span), 0) AS mean_in_flight,
               max(in_flight) AS max_in_flight,
               sum(in_flight / record_locks * span) / nullif(sum(span), 0) AS mean_occupancy,
               coalesce(sum(span) FILTER (in_flight >= record_locks), 0) / nullif(sum(span), 0) AS full_share
        FROM held GROUP BY ALL;

    CREATE VIEW shares AS
        SELECT journal, group_id, member_id, any_value(client_id) AS client_id,
               count(o) AS acquired, count(*) FILTER (outcome = 'accept') AS accepted
        FROM (SELECT DISTINCT journal, group_id, member_id FROM members
              UNION SELECT DISTINCT journal, group_id, member_id FROM records)
        LEFT JOIN (SELECT journal, group_id, member_id, any_value(client_id) AS client_id FROM members GROUP BY ALL)
            USING (journal, group_id, member_id)
        LEFT JOIN records USING (journal, group_id, member_id)
        GROUP BY ALL;

    CREATE VIEW fairness AS
        SELECT journal, group_id, count(*) AS members, sum(accepted) AS accepted,
               sum(accepted) ** 2 / nullif(count(*) * sum(accepted ** 2), 0) AS fairness
        FROM shares GROUP BY ALL;

    CREATE VIEW poison AS
        SELECT {KEY}, o, count(*) AS failures, count_if(outcome = 'lock_timeout') AS time_outs,
               count_if(outcome = 'release') AS releases, count_if(outcome = 'reject') AS rejects,
               count_if(outcome = 'session_release') AS session_releases,
               count_if(outcome = 'txn_abort') AS txn_aborts,
               bool_or(state IN ('archiving', 'archived')) AS archived
        FROM records WHERE outcome IN ('lock_timeout', 'release', 'reject', 'session_release', 'txn_abort')
        GROUP BY ALL HAVING failures >= 2 OR archived;

    CREATE VIEW lag AS
        WITH ends AS (
            SELECT {KEY}, "order", time_ms, log_end FROM windows
            UNION ALL
            SELECT k.{KEY.replace(", ", ", k.")}, e."order", e.time_ms, e."end"
            FROM (SELECT DISTINCT {KEY} FROM windows) k JOIN ev e USING (journal, topic, partition)
            WHERE e.type = 'RecordsAppended'
        ), marks AS (
            SELECT {KEY}, "order", time_ms FROM ends
            UNION
            SELECT d.{KEY.replace(", ", ", d.")}, d."order", e.time_ms FROM done d JOIN ev e USING (journal, "order")
        ), moments AS (
            SELECT {KEY}, time_ms, max("order") AS last FROM marks GROUP BY ALL
        ), latest AS (
            SELECT m.*, (SELECT max(w."order") FROM windows w WHERE w."order" <= m.last AND (w.journal, w.group_id,
                         w.topic, w.partition) = (m.journal, m.group_id, m.topic, m.partition)) AS moved
            FROM moments m
        ), counted AS (
            SELECT l.*, (SELECT arg_max(e.log_end, e."order") FROM ends e WHERE e."order" <= l.last AND (e.journal,
                         e.group_id, e.topic, e.partition) = (l.journal, l.group_id, l.topic, l.partition)) AS log_end,
                   w.spso + (SELECT count(*) FROM done d WHERE d."order" <= l.last AND d.o >= w.spso
                             AND (d.journal, d.group_id, d.topic, d.partition, d.load)
                               = (w.journal, w.group_id, w.topic, w.partition, w.load)) AS done
            FROM latest l JOIN windows w ON (w.journal, w.group_id, w.topic, w.partition, w."order")
                                          = (l.journal, l.group_id, l.topic, l.partition, l.moved)
        ), placed AS (
            SELECT c.*, (time_ms - since_ms) * {BINS} // (until_ms - since_ms + 1) AS bin
            FROM counted c JOIN journals USING (journal)
        ), filled AS (
            SELECT k.{KEY.replace(", ", ", k.")}, b.bin,
                   (SELECT arg_max(log_end, time_ms) FROM placed p WHERE p.bin <= b.bin AND (p.journal, p.group_id,
                    p.topic, p.partition) = (k.journal, k.group_id, k.topic, k.partition)) AS log_end,
                   (SELECT arg_max(done, time_ms) FROM placed p WHERE p.bin <= b.bin AND (p.journal, p.group_id,
                    p.topic, p.partition) = (k.journal, k.group_id, k.topic, k.partition)) AS done
            FROM (SELECT {KEY}, min(bin) AS begun FROM placed GROUP BY ALL) k, range({BINS}) b(bin)
            WHERE b.bin >= k.begun
        )
        SELECT f.*, greatest(log_end - done, 0) AS lag, greatest(0,
               (SELECT max(log_end - done) FROM placed p WHERE (p.journal, p.group_id, p.topic, p.partition, p.bin)
                = (f.journal, f.group_id, f.topic, f.partition, f.bin)),
               (SELECT q.log_end - q.done FROM filled q WHERE (q.journal, q.group_id, q.topic, q.partition, q.bin + 1)
                = (f.journal, f.group_id, f.topic, f.partition, f.bin))) AS max_lag
        FROM filled f;
"""

BY_RECORD = {"attempts": "records", "poison": "poison"}
"""Tables that are compared record by record, with their names here: how rows are cut into runs may differ."""


def oracle(journals: Mapping[str, Journal]) -> Any:
    """A connection to a database with a view or table of each name."""
    import duckdb

    scalars = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_()}
    types = scalars | {f"array<{name}>": pa.list_(kind) for name, kind in scalars.items()}
    types["array<array<bigint>>"] = pa.list_(pa.list_(pa.int64()))
    schema = pa.schema([(name, types[kind]) for name, kind in columns().items()])
    rows = [_row(name, entry) for name, journal in journals.items() for entry in journal]
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("rows", pa.Table.from_pylist(rows, schema))
    connection.execute("CREATE TABLE ev AS FROM rows;" + BASE + FIGURES)
    return connection


def names_of(name: str) -> list[str]:
    """The columns in which a table is compared."""
    names = [column.name for column in TABLES[name].columns]
    by_record = [column for column in names if column not in ("first", "end", "records")] + ["o"]
    return by_record if name in BY_RECORD else names


def expected_of(oracle: Any, name: str) -> Counter[tuple[Any, ...]]:
    """The rows that a table must have, one per record in the tables of `BY_RECORD`."""
    names = ", ".join(f'"{column}"' for column in names_of(name))
    return counted(oracle.execute(f"SELECT {names} FROM {BY_RECORD.get(name, name)}").fetchall())


def written(out: Path, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table on disk; without a group there is no file."""
    import duckdb

    if not any(out.glob(f"{name}/**/*.parquet")):
        return Counter()
    by_record = ', unnest(range("first", "end")) AS o' if name in BY_RECORD else ""
    names = ", ".join(f'"{column}"' for column in names_of(name))
    parts = (
        "hive_partitioning = true, hive_types = {'group_id': VARCHAR}" if TABLES[name].time else "union_by_name = true"
    )
    files = f"read_parquet('{out}/{name}/**/*.parquet', {parts})"
    found = duckdb.connect().execute(f"SELECT {names} FROM (SELECT *{by_record} FROM {files})")
    return counted(found.fetchall())


def counted(rows: list[Any]) -> Counter[tuple[Any, ...]]:
    """How often each row occurs, with values that can be compared."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return f"{value:.9g}" if isinstance(value, float) else value


def _row(journal: str, entry: Entry) -> dict[str, Any]:
    """An entry as a row, without deeply nested fields: no table needs them."""
    order, time_ms, broker, event = entry
    row = {name: value for name, value in encode(event).items() if name not in json_columns()}
    row |= {name: STATES[row[name]] for name in ("state", "to_state") if row.get(name) is not None}
    return row | {
        "journal": journal,
        "order": order,
        "time_ms": time_ms,
        "broker": broker,
        "type": type(event).__name__,
    }
