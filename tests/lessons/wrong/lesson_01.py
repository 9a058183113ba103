"""Wrong answers of lesson 01."""

from shareq import AcknowledgeType
from shareq.lessons import Bench, settle


def rejects(bench: Bench) -> None:
    ann = bench.consumer("ann")
    settle(ann, ann.poll(1)[3:4], AcknowledgeType.REJECT)


def releases_once(bench: Bench) -> None:
    ann = bench.consumer("ann")
    settle(ann, ann.poll(1), AcknowledgeType.RELEASE)


def accepts(bench: Bench) -> None:
    ann = bench.consumer("ann")
    settle(ann, ann.poll(1))


def releases_twice(bench: Bench) -> None:
    ann = bench.consumer("ann")
    for _ in range(2):
        settle(ann, ann.poll(1), AcknowledgeType.RELEASE)
    settle(ann, ann.poll(1))


def times_out_once(bench: Bench) -> None:
    bench.consumer("ann").poll(1)
    bench.cluster.advance(30_000)
    accepts_as_bob(bench)


def accepts_as_bob(bench: Bench) -> None:
    bob = bench.consumer("bob")
    settle(bob, bob.poll(1))


def polls_again_with_records_in_hand(bench: Bench) -> None:
    ann = bench.consumer("ann")
    for _ in range(3):
        ann.poll(1)
        bench.cluster.advance(30_000)


def waits(bench: Bench) -> None:
    bench.consumer("ann").poll(1)
    bench.cluster.advance(30_000)
    bench.consumer("bob").poll(1)


def bob_first(bench: Bench) -> None:
    bob = bench.consumer("bob")
    bob.poll(1)
    bob.close()
    bench.consumer("ann").poll(1)


def bob_polls_while_ann_holds(bench: Bench) -> None:
    bench.consumer("ann").poll(1)
    bench.consumer("bob").poll(1)


def accepts_after_a_minute(bench: Bench) -> None:
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    bench.cluster.advance(61_000)
    settle(ann, messages)


def renews_once(bench: Bench) -> None:
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    bench.cluster.advance(25_000)
    settle(ann, messages, AcknowledgeType.RENEW)
    settle(ann, ann.poll(1))


WRONG = {
    "01.1": [
        (rejects, "without reject"),
        (releases_once, "record 3 is available, and should be archived"),
        (accepts, "record 3 is acknowledged, and should be archived"),
    ],
    "01.2": [
        (releases_twice, "without release"),
        (times_out_once, "delivered 2 times, and should have been 3 times"),
        (polls_again_with_records_in_hand, "my_answer ended with"),
    ],
    "01.3": [
        (waits, "without lock_timeout"),
        (bob_first, "held by bob, then ann, and should have been by ann, then bob"),
        (bob_polls_while_ann_holds, "held by ann, and should have been by ann, then bob"),
    ],
    "01.4": [
        (accepts_after_a_minute, "INVALID_RECORD_STATE"),
        (renews_once, "ann worked for 2"),
        (accepts, "ann worked for 0 s"),
    ],
}
