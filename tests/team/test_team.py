"""Consumers and a producer at work on the loop: what they do to records, and that only the clock moves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import pytest

from shareq import Cluster, ShareConsumer
from shareq.lessons import life
from shareq.model.errors import ConfigException, Errors, IllegalStateException
from shareq.model.events import AcknowledgementsSent, MemberLeft, RecordsChanged, RecordsDelivered
from shareq.model.states import RecordEvent
from shareq.team import Feed, LoopPoller, Policy, Team
from tests.polling import PATIENCE_S

GROUP, TOPIC = "crew", "jobs"
E = TypeVar("E")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, seed=3) as made:
        made.create_topic(TOPIC)
        made.configure_group(GROUP, {"share.auto.offset.reset": "earliest", "share.assignment.interval.ms": 0})
        yield made


@pytest.fixture
def feed(cluster: Cluster) -> Feed:
    return Feed(cluster, TOPIC)


@pytest.fixture
def team(cluster: Cluster) -> Team:
    return Team(cluster, GROUP, [TOPIC])


def states(cluster: Cluster, records: int) -> dict[str, int]:
    """The number of the first records in each state."""
    return dict(Counter(life(cluster, GROUP, TOPIC, 0, offset).state for offset in range(records)))


def delivered(cluster: Cluster) -> list[tuple[int, str, int]]:
    """(time since the start in ms, consumer, number of records) of each delivery."""
    return [
        (time_ms - cluster.origin_ms, event.client_id, event.record_count)
        for _, time_ms, _, event in cluster.journal
        if isinstance(event, RecordsDelivered)
    ]


def events(cluster: Cluster, kind: type[E], since: int = 0) -> list[E]:
    """The events of one type, from an order on."""
    return [entry.event for entry in cluster.journal.since(since) if isinstance(entry.event, kind)]


# ---- the clock -------------------------------------------------------------------------------------------------------


def test_on_a_virtual_clock_only_the_clock_moves_a_team(cluster: Cluster, team: Team, feed: Feed) -> None:
    feed.send(5)
    team.add("A")
    assert not delivered(cluster)
    cluster.advance(10_000)
    assert delivered(cluster)
    seen = cluster.journal.total
    assert cluster.now_ms - cluster.origin_ms == 10_000
    assert cluster.journal.total == seen


def test_single_steps_move_a_team(cluster: Cluster, team: Team, feed: Feed) -> None:
    feed.send(5)
    team.add("A")
    for _ in range(500):
        cluster.step()
        if states(cluster, 5) == {"acknowledged": 5}:
            return
    pytest.fail(f"after 500 steps: {states(cluster, 5)}, {team}")


def test_equal_seeds_give_equal_journals() -> None:
    journals = []
    for _ in range(2):
        with Cluster(brokers=3, seed=9) as cluster:
            cluster.create_topic(TOPIC, 2)
            cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
            Feed(cluster, TOPIC, rate=20, poison_every=7)
            team = Team(cluster, GROUP, [TOPIC])
            for name in "ABC":
                team.add(name, Policy(release=0.3, poison="reject"))
            cluster.advance(60_000)
            journals.append([(e.order, e.time_ms, e.broker_id, e.event) for e in cluster.journal])
    assert journals[0] == journals[1]
    assert len(journals[0]) > 1000


def test_on_a_running_clock_a_team_works_in_the_background() -> None:
    with Cluster(brokers=1, clock=100.0) as cluster:
        cluster.create_topic(TOPIC)
        cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
        team, feed = Team(cluster, GROUP, [TOPIC]), Feed(cluster, TOPIC, rate=10)
        for name in "AB":
            team.add(name)
        assert cluster.wait(lambda: feed.produced >= 60, PATIENCE_S * 100)
        feed.rate = 0
        wanted = feed.produced
        assert cluster.wait(
            lambda: sum(event.counts[1] for event in events(cluster, AcknowledgementsSent)) >= wanted, PATIENCE_S * 100
        )
        team.close()
        assert [worker.state for worker in team] == ["closed", "closed"]


# ---- policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(Policy(), {"acknowledged": 20}, id="accept"),
        pytest.param(Policy(poison="reject"), {"acknowledged": 18, "archived": 2}, id="reject poison"),
        pytest.param(Policy(release=1.0), {"archived": 18, "acknowledged": 2}, id="only poison is not released"),
        pytest.param(Policy(poison="release"), {"acknowledged": 18, "archived": 2}, id="poison released to the limit"),
        pytest.param(Policy(work_ms=7000), {"acknowledged": 20}, id="five records of 7 s outlast a lock of 30 s"),
        pytest.param(Policy(work_ms=7000, renew=True), {"acknowledged": 20}, id="renew"),
        pytest.param(Policy(work_ms=5, commit="record"), {"acknowledged": 20}, id="a commit for each record"),
    ],
)  # fmt: skip
def test_policies_decide_the_end_of_records(
    cluster: Cluster, team: Team, feed: Feed, policy: Policy, expected: dict[str, int]
) -> None:
    feed.poison_every = 10
    feed.send(20)
    team.add("A", policy)
    cluster.advance(900_000)
    assert states(cluster, 20) == expected


@pytest.mark.parametrize(("renew", "timeouts"), [(False, 5), (True, 0)])
def test_only_renewals_keep_the_locks_of_long_work(
    cluster: Cluster, team: Team, feed: Feed, renew: bool, timeouts: int
) -> None:
    feed.send(5)
    team.add("A", Policy(work_ms=8000, renew=renew))
    cluster.advance(45_000)  # acknowledged together after 40 s
    expired = [event for event in events(cluster, RecordsChanged) if event.cause == RecordEvent.LOCK_TIMEOUT]
    assert sum(event.end - event.first for event in expired) == timeouts


def test_slow_records_take_their_own_time(cluster: Cluster, team: Team, feed: Feed) -> None:
    feed.slow_every = 5
    feed.send(5)
    team.add("A", Policy(work_ms=100, slow_ms=9000, commit="record"))
    assert cluster.wait(lambda: states(cluster, 5).get("acknowledged") == 4, 60)
    began_ms = cluster.now_ms
    assert cluster.wait(lambda: states(cluster, 5) == {"acknowledged": 5}, 60)
    assert cluster.now_ms - began_ms == 9000


def test_a_policy_is_shown_as_the_call_that_makes_it() -> None:
    policy = Policy(work_ms=5, poison="reject", release=0.25)
    assert repr(policy) == "Policy(work_ms=5, poison='reject', release=0.25)"
    assert eval(repr(policy)) == policy


# ---- a frozen, a crashed and a closed consumer -----------------------------------------------------------------------


def test_a_frozen_consumer_continues_with_what_it_held_and_its_acknowledgement_is_refused(
    cluster: Cluster, team: Team, feed: Feed
) -> None:
    feed.send(5)
    worker = team.add("A", Policy(work_ms=1000))
    assert cluster.wait(lambda: worker.state == "working", 60)
    cluster.freeze(worker.consumer)
    assert worker.state == "frozen"
    seen = cluster.journal.total
    cluster.advance(50_000)
    assert not events(cluster, RecordsDelivered, seen) + events(cluster, AcknowledgementsSent, seen)
    assert [event.reason for event in events(cluster, MemberLeft, seen)] == ["session expired"]
    cluster.unfreeze(worker.consumer)
    cluster.advance(5_000)
    assert events(cluster, AcknowledgementsSent)[0].error == Errors.INVALID_RECORD_STATE
    cluster.advance(60_000)
    assert states(cluster, 5) == {"acknowledged": 5}


def test_a_crashed_consumer_does_no_more_work_and_its_locks_expire(cluster: Cluster, team: Team, feed: Feed) -> None:
    feed.send(5)
    worker = team.add("A", Policy(work_ms=1000))
    assert cluster.wait(lambda: worker.state == "working", 60)
    cluster.crash(worker.consumer)
    cluster.advance(29_000)
    assert (worker.state, states(cluster, 5)) == ("crashed", {"acquired": 5})
    cluster.advance(1_001)
    assert states(cluster, 5) == {"available": 5}
    team.add("A")
    cluster.advance(20_000)
    assert states(cluster, 5) == {"acknowledged": 5}


def test_a_closed_consumer_releases_its_records(cluster: Cluster, team: Team, feed: Feed) -> None:
    feed.send(5)
    worker = team.add("A", Policy(work_ms=1000))
    assert cluster.wait(lambda: worker.state == "working", 60)
    cluster.advance(2_500)
    worker.close()
    worker.close()
    cluster.advance(1)
    assert (worker.state, states(cluster, 5)) == ("closed", {"acknowledged": 2, "available": 3})


def test_an_idle_consumer_stays_in_its_group(cluster: Cluster, team: Team) -> None:
    team.add("A")
    cluster.advance(1_000_000)
    assert not cluster.journal.select(MemberLeft)


def test_many_idle_consumers_take_the_records_of_one_moment(cluster: Cluster, team: Team, feed: Feed) -> None:
    for number in range(150):
        team.add(f"c{number}", Policy(work_ms=1))
    cluster.advance(20_000)
    feed.batch = 1
    feed.send(300)
    cluster.advance(20_000)
    assert states(cluster, 300) == {"acknowledged": 300}


# ---- the feed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "batch", "records"), [(10, 5, 100), (0.5, 1, 5), (1000, 100, 10_000), (3, 1, 30)])
def test_a_feed_keeps_its_rate(cluster: Cluster, rate: float, batch: int, records: int) -> None:
    feed = Feed(cluster, TOPIC, rate=rate, batch=batch)
    cluster.advance(10_000)
    assert (feed.produced, cluster.log(TOPIC, 0).log_end_offset) == (records, records)
    feed.rate = 0
    cluster.advance(10_000)
    assert feed.produced == records


def test_a_feed_marks_records_and_fills_partitions_in_turn(cluster: Cluster) -> None:
    cluster.create_topic("wide", 3)
    Feed(cluster, "wide", batch=2).send(7)
    assert [cluster.log("wide", p).log_end_offset for p in range(3)] == [3, 2, 2]
    feed = Feed(cluster, TOPIC, poison_every=4, slow_every=2)
    assert [feed._value() for _ in range(4)] == ["record 0", "slow 1", "record 2", "poison 3"]


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(lambda c: Policy(work_ms=-1), r"work_ms=-1: must be a whole number in 0\.\.3600000", id="work"),
        pytest.param(lambda c: Policy(slow_ms=-2), r"slow_ms=-2: must be a whole number", id="slow"),
        pytest.param(lambda c: Policy(poison="eat"), r"'eat': must be one of accept, release, reject", id="poison"),
        pytest.param(lambda c: Policy(release=1.1), r"release=1\.1: must be a number in 0\.0\.\.1\.0", id="release"),
        pytest.param(lambda c: Policy(renew=cast(bool, 1)), r"renew=1: must be True or False", id="renew"),
        pytest.param(lambda c: Policy(commit="x"), r"commit='x': must be one of poll, record", id="commit"),
        pytest.param(lambda c: Feed(c, TOPIC, rate=-1), r"rate=-1: must be a number in 0\.\.10000", id="rate"),
        pytest.param(lambda c: Feed(c, TOPIC, batch=0), r"batch=0: must be a whole number in 1\.\.10000", id="batch"),
        pytest.param(lambda c: Feed(c, TOPIC).send(0), r"records=0: must be a whole number in 1\.\.100000", id="send"),
        pytest.param(lambda c: Team(c, GROUP, [TOPIC]).add(""), r"name='': must be a text", id="no name"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(cluster: Cluster, call: Callable[[Cluster], Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        call(cluster)


def test_impossible_calls_are_refused(cluster: Cluster, team: Team) -> None:
    worker = team.add("A")
    with pytest.raises(ConfigException, match="name='A': a consumer of this name is at work"):
        team.add("A")
    with pytest.raises(KeyError, match="'B': must be one of A"):
        team["B"]
    cluster.freeze(worker.consumer)
    with pytest.raises(IllegalStateException, match="A is frozen: it cannot close"):
        worker.close()
    with Cluster(brokers=1, seed=99) as other:
        consumer = ShareConsumer({"bootstrap.servers": other.bootstrap_servers, "group.id": "g"})
        with pytest.raises(IllegalStateException, match="is not a client of"):
            LoopPoller(cluster, consumer, lambda _: None)
