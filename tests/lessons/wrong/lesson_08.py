"""Wrong answers of lesson 08."""

from shareq.lessons import Bench, transactional, write


def waits(bench: Bench) -> None:
    bench.cluster.advance(120_000)


def another_bank(bench: Bench) -> None:
    transactional(bench, "another bank")


def writes_more(bench: Bench) -> None:
    other = transactional(bench, "other")
    other.begin_transaction()
    write(bench, other, "more")
    other.commit_transaction()


WRONG = {
    "08.1": [
        (lambda: {"isolation.level": "read_committed"}, "the brokers refuse this"),
        (lambda: {"share.isolation.level": "read_uncommitted"}, "the aborted records [1, 2] are delivered"),
        (lambda: {"share.delivery.count.limit": 2}, "the aborted records [1, 2] are delivered"),
    ],
    "08.2": [
        (lambda: ([0, 1, 2, 3, 4, 5, 9], 3), "look at offset 5 again: it is not delivered"),
        (lambda: ([0, 1, 2, 3, 4, 9, 12], 2), "look at offset 12 again"),
        (lambda: ([0, 1, 2, 3, 4, 9], 1), "the lag is not 1: it counts to the end of the log"),
    ],
    "08.3": [
        (waits, "s have passed, and none may"),
        (another_bank, "the group still gets [0] only"),
        (writes_more, "the group still gets [0] only"),
    ],
    "08.4": [
        (lambda: {"retention.ms": 3_600_000}, "the records are deleted, and the group is away for 60"),
        (lambda: {"retention.ms": -1}, "after 72 hours the records are still there"),
        (lambda: {"retention.hours": 66}, "the brokers refuse this"),
    ],
}
