"""The race of a consumer group and a share group: its figures recomputed by a naive simulation, and by a cluster."""

from __future__ import annotations

from random import Random

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.consumer import Messages
from shareq.model.errors import ConfigException
from shareq.sim.race import Outcome, RaceSetting, run_race
from shareq.team import LoopPoller


def random_setting(draw: Random) -> RaceSetting:
    return RaceSetting(
        workers=draw.randint(1, 6),
        partitions=draw.randint(1, 7),
        records=draw.randint(1, 60),
        slow_share=draw.choice((0, 0.1, 0.5, 1)),
        slow_factor=draw.randint(1, 9),
        work_ms=draw.randint(1, 7),
        poll_records=draw.randint(1, 5),
        round_trip_ms=draw.randint(0, 9),
        seed=draw.randrange(99),
    )


def naive(setting: RaceSetting, *, shared: bool) -> list[tuple[int, int, int, int]]:
    """(record, worker, begin, end) by a simulation of every millisecond."""
    slow = setting.slow()
    owned = [
        list(range(setting.partitions)) if shared else list(range(worker, setting.partitions, setting.workers))
        for worker in range(setting.workers)
    ]
    if shared:
        owned = [owned[0]] * setting.workers  # one turn for all
    left = {p: list(range(p, setting.records, setting.partitions)) for p in range(setting.partitions)}
    hands: list[list[int]] = [[] for _ in range(setting.workers)]
    free = [0 if shared else setting.round_trip_ms] * setting.workers
    found, now = [], 0
    while any(left.values()) or any(hands):
        for worker in sorted(range(setting.workers), key=lambda one: (free[one], one)):
            if free[worker] > now:
                continue
            if not hands[worker]:
                turn = owned[worker]
                while turn and not left[turn[0]]:
                    del turn[0]
                if not turn:
                    continue
                turn.append(turn.pop(0))
                hands[worker] = [left[turn[-1]].pop(0) for _ in range(min(setting.poll_records, len(left[turn[-1]])))]
                free[worker] = now + (setting.round_trip_ms if shared else 0)
            if free[worker] <= now:
                record = hands[worker].pop(0)
                end = now + setting.work_ms * (setting.slow_factor if slow[record] else 1)
                found.append((record, worker, now, end))
                free[worker] = end
        now += 1
    return sorted(found)


def test_work_is_that_of_a_naive_simulation(seed: int) -> None:
    draw = Random(seed)
    for _ in range(30):
        setting = random_setting(draw)
        result = run_race(setting)
        for outcome, shared in ((result.consumer_group, False), (result.share_group, True)):
            assert sorted(work[:4] for work in outcome.works) == naive(setting, shared=shared), setting


def test_figures_are_those_of_the_work(seed: int) -> None:
    draw = Random(seed)
    for _ in range(30):
        setting = random_setting(draw)
        for outcome in run_race(setting)[1:]:
            assert sorted(work.record for work in outcome.works) == list(range(setting.records))
            assert [work.slow for work in sorted(outcome.works)] == setting.slow()
            assert outcome.finish_ms == max(work.end_ms for work in outcome.works)
            assert outcome.overtaken == naive_overtaken(outcome)
            worked = sum(outcome.utilization) * outcome.finish_ms
            assert worked == pytest.approx(sum(work.end_ms - work.begin_ms for work in outcome.works))


def naive_overtaken(outcome: Outcome) -> int:
    works, parts = sorted(outcome.works), outcome.setting.partitions

    def behind(record: int) -> list[int]:
        """The ends of the earlier records of the partition."""
        return [works[earlier].end_ms for earlier in range(record % parts, record, parts)]

    return sum(any(end_ms > work.end_ms for end_ms in behind(work.record)) for work in works)


def test_the_consumer_group_keeps_the_order_and_wins_without_slow_records() -> None:
    result = run_race(RaceSetting(slow_share=0))
    assert result.consumer_group.finish_ms < result.share_group.finish_ms
    assert run_race(RaceSetting(slow_share=0.3)).consumer_group.overtaken == 0


def test_more_slow_records_keep_those_that_were_slow() -> None:
    few, many = (RaceSetting(slow_share=share).slow() for share in (0.1, 0.4))
    assert sum(few) < sum(many)
    assert all(more for one, more in zip(few, many, strict=True) if one)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"workers": 13}, "workers=13: must be a whole number in 1..12"),
        ({"slow_share": 1.5}, "slow_share=1.5: must be a number in 0..1"),
        ({"partitions": 2.0}, "partitions=2.0: must be a whole number in 1..24"),
        ({"seed": -1}, "seed=-1: must be a whole number >= 0"),
    ],
)
def test_a_bad_field_is_named(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigException, match=message.replace(".", r"\.").replace("+", r"\+")):
        RaceSetting(**setting)  # type: ignore[arg-type]    # bad values


def test_a_share_group_of_a_cluster_takes_the_computed_time() -> None:
    """Workers of a cluster, each record with the same work time, finish when the race says, up to round trips."""
    setting = RaceSetting(workers=3, partitions=2, records=60, poll_records=1, round_trip_ms=0)
    slow, ends = setting.slow(), []
    with Cluster(brokers=1, seed=1) as cluster:
        cluster.create_topic("work", setting.partitions)
        cluster.configure_group("crew", {"share.auto.offset.reset": "earliest"})
        conf = {"bootstrap.servers": cluster.bootstrap_servers}

        def join(number: int) -> None:
            consumer = ShareConsumer(
                {
                    **conf,
                    "group.id": "crew",
                    "client.id": f"worker-{number}",
                    "share.acquire.mode": "record_limit",
                    "max.poll.records": 1,
                }
            )
            consumer.subscribe(["work"])

            def work(messages: Messages) -> None:
                (message,) = messages
                offset, partition = message.offset(), message.partition()
                assert offset is not None
                assert partition is not None
                record = offset * setting.partitions + partition
                takes_ms = setting.work_ms * (setting.slow_factor if slow[record] else 1)
                ends.append(cluster.now_ms + takes_ms)
                cluster.loop.at(ends[-1], poller.poll)

            poller = LoopPoller(cluster, consumer, work)
            poller.poll()

        for number in range(setting.workers):
            join(number)
        cluster.advance(20_000)
        producer, started_ms = Producer(conf), cluster.now_ms
        for record in range(setting.records):
            producer.produce("work", b"", partition=record % setting.partitions)
        producer.flush()
        assert cluster.wait(lambda: len(ends) == setting.records, 600)
    took_ms, computed_ms = max(ends) - started_ms, run_race(setting).share_group.finish_ms
    assert abs(took_ms - computed_ms) <= 2 * setting.work_ms
