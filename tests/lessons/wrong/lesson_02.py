"""Wrong answers of lesson 02."""

from shareq import AcknowledgeType
from shareq.lessons import Bench, settle


def with_a_consumer(bench: Bench) -> None:
    ann = bench.consumer("ann")
    settle(ann, ann.poll(1)[:7], AcknowledgeType.REJECT)


def one_too_far(bench: Bench) -> None:
    bench.admin.delete_records({(bench.topic, 0): 8})


def produces_more(bench: Bench) -> None:
    bench.produce(7)


WRONG = {
    "02.1": [
        (lambda: (9, 9, 1), "SPSO is 4, and should be 9"),
        (lambda: (4, 10, 4), "SPEO is 9, and should be 10"),
        (lambda: (4, 9, 6), "the lag is not 6: which records above the SPSO are done with?"),
    ],
    "02.2": [
        (lambda: 400, "400 locks: nothing to do for"),
        (lambda: 10_000, "the task no more than 1,500"),
        (lambda: 40, "Kafka allows no fewer than 100"),
    ],
    "02.3": [
        (with_a_consumer, "there was a consumer"),
        (one_too_far, "the group begins at 8, and should begin at 7"),
        (produces_more, "the group begins at 0, and should begin at 7"),
    ],
    "02.4": [
        (lambda: {"share.partition.max.record.locks": 2_000}, "must stay at 100"),
        (lambda: {"share.record.lock.duration.ms": 25_000}, "and six were allowed"),
        (lambda: {"share.delivery.count.limit": 2}, "and six were allowed"),
    ],
}
