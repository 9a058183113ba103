"""What the lessons say of a changed experiment is what happens."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from shareq import AcknowledgeType
from shareq.leader.acquire import Acquisition
from shareq.lessons import Bench, attempt, exercise, life, settle, transactional, write
from shareq.lessons.beyond import Orders
from shareq.lessons.exactly_once import AT_A_TIME, JOBS, Copying
from shareq.lessons.exercise import solution_of
from shareq.lessons.progress import FOLDER
from shareq.lessons.small_tour import Toured
from shareq.model.errors import Errors
from shareq.model.events import FaultInjected, MemberLeft, RecordsChanged, SharePartitionLoaded
from shareq.sim import Scenario, run
from shareq.sim.run import Simulation
from shareq.sim.what_if import Setting, stored_table
from shareq.trace import view
from shareq_widgets import group
from shareq_widgets.steering import STORIES, Story
from tests.lessons.conftest import Tours


@pytest.fixture(scope="module")
def tour(tours: Tours) -> Toured:
    return tours()


def test_a_low_limit_archives_what_the_dead_clerk_held_at_its_last_delivery(tours: Tours, tour: Toured) -> None:
    limited = tours({"share.delivery.count.limit": 2})
    more = limited.books.archived - tour.books.archived
    events = limited.cluster.journal.select(RecordsChanged)
    ended = [e.event for e in events if isinstance(e.event, RecordsChanged) and e.event.cause == "lock_timeout"]
    at_the_limit = sum(event.end - event.first for event in ended if event.delivery_count == 2)
    assert more == at_the_limit == 26


def test_the_tour_shows_deliveries_that_no_count_has_on_the_killed_brokers_partition(tour: Toured) -> None:
    more = [int((book.deliveries - book.delivery_count).sum()) for book in tour.books.values()]
    assert more[1] > 0
    assert more == [0, more[1], 0, 0]


def test_no_tour_loses_a_record_or_accepts_one_twice(tours: Tours, tour: Toured) -> None:
    for books in (tour.books, tours(dead_clerks=2).books):
        assert books.accepted + books.archived == books.records
        assert books.accepted_twice == 0


# ---- remedies that a lesson names and does not run -------------------------------------------------------------------


def test_a_release_of_the_stuck_record_keeps_the_window_open() -> None:
    """Lesson 02: the third of three remedies; the exercises run the other two."""
    bench = Bench(*[10] * 20, configs={"share.partition.max.record.locks": 100})
    silent, worker = bench.consumer("silent", most=1), bench.consumer("worker", most=1)
    records = silent.poll(1)
    for record in records[1:]:
        silent.acknowledge(record)
    settle(silent, records[:1], AcknowledgeType.RELEASE)
    delivered = []
    for _ in range(15):
        messages = worker.poll(0)
        settle(worker, messages)
        delivered.append(len(messages))
        bench.cluster.advance(1_000)
    assert delivered.count(0) == 0


def test_a_longer_lock_lets_the_slow_consumer_finish_a_poll() -> None:
    """Lesson 03: cyd's poll of twenty records takes 40 s."""
    bench = Bench(20, configs={"share.record.lock.duration.ms": 45_000})
    cyd = bench.consumer("cyd", most=5)
    records = cyd.poll(1)
    bench.cluster.advance(2_000 * len(records))
    assert (len(records), attempt(cyd, records)) == (20, "ok")


def test_without_throttled_delivery_good_records_of_a_slow_consumer_are_archived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lesson 03: the same poll with the lock of 30 s; every delivery has all twenty records. The last accept is ok as
    below any SPSO, without an effect."""
    monkeypatch.setattr(Acquisition, "_throttled", lambda _, runs, *__: runs)
    bench = Bench(20)
    cyd = bench.consumer("cyd", most=5)
    answers = []
    while records := cyd.poll(1):
        bench.cluster.advance(2_000 * len(records))
        answers.append((len(records), attempt(cyd, records)))
    assert answers == [(20, "INVALID_RECORD_STATE")] * 4 + [(20, "ok")]
    assert {bench.life(offset).state for offset in range(20)} == {"archived"}
    assert bench.life(0).events == ["acquire", "lock_timeout"] * 5


def test_an_accept_whose_state_write_was_not_made_is_forgotten_with_its_leader() -> None:
    """Lessons 06 and 07: the other half of "no answer"."""
    bench = Bench(5, brokers=3)
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    records = ann.poll(1)
    bench.cluster.fail_appends("__share_group_state", Errors.NOT_ENOUGH_REPLICAS, 100)
    for record in records:
        ann.acknowledge(record)
    [error] = ann.commit_sync(1).values()
    assert error is not None
    bench.cluster.kill_broker(bench.leader)
    bench.cluster.clear_faults()
    bench.cluster.advance(5_000)
    assert [message.offset() for message in bob.poll(30)] == [0, 1, 2, 3, 4]


def test_the_time_out_of_a_transaction_frees_the_group_behind_it() -> None:
    """Lesson 08: `transaction.timeout.ms` is a minute by default."""
    bench = Bench(2, configs={"share.isolation.level": "read_committed"})
    bank = transactional(bench, "bank")
    bank.begin_transaction()
    write(bench, bank, "open")
    bench.produce(2)
    ann = bench.consumer("ann")
    settle(ann, ann.poll(1))
    bench.cluster.advance(50_000)
    assert not ann.poll(1)
    bench.cluster.advance(20_000)
    assert [message.offset() for message in ann.poll(1)] == [3, 4]


def test_locks_that_time_out_carry_a_record_over_an_outage() -> None:
    """Lesson 09: the third way to give a retry time."""
    bench = Bench(1)
    ends_ms = bench.cluster.now_ms + 60_000
    while bench.life(0).state != "acknowledged":
        ann = bench.consumer("ann")
        messages = ann.poll(1)
        if bench.cluster.now_ms >= ends_ms:
            settle(ann, messages)
        bench.cluster.crash(ann)
        bench.cluster.advance(30_000)
    assert bench.life(0).events.count("lock_timeout") == bench.life(0).deliveries - 1 == 2


CAPACITY = Scenario(
    records=1_000,
    arrival_rate=40.0,
    batch_records=20,
    max_poll_records=20,
    acquire_mode="record_limit",
    service_ms=150.0,
    consumers=12,
)
"""The service of lesson 10, without slow records and crashes, and for a shorter time."""


def test_smaller_polls_fit_a_short_lock() -> None:
    """Lesson 10: two slow records of 6 s in a poll of twenty take longer than 10 s; five records rarely have two."""
    slow = replace(CAPACITY, slow_rate=0.01, slow_factor=40, lock_duration_ms=10_000)
    large, small = (run(replace(slow, max_poll_records=most), seed=1).redeliveries for most in (20, 5))
    assert (large, small) == (120, 0)


def test_a_renewing_consumer_can_have_a_short_lock_and_long_polls() -> None:
    """Lesson 10: a poll of 40 s under a lock of 15 s; and a crash frees its records 15 s after the last renewal."""
    bench = Bench(20, configs={"share.record.lock.duration.ms": 15_000})
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    records = ann.poll(1)
    for _ in range(4):
        bench.cluster.advance(10_000)
        settle(ann, records, AcknowledgeType.RENEW)
        records = ann.poll(1)
    assert len(records) == 20
    settle(ann, records[:10])
    assert {bench.life(offset).deliveries for offset in range(20)} == {1}
    bench.cluster.crash(ann)
    renewed_ms = bench.cluster.now_ms
    assert len(bob.poll(30)) == 10
    assert bench.cluster.now_ms - renewed_ms <= 15_000


def test_more_partitions_have_more_windows() -> None:
    """Lesson 10: a consumer's crash stops one of four windows, not the only one."""
    one = replace(CAPACITY, crash_rate=0.05, record_locks=300)
    single, four = (run(replace(one, partitions=partitions)).throughput_loaded for partitions in (1, 4))
    assert four > 1.1 * single


@pytest.mark.parametrize("limit", [500, 2_000])
def test_a_crash_fills_the_window_before_a_lock_of_a_minute_ends(limit: int) -> None:
    """Lesson 12, in its view of other settings: 4,000 record locks are more than arrive in a minute."""
    table = stored_table()
    throughput = {
        locks: table.figure("mixed", Setting(lock_duration_ms=60_000, record_locks=locks), "throughput")
        for locks in (limit, 4_000)
    }
    [narrow, wide] = [figure.median for figure in throughput.values() if figure]
    assert narrow < 0.9 * wide
    most = []
    for locks in throughput:
        scenario = replace(table.workloads["mixed"].scenario, lock_duration_ms=60_000, record_locks=locks)
        with Simulation(scenario) as simulation:
            simulation.go()
            most.append(max(moved.window_end - moved.spso for _, moved in simulation.outcome().windows(0)))
    assert most[0] >= limit
    assert most[1] < 4_000


def test_only_snapshots_are_paid_with_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 05: the answer to the question of exercise 3, in the text of the check."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    verdict = exercise("05.3").check(solution_of("05.3"))
    found = re.search(r"take ([\d,]+) bytes, and with updates ([\d,]+)$", verdict.text)
    assert found
    only, usual = (int(size.replace(",", "")) for size in found.groups())
    assert only > 2 * usual


# ---- the experiments of lesson 18 ------------------------------------------------------------------------------------


def test_two_records_of_a_key_in_flight_may_be_handled_out_of_order() -> None:
    handled = Orders(in_flight=2).handled["bea"]
    assert handled.index("pay") < handled.index("order")


def test_a_worker_that_acknowledges_first_leaves_jobs_without_a_result() -> None:
    copying = Copying("acknowledge, then write")
    assert copying.results.total() == len(copying.results) == JOBS - AT_A_TIME
    assert str(copying) == "acknowledge, then write   9 results: 0 jobs have two, 3 have none"


# ---- "Try alone" in the control room ---------------------------------------------------------------------------------


def begun(name: str, **configs: int) -> Story:
    """A story before its first step, with configurations of its group (underscores for dots)."""
    story = STORIES[name].begin()
    for key, value in configs.items():
        story.steering.cluster.configure_group("crew", {key.replace("_", "."): value})
    return story


def in_flight_s(story: Story, offset: int) -> float:
    moments = life(story.steering.cluster, "crew", "jobs", 0, offset).moments
    return (moments[-1].time_ms - moments[0].time_ms) / 1000


def test_poison_stays_longer_with_a_higher_limit() -> None:
    usual, patient = begun("poison"), begun("poison", share_delivery_count_limit=10)
    usual.next()
    patient.next()
    poison = life(patient.steering.cluster, "crew", "jobs", 0, 9)
    assert (poison.state, poison.deliveries) == ("archived", 10)
    assert in_flight_s(patient, 9) > in_flight_s(usual, 9)


def test_a_shorter_lock_frees_a_crashed_consumers_records_and_not_its_membership() -> None:
    usual, short = begun("crashed consumer"), begun("crashed consumer", share_record_lock_duration_ms=15_000)
    left_ms = []
    for story, seconds in ((usual, 30), (short, 15)):
        while not story.done:
            story.next()
        cluster = story.steering.cluster
        moments = life(cluster, "crew", "jobs", 0, 0).moments
        expired = next(moment for moment in moments if moment.event == "lock_timeout")
        assert (expired.time_ms - moments[0].time_ms) / 1000 == seconds
        assert f"exactly {seconds} s after the acquisition" in story.answers[2]
        left_ms.append([entry.time_ms - cluster.origin_ms for entry in cluster.journal.select(MemberLeft)])
    assert left_ms[0] == left_ms[1]


def test_the_view_of_the_group_shows_a_frozen_consumer_before_any_of_its_locks_ends() -> None:
    story = begun("slow consumer and zombie acknowledgement")
    while not story.done:
        story.next()
    cluster = story.steering.cluster
    frozen_ms = cluster.journal.select(FaultInjected)[0].time_ms
    shown = group(cluster, group="crew")
    shown.seek_time(frozen_ms)
    assert ", frozen, silent for" in repr(shown)
    moments = life(cluster, "crew", "jobs", 0, 10).moments
    ended_ms = next(moment.time_ms for moment in moments if moment.event == "lock_timeout") + cluster.origin_ms
    assert ended_ms - frozen_ms == 29_000


def test_a_wider_window_lets_the_fast_consumer_go_on_until_it_is_full() -> None:
    story = begun("window full")
    story.next()
    cluster = story.steering.cluster
    cluster.configure_group("crew", {"share.partition.max.record.locks": 200})
    ends = []
    for _ in range(2):
        cluster.advance(1_000)
        now = view(cluster, "crew", "jobs").snapshot()
        ends.append((now["spso"], now["window_end"]))
    assert ends == [(0, 200), (0, 200)]


def test_the_death_of_a_broker_that_does_not_lead_loads_nothing_anew() -> None:
    story = begun("leader failover")
    story.next()
    cluster = story.steering.cluster
    before = view(cluster, "crew", "jobs").snapshot()
    leader = cluster.image.topics["jobs"].partitions[0].leader
    cluster.kill_broker(next(broker for broker in cluster.brokers_alive if broker != leader))
    after = view(cluster, "crew", "jobs").snapshot()
    assert after["runs"] == before["runs"]
    assert len(cluster.journal.select(SharePartitionLoaded)) == 1
