"""The tables of a trace, in Spark's SQL, each computed from events and earlier tables.

A change of records counts only if it was recorded by the leader that last loaded the share-partition: a superseded
leader records changes of its own memory until it gets new metadata. `load`, the order of the load event, identifies the
leadership; within it a record has each delivery count at most once. So the runs of one share-partition, load and
delivery count are disjoint, both those of acquisitions and those of their ends, and one walk along the offsets matches
them, whatever their number: runs are not compared with each other, nor single records examined.

Each table reads the events once, and shuffles narrow rows: leaderships are represented by a number, and get their names
in the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shareq.model.configs import GroupConfig

_KEY = "journal, group_id, topic, partition"
_FOREVER = 2**63 - 1
RECORD_LOCKS = GroupConfig().partition_max_record_locks

OUTCOMES: Final = (
    "accept, release, reject, gap, lock_timeout, session_release, aborted, log_start, missing; "
    "txn_abort: acknowledged in a transaction that was aborted; "
    "passed: the SPSO moved past; lost: the leadership ended; held: still acquired"
)
"""The outcomes of attempts."""

DURABLE: Final = ("settled", "txn_commit")
"""The causes of changes that make an acknowledgement durable, which is their `why`."""

ENDED: Final = (*DURABLE, "lock_timeout", "txn_abort", "aborted")
GONE: Final = ("log_start", "missing")
"""The causes of changes that end an attempt; a record may be gone before its lock has ended."""

KEPT_BACK_BY: Final = ("rested", "staged", "txn_commit", "txn_abort", "expired")
"""The causes of the changes in the table `kept_back`, beside the beginning of a rest."""


def _same(left: str, right: str, names: str = _KEY) -> str:
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names.split(", "))


def _list(values: Iterable[str]) -> str:
    return f"({', '.join(map(repr, values))})"


def of_leaders(columns: str, *types: str) -> str:
    """Columns of e and r: events of these types, recorded by the leader at that time, and their leadership."""
    return f"""
        SELECT {columns}
        FROM {{events}} e JOIN {{all_leaderships}} r
          ON {_same("e", "r")} AND e.`order` >= r.load AND e.`order` < r.until
        WHERE e.type IN {_list(types)} AND (r.leader IS NULL OR r.leader = e.broker)"""


JOURNALS: Final = """
    SELECT journal, count(*) AS events, min(`order`) AS first_order, max(`order`) AS last_order,
           max(`order`) - min(`order`) + 1 - count(*) AS missing, min(time_ms) AS since_ms, max(time_ms) AS until_ms
    FROM {events} GROUP BY journal
"""

LEADERSHIPS: Final = f"""
    WITH loads AS (
        SELECT *, lead(`order`) OVER loading AS next_load, lead(time_ms) OVER loading AS next_ms
        FROM {{events}} WHERE type = 'SharePartitionLoaded'
        WINDOW loading AS (PARTITION BY {_KEY} ORDER BY `order`)
    ), ends AS (
        SELECT {_KEY.replace("journal", "l.journal", 1).replace(", ", ", l.")}, l.`order` AS load, 'dropped' AS ended,
               e.`order`, e.time_ms
        FROM loads l JOIN {{events}} e ON {_same("l", "e")} AND e.broker = l.broker
        WHERE e.type = 'SharePartitionDropped' AND e.`order` > l.`order`
        UNION ALL
        SELECT {_KEY.replace("journal", "l.journal", 1).replace(", ", ", l.")}, l.`order` AS load, 'stopped' AS ended,
               e.`order`, e.time_ms
        FROM loads l JOIN {{events}} e ON e.journal = l.journal AND e.broker_id = l.broker
        WHERE e.type = 'BrokerStopped' AND e.`order` > l.`order`
        UNION ALL
        SELECT {_KEY}, `order` AS load, 'superseded' AS ended, next_load AS `order`, next_ms AS time_ms
        FROM loads WHERE next_load IS NOT NULL
    ), first_ends AS (
        SELECT {_KEY}, load, min_by(ended, `order`) AS ended, min_by(time_ms, `order`) AS until_ms
        FROM ends GROUP BY {_KEY}, load
    ), topics AS (
        SELECT journal, topic, `order` AS topic_made, lead(`order`) OVER (
            PARTITION BY journal, topic ORDER BY `order`) AS next_made
        FROM {{events}} WHERE type = 'TopicCreated'
        UNION ALL
        SELECT journal, topic, NULL AS topic_made, min(`order`) AS next_made
        FROM {{events}} WHERE type = 'TopicCreated' GROUP BY journal, topic
    )
    SELECT l.journal, l.group_id, l.topic, l.partition, l.`order` AS load, l.next_load, l.broker AS leader,
           l.time_ms AS since_ms, x.until_ms, x.ended, l.spso, l.window_end, l.max_record_locks, l.delivery_count_limit,
           l.lock_duration_ms, l.state_epoch, l.leader_epoch, t.topic_made, t.next_made
    FROM loads l LEFT JOIN first_ends x ON {_same("l", "x")} AND x.load = l.`order`
    LEFT JOIN topics t ON {_same("l", "t", "journal, topic")}
      AND l.`order` > coalesce(t.topic_made, -1) AND l.`order` < coalesce(t.next_made, {_FOREVER})
"""

ALL_LEADERSHIPS: Final = f"""
    WITH seen AS (
        SELECT {_KEY}, min(`order`) AS since FROM {{events}}
        WHERE type IN ('RecordsChanged', 'WindowMoved') GROUP BY {_KEY}
    ), begun AS (
        SELECT {_KEY}, min(load) AS load FROM {{leaderships}} GROUP BY {_KEY}
    ), made AS (
        SELECT journal, topic, `order` FROM {{events}} WHERE type = 'TopicCreated'
    ), unknown AS (
        SELECT {_KEY.replace("journal", "s.journal", 1).replace(", ", ", s.")}, b.load AS next_load,
               max(CASE WHEN t.`order` < s.since THEN t.`order` END) AS topic_made,
               min(CASE WHEN t.`order` > s.since THEN t.`order` END) AS next_made
        FROM seen s LEFT JOIN begun b ON {_same("s", "b")} LEFT JOIN made t ON {_same("s", "t", "journal, topic")}
        WHERE s.since < coalesce(b.load, {_FOREVER})
        GROUP BY {_KEY.replace("journal", "s.journal", 1).replace(", ", ", s.")}, b.load
    ), known AS (
        SELECT load AS leadership, {_KEY}, load, coalesce(next_load, {_FOREVER}) AS until, leader, until_ms, ended,
               topic_made, coalesce(next_made, {_FOREVER}) AS next_made
        FROM {{leaderships}}
        UNION ALL
        SELECT -row_number() OVER (PARTITION BY journal ORDER BY group_id, topic, partition) AS leadership, {_KEY},
               -1 AS load, coalesce(next_load, {_FOREVER}) AS until, NULL AS leader, NULL AS until_ms, NULL AS ended,
               topic_made, coalesce(next_made, {_FOREVER}) AS next_made
        FROM unknown
    ), moves AS (
        SELECT r.journal, r.leadership, max(e.spso) AS reached
        FROM {{events}} e JOIN known r ON {_same("e", "r")} AND e.`order` >= r.load AND e.`order` < r.until
        WHERE e.type IN ('SharePartitionLoaded', 'WindowMoved') AND (r.leader IS NULL OR r.leader = e.broker)
        GROUP BY r.journal, r.leadership
    )
    SELECT s.*, m.reached FROM known s LEFT JOIN moves m ON {_same("s", "m", "journal, leadership")}
"""
"""Not a table: the leaderships, and the times before the first ones in a journal. `leadership`: a number that is unique
in a journal: that of the load, or below 0. `reached`: the highest SPSO.
"""

DELIVERIES: Final = f"""
    SELECT {_KEY}, `order`, time_ms, member_id, client_id, `first`, `end`, record_count AS records, delivery_count
    FROM {{events}} WHERE type = 'RecordsDelivered'
"""

LOCKS: Final = f"""
    WITH changes AS ({of_leaders("e.*, r.load", "RecordsChanged")})
    SELECT {_KEY}, load, `order`, time_ms, broker AS leader, `first`, `end`, `end` - `first` AS records, delivery_count,
           CASE cause WHEN 'acquire' THEN 'acquired' WHEN 'renew' THEN 'renewed' ELSE 'timed_out' END AS event,
           member_id, deadline_ms, deadline_ms - time_ms AS lock_ms, state
    FROM changes WHERE (cause IN ('acquire', 'renew') AND state = 'acquired') OR cause = 'lock_timeout'
"""

KEPT_BACK: Final = f"""
    WITH changes AS ({of_leaders("e.*, r.load", "RecordsChanged", "ExpiredRecordsSkipped")}
    ), named AS (
        SELECT *, CASE WHEN type = 'ExpiredRecordsSkipped' THEN 'skipped' WHEN cause IN {_list(KEPT_BACK_BY)} THEN cause
                       WHEN cause = 'settled' AND state = 'available' AND deadline_ms IS NOT NULL THEN 'rests'
                       END AS event
        FROM changes
    )
    SELECT {_KEY}, load, `order`, time_ms, broker AS leader, `first`, `end`, `end` - `first` AS records, delivery_count,
           event, why AS acknowledgement, CASE WHEN event = 'rests' THEN deadline_ms END AS until_ms, state
    FROM named WHERE event IS NOT NULL
"""

_RUNS = "leadership, journal, delivery_count"
_CHANGE = "r.journal, r.leadership, e.delivery_count, e.cause, e.state, e.`first`, e.`end`"
_DETAILS = "e.`order`, e.time_ms, coalesce(e.broker, -1) AS leader, e.member_id, e.why, r.reached"

ATTEMPTS: Final = f"""
    WITH changes AS ({of_leaders(f"{_CHANGE}, {_DETAILS}", "RecordsChanged")}
    ), reach AS (
        SELECT {_RUNS}, min(`first`) AS low, max(`end`) AS high
        FROM changes WHERE cause = 'acquire' AND state = 'acquired' GROUP BY {_RUNS}
    ), ranges AS (
        SELECT {_RUNS}, CASE cause WHEN 'acquire' THEN 'begun' WHEN 'renew' THEN 'renewed' WHEN 'log_start' THEN 'gone'
                                   WHEN 'missing' THEN 'gone' ELSE 'ended' END AS kind,
               `first`, `end`, `order`, time_ms, leader, member_id, reached,
               CASE WHEN cause IN {_list(DURABLE)} THEN why ELSE cause END AS outcome, state
        FROM changes WHERE (cause = 'acquire' AND state = 'acquired') OR cause IN {_list(("renew", *ENDED, *GONE))}
        UNION ALL
        SELECT h.leadership, h.journal, h.delivery_count, 'appended' AS kind, a.`first`, a.`end`, NULL AS `order`,
               a.time_ms, NULL AS leader, NULL AS member_id, NULL AS reached, NULL AS outcome, NULL AS state
        FROM reach h JOIN {{all_leaderships}} r ON {_same("h", "r", "journal, leadership")}
        JOIN {{events}} a ON {_same("a", "r", "journal, topic, partition")} AND a.`first` < h.high AND h.low < a.`end`
        WHERE a.type = 'RecordsAppended' AND a.`order` > coalesce(r.topic_made, -1) AND a.`order` < r.next_made
    ), edges AS (
        SELECT {_RUNS}, at, CASE WHEN at = `first` THEN kind END AS kind,
               CASE WHEN kind <> 'renewed' THEN 0 WHEN at = `first` THEN 1 ELSE -1 END AS renewals,
               CASE WHEN at = `first` THEN
                   struct(`end` AS until, `order`, time_ms, leader, member_id, reached, outcome, state) END AS details
        FROM ranges
        LATERAL VIEW explode(array(`first`, `end`, CASE WHEN kind = 'begun' AND reached > `first` AND reached < `end`
                                                        THEN reached END)) cuts AS at
        WHERE at IS NOT NULL
    ), walk AS (
        SELECT {_RUNS}, at AS `first`, lead(at) OVER (PARTITION BY {_RUNS} ORDER BY at) AS `end`,
               last_value(CASE WHEN kind = 'begun' THEN details END) IGNORE NULLS OVER so_far AS begun,
               last_value(CASE WHEN kind = 'ended' THEN details END) IGNORE NULLS OVER so_far AS ended,
               last_value(CASE WHEN kind = 'gone' THEN details END) IGNORE NULLS OVER so_far AS gone,
               last_value(CASE WHEN kind = 'appended' THEN details END) IGNORE NULLS OVER so_far AS appended,
               sum(renewals) OVER so_far AS renewals
        FROM edges
        WINDOW so_far AS (PARTITION BY {_RUNS} ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ), pieces AS (
        SELECT {_RUNS}, `first`, `end`, renewals, begun, begun.reached > `first` AS passed,
               CASE WHEN appended.until > `first` THEN appended.time_ms END AS appended_ms,
               CASE WHEN ended.until > `first` THEN ended WHEN gone.until > `first` THEN gone END AS ended
        FROM walk WHERE `first` < `end` AND begun.until > `first`
    )
    SELECT r.journal, r.group_id, r.topic, r.partition, r.load, p.begun.`order` AS `order`, p.begun.leader AS leader,
           p.`first`, p.`end`, p.`end` - p.`first` AS records, p.delivery_count, p.begun.member_id AS member_id,
           p.appended_ms, p.begun.time_ms AS acquired_ms, p.renewals,
           coalesce(p.ended.time_ms, CASE WHEN NOT coalesce(p.passed, false) THEN r.until_ms END) AS ended_ms,
           CASE WHEN p.ended IS NOT NULL THEN p.ended.outcome WHEN p.passed THEN 'passed'
                WHEN r.ended IS NOT NULL THEN 'lost' ELSE 'held' END AS outcome,
           p.ended.state AS state
    FROM pieces p JOIN {{all_leaderships}} r ON {_same("p", "r", "journal, leadership")}
"""

_STEP = "r.journal, r.leadership, e.`order`, e.type, e.time_ms, e.broker, e.spso, e.window_end, e.max_record_locks"
_DONE = "e.runs, e.state, e.`first`, e.`end`"

WINDOWS: Final = f"""
    WITH changes AS ({of_leaders(f"{_STEP}, {_DONE}", "SharePartitionLoaded", "WindowMoved", "RecordsChanged")}
    ), steps AS (
        SELECT journal, leadership, `order`, `first` AS at, `end` - `first` AS records, `end` AS until, NULL AS time_ms,
               NULL AS broker, NULL AS spso, NULL AS window_end, NULL AS record_locks
        FROM changes WHERE type = 'RecordsChanged' AND state IN ('acknowledged', 'archived')
        UNION ALL
        SELECT journal, leadership, `order`, run[0] AS at, run[1] - run[0] AS records, run[1] AS until, NULL AS time_ms,
               NULL AS broker, NULL AS spso, NULL AS window_end, NULL AS record_locks
        FROM changes LATERAL VIEW explode(runs) loaded AS run WHERE type = 'SharePartitionLoaded' AND run[2] IN (2, 4)
        UNION ALL
        SELECT journal, leadership, `order`, spso AS at, 0 AS records, NULL AS until, time_ms, broker, spso, window_end,
               max_record_locks AS record_locks
        FROM changes WHERE type <> 'RecordsChanged'
        UNION ALL
        SELECT r.journal, r.leadership, e.`order`, NULL AS at, 0 AS records, NULL AS until, NULL AS time_ms,
               NULL AS broker, NULL AS spso, NULL AS window_end,
               coalesce(try_cast(e.value AS bigint), {RECORD_LOCKS}) AS record_locks
        FROM {{events}} e JOIN {{all_leaderships}} r
          ON e.journal = r.journal AND e.resource = concat('group:', r.group_id)
         AND e.`order` > r.load AND e.`order` < r.until
        WHERE e.type = 'ConfigChanged' AND e.key = 'share.partition.max.record.locks'
    ), by_offset AS (
        SELECT *, coalesce((sum(records) OVER below) - greatest((max(until) OVER below) - at, 0), 0) AS passed
        FROM steps
        WINDOW below AS (PARTITION BY leadership, journal ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ), by_order AS (
        SELECT journal, leadership, `order`, time_ms, broker, spso, window_end,
               last_value(record_locks) IGNORE NULLS OVER so_far AS record_locks,
               (sum(records) OVER so_far) - passed AS complete,
               lead(time_ms) IGNORE NULLS OVER (PARTITION BY leadership, journal ORDER BY `order`) AS next_ms
        FROM by_offset
        WINDOW so_far AS (
            PARTITION BY leadership, journal ORDER BY `order` RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    ), with_log AS (
        SELECT *, last_value(appended) IGNORE NULLS OVER (
            PARTITION BY journal, topic, partition ORDER BY `order` RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS log
        FROM (
            SELECT r.journal, r.topic, r.partition, b.`order`, r.group_id, r.load, r.topic_made, b.time_ms,
                   coalesce(b.next_ms, r.until_ms) AS until_ms, b.broker, b.spso, b.window_end, b.record_locks,
                   b.complete, NULL AS appended
            FROM by_order b JOIN {{all_leaderships}} r ON {_same("b", "r", "journal, leadership")}
            WHERE b.spso IS NOT NULL
            UNION ALL
            SELECT journal, topic, partition, `order`, NULL AS group_id, NULL AS load, NULL AS topic_made,
                   NULL AS time_ms, NULL AS until_ms, NULL AS broker, NULL AS spso, NULL AS window_end,
                   NULL AS record_locks, NULL AS complete, struct(`order`, `end`) AS appended
            FROM {{events}} WHERE type = 'RecordsAppended'
        )
    ), whole AS (
        SELECT *, greatest(window_end, CASE WHEN log.`order` > coalesce(topic_made, -1) THEN log.`end` END) AS log_end
        FROM with_log WHERE spso IS NOT NULL
    )
    SELECT {_KEY}, load, `order`, time_ms, until_ms, broker AS leader, spso, window_end, window_end - spso AS in_flight,
           record_locks, complete, log_end, log_end - spso - complete AS lag
    FROM whole
"""

MEMBERS: Final = """
    WITH seen AS (
        SELECT *, sum(CASE WHEN type = 'MemberJoined' THEN 1 ELSE 0 END) OVER (
            PARTITION BY journal, group_id, member_id ORDER BY `order`) AS spell
        FROM {events} WHERE type IN ('MemberJoined', 'MemberLeft', 'MemberReconciled', 'HeartbeatReceived')
    )
    SELECT journal, group_id, member_id, spell, max(client_id) AS client_id,
           max_by(subscribed_topic_names, `order`) FILTER (WHERE type = 'MemberJoined') AS topics,
           min(time_ms) AS since_ms, max(time_ms) AS until_ms,
           max(CASE WHEN type = 'MemberLeft' THEN time_ms END) AS left_ms,
           max_by(reason, `order`) FILTER (WHERE type = 'MemberLeft') AS reason,
           max(member_epoch) AS member_epoch,
           count_if(type = 'HeartbeatReceived') AS heartbeats,
           count_if(type = 'HeartbeatReceived' AND error <> 0) AS refused_heartbeats
    FROM seen GROUP BY journal, group_id, member_id, spell
"""

WRITES: Final = f"""
    WITH pairs AS (
        SELECT *, lead(type) OVER writing AS next_type, lead(time_ms) OVER writing AS next_ms,
               lead(error) OVER writing AS next_error
        FROM {{events}} WHERE type IN ('StateWritePrepared', 'StateWriteSettled')
        WINDOW writing AS (PARTITION BY {_KEY}, broker, write_id ORDER BY `order`)
    )
    SELECT {_KEY}, `order`, broker AS leader, write_id, time_ms AS prepared_ms,
           CASE WHEN next_type = 'StateWriteSettled' THEN next_ms END AS settled_ms,
           CASE WHEN next_type = 'StateWriteSettled' THEN next_error END AS error,
           CASE WHEN coalesce(next_type, '') <> 'StateWriteSettled' THEN 'unknown' WHEN next_error = 0 THEN 'durable'
                ELSE 'failed' END AS outcome,
           start_offset, delivery_complete_count, size(state_batches) AS batches,
           aggregate(state_batches, 0L, (sum, batch) -> sum + batch[1] - batch[0] + 1) AS records
    FROM pairs WHERE type = 'StateWritePrepared'
"""
