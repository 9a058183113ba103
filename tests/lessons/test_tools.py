"""What the tutorials stand on: the bench, the life of a record, and checks that can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq import AcknowledgeType, Cluster, KafkaException, Producer, ShareConsumer
from shareq.lessons import (
    Bench,
    Life,
    Moment,
    NotYet,
    check,
    check_life,
    check_window,
    in_flight,
    life,
    settle,
    with_one_stuck,
)
from shareq.model.errors import Errors

RELEASE, REJECT, RENEW = AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW


# ---- the bench -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "first", "window"),
    [
        pytest.param("earliest", 0, "SPSO 0 | A×13 | SPEO 12", id="earliest"),
        pytest.param(10, 10, "SPSO 10 | A A A | SPEO 12", id="an offset"),
    ],
)
def test_a_bench_starts_at_its_offset(start: int | str, first: int, window: str) -> None:
    bench = Bench(10, 3, start=start)
    assert bench.consumer("ann").poll(1)[0].offset() == first
    assert repr(bench) == window


def test_a_bench_that_starts_at_the_end_waits_for_what_comes() -> None:
    bench = Bench(10, start="latest")
    bench.produce(2)
    assert [message.offset() for message in bench.consumer("ann").poll(1)] == [10, 11]


def test_batches_are_cut_as_configured_without_a_wait_for_joins() -> None:
    bench = Bench(2, 3)
    since_ms = bench.cluster.now_ms
    ann, bob = bench.consumer("ann", most=1), bench.consumer("bob", most=1)
    assert [len(ann.poll(1)), len(bob.poll(1))] == [2, 3]
    assert bench.cluster.now_ms == since_ms


def test_more_configurations_of_consumer_and_group() -> None:
    bench = Bench(10, configs={"share.delivery.count.limit": 2})
    assert len(bench.consumer("ann", most=4, share_acquire_mode="record_limit").poll(1)) == 4
    assert bench.view.snapshot()["delivery_count_limit"] == 2


def test_settle_raises_what_the_leader_refuses() -> None:
    bench = Bench(3)
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    bench.cluster.advance(30_000)
    with pytest.raises(KafkaException) as refused:
        settle(ann, messages)
    assert refused.value.error.code() == Errors.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    ("locks", "workers", "expected"),
    [
        pytest.param(100, 1, [10] * 9 + [0] * 21 + [1, 10], id="a full window stops one worker"),
        pytest.param(100, 3, [30] * 3 + [0] * 27 + [1, 30], id="more workers fill it sooner"),
        pytest.param(2000, 1, [10] * 32, id="a wide window stops no member"),
    ],
)
def test_one_stuck_record(locks: int, workers: int, expected: list[int]) -> None:
    bench = Bench(*[10] * 40, configs={"share.partition.max.record.locks": locks})
    delivered = with_one_stuck(bench, workers, seconds=32)
    assert delivered[:30] == expected[:30]
    assert 1 <= delivered[30] <= sum(expected[30:])
    assert delivered[31] == expected[31]


# ---- the life of one record ------------------------------------------------------------------------------------------


def released_and_rejected(bench: Bench) -> None:
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    settle(ann, ann.poll(1), RELEASE)
    settle(bob, bob.poll(1), REJECT)


def timed_out(bench: Bench) -> None:
    bench.consumer("ann").poll(1)
    bench.cluster.advance(30_000)


def renewed_and_accepted(bench: Bench) -> None:
    ann = bench.consumer("ann")
    settle(ann, ann.poll(1), RENEW)
    settle(ann, ann.poll(1))


def closed(bench: Bench) -> None:
    with bench.consumer("ann") as ann:
        ann.poll(1)


def write_failed(bench: Bench) -> None:
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    bench.cluster.fail_appends("__share_group_state", Errors.MESSAGE_TOO_LARGE)
    for message in messages:
        ann.acknowledge(message)
    ann.commit_sync()


def waited_in_the_batch(bench: Bench) -> None:
    bench.consumer("ann", most=1, share_acquire_mode="record_limit").poll(1)


@pytest.mark.parametrize(
    ("happens", "state", "events", "holders"),
    [
        pytest.param(lambda _: None, "available", [], [], id="nothing"),
        pytest.param(
            released_and_rejected,
            "archived",
            ["acquire", "release", "acquire", "reject"],
            ["ann", "bob"],
            id="verdicts",
        ),
        pytest.param(timed_out, "available", ["acquire", "lock_timeout"], ["ann"], id="time-out"),
        pytest.param(renewed_and_accepted, "acknowledged", ["acquire", "renew", "accept"], ["ann"], id="renewal"),
        pytest.param(closed, "available", ["acquire", "session_release"], ["ann"], id="close"),
        pytest.param(write_failed, "acquired", ["acquire", "abandoned"], ["ann"], id="a write that failed"),
        pytest.param(waited_in_the_batch, "available", ["acquire"], [], id="came in with its batch, held by no member"),
    ],
)
def test_the_life_of_a_record(
    happens: Callable[[Bench], object], state: str, events: list[str], holders: list[str]
) -> None:
    bench = Bench(3)
    happens(bench)
    history = bench.life(1)
    assert (history.state, history.events, history.holders, history.deliveries) == (
        state,
        events,
        holders,
        len(holders),
    )


def test_a_life_has_the_holder_at_each_change() -> None:
    bench = Bench(1)
    released_and_rejected(bench)
    history = [(m.event, m.state, m.delivery_count, m.member) for m in bench.life(0).moments]
    assert history == [
        ("acquire", "acquired", 1, "ann"),
        ("release", "available", 1, "ann"),
        ("acquire", "acquired", 2, "bob"),
        ("reject", "archived", 2, "bob"),
    ]


def test_log_start_takes_records_without_a_holder() -> None:
    bench = Bench(3, 3)
    ann = bench.consumer("ann", most=1)
    settle(ann, ann.poll(1), RELEASE)
    bench.admin.delete_records({(bench.topic, 0): 3}).check()
    ann.poll(1)
    last = bench.life(0).moments[-1]
    assert (last.event, last.state, last.member) == ("log_start", "archived", None)


def test_a_leader_that_is_lost_takes_along_what_was_not_durable() -> None:
    with Cluster(brokers=3, seed=3) as cluster:
        cluster.create_topic("jobs")
        cluster.configure_group("crew", {"share.auto.offset.reset": "earliest"})
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("jobs", "job")
        producer.flush()
        conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "crew", "client.id": "ann"}
        ann = ShareConsumer(conf)
        ann.subscribe(["jobs"])
        ann.poll(30)
        cluster.kill_broker(cluster.image.topics["jobs"].partitions[0].leader)
        bob = ShareConsumer({**conf, "client.id": "bob"})
        bob.subscribe(["jobs"])
        assert [message.delivery_count() for message in bob.poll(30)] == [1]
        history = life(cluster, "crew", "jobs", 0, 0)
    assert history.events == ["acquire", "loaded", "acquire"]
    assert [(m.state, m.delivery_count) for m in history.moments] == [
        ("acquired", 1),
        ("available", 0),
        ("acquired", 1),
    ]
    assert history.holders == ["ann", "bob"]


def test_a_life_reads_as_a_table() -> None:
    history = Life(3, (Moment(1705, "acquire", "acquired", 1, "ann"), Moment(31705, "log_start", "archived", 1, None)))
    assert repr(history) == (
        "record 3\n"
        "    1.705 s  acquire          acquired      delivery 1  ann\n"
        "   31.705 s  log_start        archived      delivery 1"
    )


# ---- checks ----------------------------------------------------------------------------------------------------------

SEEN = Life(
    3,
    (
        Moment(0, "acquire", "acquired", 1, "ann"),
        Moment(0, "release", "available", 1, "ann"),
        Moment(0, "acquire", "acquired", 2, "bob"),
    ),
)


def test_a_check_that_holds_says_so() -> None:
    assert repr(check(True, "well done", "no")) == "✓ well done"


def test_a_check_that_fails_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match=r"✗ no$"):
        check(False, "well done", "no")


def test_a_life_as_wanted() -> None:
    passed = check_life(SEEN, state="acquired", deliveries=2, holders=["ann", "bob"], without=["reject"])
    assert passed == "✓ record 3 is acquired, delivered 2 times: acquire → release → acquire"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        pytest.param({"state": "archived"}, "record 3 is acquired, and should be archived;", id="state"),
        pytest.param(
            {"state": "acquired", "deliveries": 1},
            "record 3 was delivered 2 times, and should have been once;",
            id="deliveries",
        ),
        pytest.param(
            {"state": "acquired", "holders": ["bob"]},
            "record 3 was held by ann, then bob, and should have been by bob;",
            id="holders",
        ),
        pytest.param(
            {"state": "acquired", "holders": []},
            "record 3 was held by ann, then bob, and should have been by no member;",
            id="no holder",
        ),
        pytest.param(
            {"state": "acquired", "without": ["reject", "release"]},
            "this was to be done without release;",
            id="without",
        ),
    ],
)
def test_a_life_that_is_not_as_wanted(wanted: dict[str, Any], says: str) -> None:
    with pytest.raises(NotYet) as not_yet:
        check_life(SEEN, **wanted)
    assert says in str(not_yet.value)
    assert repr(SEEN) in str(not_yet.value)


WINDOW = {
    "spso": 110,
    "window_end": 116,
    "runs": [
        [110, 111, "acquired", 2, "c4", 0, None, None],
        [111, 113, "acquired", 1, "c1", 0, None, None],
        [113, 115, "acquired", 1, "c2", 0, None, None],
        [115, 116, "acknowledged", 1, None, None, None, None],
    ],
}


def test_a_window_in_words_leaves_out_holders() -> None:
    assert in_flight(WINDOW) == (
        "110 acquired (delivered 2×), 111–114 acquired (delivered 1×), 115 acknowledged (delivered 1×)"
    )


def test_runs_that_are_alike_but_apart_stay_apart() -> None:
    apart = {"runs": [[0, 2, "acquired", 1], [3, 4, "acquired", 1]]}
    assert in_flight(apart) == "0–1 acquired (delivered 1×), 3 acquired (delivered 1×)"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        pytest.param({"spso": 110, "speo": 115}, None, id="as wanted"),
        pytest.param({}, None, id="nothing wanted"),
        pytest.param({"spso": 111}, "✗ SPSO is 110, and should be 111", id="SPSO"),
        pytest.param({"spso": 0, "speo": 0}, "✗ SPSO is 110, and should be 0; SPEO is 115, and should be 0", id="both"),
        pytest.param({"records": ""}, "and should be ''", id="records"),
    ],
)
def test_a_window(wanted: dict[str, Any], says: str | None) -> None:
    if says is None:
        assert check_window(WINDOW, **wanted) == f"✓ SPSO 110, SPEO 115: {in_flight(WINDOW)}"
    else:
        with pytest.raises(NotYet) as not_yet:
            check_window(WINDOW, **wanted)
        assert says in str(not_yet.value)


def test_an_empty_window_has_no_speo() -> None:
    empty = {"spso": 110, "window_end": 110, "runs": []}
    assert check_window(empty, spso=110, records="") == "✓ SPSO 110, the window is empty"
    with pytest.raises(NotYet, match="SPEO is None, and should be 110"):
        check_window(empty, speo=110)
