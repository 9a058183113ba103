"""Lesson 08: transactions, retention and compaction under a share group."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench, settle
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.lessons.transactions import transactional, write

EXERCISES: Final = Exercises("08")

HOUR_MS: Final = 3_600_000
AWAY_H: Final = 60
KEPT_H: Final = 72
COMMITTED: Final = {"share.isolation.level": "read_committed"}


def _all(bench: Bench) -> list[int]:
    """The offsets that a consumer gets; it accepts all of them."""
    ann, offsets = bench.consumer("ann"), []
    while len(messages := ann.poll(1)):
        offsets += [message.offset() or 0 for message in messages]
        settle(ann, messages)
    return offsets


@EXERCISES.judged_by(
    "Only what is committed",
    "The isolation level of a consumer group is a configuration of each consumer. Here it is one of the group.",
    "share.isolation.level is read_uncommitted by default.",
)
def only_committed(answer: Answer) -> Passed:
    configs = ask(answer, wants=dict)
    with accepted_by_brokers():
        bench = Bench(1, configs=configs)
    bank = transactional(bench, "bank")
    bank.begin_transaction()
    write(bench, bank, "never", "ever")
    bank.abort_transaction()
    bench.produce(1)
    offsets = _all(bench)
    aborted = [offset for offset in offsets if offset in (1, 2)]
    return check(offsets == [0, 4], "aborted records are not delivered", f"the aborted records {aborted} are delivered")


@EXERCISES.judged_by(
    "Read the log",
    "Markers are never delivered. Which records may still be aborted?",
    "Nothing from offset 10 on is read: the transaction there is open.",
    "The lag counts every offset from the SPSO to the end of the log.",
)
def read_the_log(answer: Answer) -> Passed:
    named = ask(answer, wants=tuple)
    if len(named) != 2 or not isinstance(named[0], list) or not all(isinstance(each, int) for each in named[0]):
        raise NotYet(f"✗ my_answer returns {named!r}, and should return a list of offsets, and the lag")
    bench = Bench(2, configs=COMMITTED)
    bank = transactional(bench, "bank")
    for values, end in ((("a",) * 3, bank.commit_transaction), (("b",) * 2, bank.abort_transaction)):
        bank.begin_transaction()
        write(bench, bank, *values)
        end()
    bench.produce(1)
    bank.begin_transaction()
    write(bench, bank, "c", "c")
    bench.produce(1)
    truth = _all(bench), bench.admin.lag(bench.group).total
    for offset in sorted(set(truth[0]) ^ set(named[0])):
        raise NotYet(f"✗ look at offset {offset} again: it is {'' if offset in truth[0] else 'not '}delivered")
    return check(
        named[1] == truth[1],
        f"{truth[0]} are delivered, and the lag is {truth[1]}",
        f"the lag is not {named[1]}: it counts to the end of the log, whatever the group may read",
    )


@EXERCISES.judged_by(
    "The dead bank",
    "Which producer may end the transaction of another one?",
    "One with the same transactional id. What does it call before its first transaction?",
    'transactional(bench, "bank") makes one, and init_transactions aborts what was left open.',
)
def dead_bank(answer: Answer) -> Passed:
    bench = Bench(1, configs=COMMITTED)
    bank = transactional(bench, "bank")
    bank.begin_transaction()
    write(bench, bank, "lost")
    bench.produce(1)
    bench.cluster.crash(bank)
    began_ms = bench.cluster.now_ms
    ask(answer, bench)
    took_ms = bench.cluster.now_ms - began_ms
    offsets = _all(bench)
    if 2 not in offsets:
        raise NotYet(f"✗ the group still gets {offsets} only: the transaction is open")
    return check(took_ms < 1_000, f"the group gets {offsets}", f"{took_ms / 1000:g} s have passed, and none may")


@EXERCISES.judged_by(
    "Over the weekend",
    "retention.ms is the age at which records may be deleted.",
    "60 hours are 216,000,000 ms. The broker deletes every five minutes.",
)
def weekend(answer: Answer) -> Passed:
    configs = ask(answer, wants=dict)
    bench = Bench(5)
    with accepted_by_brokers():
        bench.admin.incremental_alter_configs("topic", bench.topic, configs)
    log = bench.cluster.log(bench.topic, 0)
    for hour in range(1, KEPT_H + 1):
        bench.cluster.advance(HOUR_MS)
        if log.log_start_offset and hour <= AWAY_H:
            raise NotYet(f"✗ after {hour} hours the records are deleted, and the group is away for {AWAY_H}")
    return check(log.log_start_offset > 0, "no record is lost", f"after {KEPT_H} hours the records are still there")
