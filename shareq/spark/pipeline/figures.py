"""The figures of a trace, computed from its tables in Spark's SQL. They are small, whatever the length of the trace.

Averages and percentiles of times are weighted by records, as if each record had a row of its own.
"""

from __future__ import annotations

from typing import Final

from shareq.spark.pipeline.tables import of_leaders

BINS = 120
"""The number of time bins of a journal in figures over time."""

_GROUP = "journal, group_id, topic"
_KEY = f"{_GROUP}, partition"


EXPIRED: Final = ("expired", "skipped")
"""The events in `kept_back` that archive records for their age."""


def _share(part: str, whole: str) -> str:
    return f"CAST({part} AS double) / nullif({whole}, 0)"


def _where(outcome: str) -> str:
    return f"coalesce(sum(records) FILTER (WHERE outcome = '{outcome}'), 0)"


LATENCY: Final = f"""
    WITH stages AS (
        SELECT {_GROUP}, 'delivery' AS stage, acquired_ms - appended_ms AS ms, records
        FROM {{attempts}} WHERE delivery_count = 1 AND appended_ms IS NOT NULL
        UNION ALL
        SELECT {_GROUP}, 'processing' AS stage, ended_ms - acquired_ms AS ms, records
        FROM {{attempts}} WHERE outcome = 'accept'
        UNION ALL
        SELECT {_GROUP}, 'whole' AS stage, ended_ms - appended_ms AS ms, records
        FROM {{attempts}} WHERE outcome = 'accept' AND appended_ms IS NOT NULL
    ), cut AS (
        SELECT {_GROUP}, stage, sum(records) AS records, {_share("sum(ms * records)", "sum(records)")} AS mean_ms,
               percentile(ms, array(0.5, 0.9, 0.95, 0.99), records) AS p, CAST(max(ms) AS double) AS max_ms
        FROM stages GROUP BY {_GROUP}, stage
    )
    SELECT {_GROUP}, stage, records, mean_ms, p[0] AS p50_ms, p[1] AS p90_ms, p[2] AS p95_ms, p[3] AS p99_ms, max_ms
    FROM cut
"""

REDELIVERIES: Final = f"""
    SELECT {_GROUP}, delivery_count, outcome, sum(records) AS records
    FROM {{attempts}} GROUP BY {_GROUP}, delivery_count, outcome
"""

RATES: Final = f"""
    WITH counted AS (
        SELECT {_GROUP}, sum(records) AS acquired, {_where("accept")} AS accepted, {_where("release")} AS released,
               {_where("reject")} AS rejected, {_where("lock_timeout")} AS timed_out,
               {_where("session_release")} AS session_released, {_where("txn_abort")} AS txn_aborted,
               {_where("lost")} AS lost, {_where("held")} AS held,
               coalesce(sum(records) FILTER (WHERE state IN ('archiving', 'archived')), 0) AS archived,
               coalesce(sum(records) FILTER (WHERE delivery_count > 1), 0) AS redelivered
        FROM {{attempts}} GROUP BY {_GROUP}
    ), old AS (
        SELECT {_GROUP}, sum(records) AS expired FROM {{kept_back}} WHERE event IN {EXPIRED} GROUP BY {_GROUP}
    )
    SELECT c.*, coalesce(o.expired, 0) AS expired, {_share("c.redelivered", "c.acquired")} AS redelivery_rate,
           {_share("c.timed_out", "c.acquired")} AS time_out_rate,
           {_share("c.archived", "(c.accepted + c.archived)")} AS archive_rate,
           {_share("c.accepted * 1000", "(j.until_ms - j.since_ms)")} AS accepted_per_s
    FROM counted c JOIN {{journals}} j ON c.journal = j.journal
    LEFT JOIN old o ON c.journal = o.journal AND c.group_id = o.group_id AND c.topic = o.topic
"""

ACTIVITY: Final = f"""
    WITH happened AS (
        SELECT {_GROUP}, acquired_ms AS time_ms, 'acquired' AS what, records FROM {{attempts}}
        UNION ALL
        SELECT {_GROUP}, ended_ms AS time_ms, 'accepted' AS what, records FROM {{attempts}} WHERE outcome = 'accept'
        UNION ALL
        SELECT {_GROUP}, ended_ms AS time_ms, 'returned' AS what, records FROM {{attempts}} WHERE state = 'available'
        UNION ALL
        SELECT {_GROUP}, ended_ms AS time_ms, 'archived' AS what, records FROM {{attempts}}
        WHERE state IN ('archiving', 'archived')
        UNION ALL
        SELECT {_GROUP}, time_ms, 'expired' AS what, records FROM {{kept_back}} WHERE event IN {EXPIRED}
    )
    SELECT h.journal, h.group_id, h.topic, h.what,
           CAST((h.time_ms - j.since_ms) * {BINS} DIV (j.until_ms - j.since_ms + 1) AS int) AS bin,
           sum(h.records) AS records
    FROM happened h JOIN {{journals}} j ON h.journal = j.journal
    GROUP BY h.journal, h.group_id, h.topic, h.what, bin
"""

OCCUPANCY: Final = f"""
    WITH held AS (
        SELECT w.*, coalesce(w.until_ms, j.until_ms) - w.time_ms AS ms FROM {{windows}} w JOIN {{journals}} j
            ON w.journal = j.journal
    )
    SELECT {_KEY}, sum(ms) AS ms, {_share("sum(in_flight * ms)", "sum(ms)")} AS mean_in_flight,
           max(in_flight) AS max_in_flight,
           sum(CAST(in_flight AS double) / record_locks * ms) / nullif(sum(ms), 0) AS mean_occupancy,
           {_share("sum(CASE WHEN in_flight >= record_locks THEN ms ELSE 0 END)", "sum(ms)")} AS full_share
    FROM held GROUP BY {_KEY}
"""

SHARES: Final = """
    WITH worked AS (
        SELECT journal, group_id, member_id, sum(records) AS acquired,
               coalesce(sum(records) FILTER (WHERE outcome = 'accept'), 0) AS accepted
        FROM {attempts} GROUP BY journal, group_id, member_id
    ), known AS (
        SELECT journal, group_id, member_id, max(client_id) AS client_id FROM {members}
        GROUP BY journal, group_id, member_id
    )
    SELECT coalesce(w.journal, k.journal) AS journal, coalesce(w.group_id, k.group_id) AS group_id,
           coalesce(w.member_id, k.member_id) AS member_id, k.client_id,
           coalesce(w.acquired, 0) AS acquired, coalesce(w.accepted, 0) AS accepted
    FROM worked w FULL JOIN known k
      ON w.journal = k.journal AND w.group_id = k.group_id AND w.member_id = k.member_id
"""

FAIRNESS: Final = f"""
    SELECT journal, group_id, count(*) AS members, sum(accepted) AS accepted,
           {_share("sum(accepted) * sum(accepted)", "(count(*) * sum(accepted * accepted))")} AS fairness
    FROM {{shares}} GROUP BY journal, group_id
"""

POISON: Final = f"""
    WITH changes AS (
        SELECT {_KEY}, `first`, `end`, 1 AS failures, int(outcome = 'lock_timeout') AS time_outs,
               int(outcome = 'release') AS releases, int(outcome = 'reject') AS rejects,
               int(outcome = 'session_release') AS session_releases, int(outcome = 'txn_abort') AS txn_aborts,
               int(state IN ('archiving', 'archived')) AS archived
        FROM {{attempts}} WHERE outcome IN ('lock_timeout', 'release', 'reject', 'session_release', 'txn_abort')
    ), edges AS (
        SELECT {_KEY}, `first` AS at, failures, time_outs, releases, rejects, session_releases, txn_aborts, archived
        FROM changes
        UNION ALL
        SELECT {_KEY}, `end` AS at, -failures, -time_outs, -releases, -rejects, -session_releases, -txn_aborts,
               -archived
        FROM changes
    ), walk AS (
        SELECT {_KEY}, at AS `first`, lead(at) OVER (PARTITION BY {_KEY} ORDER BY at) AS `end`,
               sum(failures) OVER so_far AS failures, sum(time_outs) OVER so_far AS time_outs,
               sum(releases) OVER so_far AS releases, sum(rejects) OVER so_far AS rejects,
               sum(session_releases) OVER so_far AS session_releases, sum(txn_aborts) OVER so_far AS txn_aborts,
               sum(archived) OVER so_far > 0 AS archived
        FROM edges
        WINDOW so_far AS (PARTITION BY {_KEY} ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )
    SELECT {_KEY}, `first`, `end`, `end` - `first` AS records, failures, time_outs, releases, rejects,
           session_releases, txn_aborts, archived
    FROM walk WHERE `first` < `end` AND (failures >= 2 OR archived)
"""

WORST_RUNS: Final = 20

WORST: Final = f"""
    SELECT * FROM (
        SELECT *, count(*) OVER of_group AS runs, sum(records) OVER of_group AS all_records, row_number() OVER (
                   PARTITION BY journal, group_id ORDER BY failures DESC, archived DESC, topic, partition, `first`
               ) AS place
        FROM {{poison}} WINDOW of_group AS (PARTITION BY journal, group_id)
    ) WHERE place <= {WORST_RUNS}
"""
"""Not a table: the runs of `poison` with the most failures, of each group; and of how many, with how many records."""

LAG: Final = f"""
    WITH finished AS ({
    of_leaders(
        f"r.{_KEY.replace(', ', ', r.')}, e.`order`, e.time_ms, e.`end` - e.`first` AS records", "RecordsChanged"
    )
} AND e.state IN ('acknowledged', 'archived')
    ), steps AS (
        SELECT {_KEY}, `order`, time_ms, log_end, spso + complete AS done, 0 AS records FROM {{windows}}
        UNION ALL
        SELECT {_KEY}, `order`, time_ms, NULL AS log_end, NULL AS done, records FROM finished
        UNION ALL
        SELECT journal, k.group_id, topic, partition, `order`, time_ms, `end` AS log_end, NULL AS done, 0 AS records
        FROM {{events}} e JOIN (SELECT DISTINCT {_KEY} FROM {{windows}}) k USING (journal, topic, partition)
        WHERE e.type = 'RecordsAppended'
    ), counted AS (
        SELECT *, sum(records) OVER so_far AS total FROM steps
        WINDOW so_far AS (PARTITION BY {_KEY} ORDER BY `order`)
    ), known AS (
        SELECT {_KEY}, `order`, time_ms, last_value(log_end) IGNORE NULLS OVER so_far AS log_end,
               total + (last_value(done - total) IGNORE NULLS OVER so_far) AS done
        FROM counted WINDOW so_far AS (PARTITION BY {_KEY} ORDER BY `order`)
    ), moments AS (
        SELECT {_KEY}, time_ms, max_by(log_end, `order`) AS log_end, max_by(done, `order`) AS done
        FROM known WHERE done IS NOT NULL GROUP BY {_KEY}, time_ms
    ), steps_of_bins AS (
        SELECT {_KEY}, CAST((m.time_ms - j.since_ms) * {BINS} DIV (j.until_ms - j.since_ms + 1) AS int) AS bin,
               max_by(log_end, time_ms) AS log_end, max_by(done, time_ms) AS done, max(log_end - done) AS most
        FROM moments m JOIN {{journals}} j USING (journal) GROUP BY {_KEY}, bin
    ), bins AS (
        SELECT {_KEY}, explode(sequence(min(bin), {BINS} - 1)) AS bin FROM steps_of_bins GROUP BY {_KEY}
    ), filled AS (
        SELECT {_KEY}, bin, most, last_value(log_end) IGNORE NULLS OVER so_far AS log_end,
               last_value(done) IGNORE NULLS OVER so_far AS done
        FROM bins LEFT JOIN steps_of_bins USING (journal, group_id, topic, partition, bin)
        WINDOW so_far AS (PARTITION BY {_KEY} ORDER BY bin)
    )
    SELECT {_KEY}, bin, log_end, done, greatest(log_end - done, 0) AS lag,
           greatest(most, lag(log_end - done) OVER (PARTITION BY {_KEY} ORDER BY bin), 0) AS max_lag
    FROM filled
"""
"""`finished` between two moves of the window adds to what was complete at the first of them. Of several changes in a
millisecond only the last one counts, as in `shareq.trace`.
"""
