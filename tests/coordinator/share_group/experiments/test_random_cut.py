"""The random histories of share groups with assignors of their own: lags and assignors change, too.

Invariants: A1 all partitions are covered; A2 P partitions and M members make at most P + M - 1 pairs; A3 no bump
without a change.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shareq.coordinator.share_group.experiments.assignors import ASSIGNORS, assignor_of
from shareq.coordinator.share_group.experiments.partition_weights import PartitionWeights
from shareq.coordinator.share_group.target import assignor_input
from shareq.model.events import GroupEpochBumped
from tests.coordinator.share_group.stage import GROUP, Stage
from tests.coordinator.share_group.test_random import TOPICS, Trial, run

REVIEWS = {"pieces uneven", "assignor changed"}
LAGS = 0, 1, 10, 1000


class CutTrial(Trial):
    """`settle` ends with the assignor "cut", and with lags that stay."""

    assignor = "cut"
    calm = True
    """False while an append may be held that was computed from an earlier state."""

    def make_stage(self) -> Stage:
        stage = Stage(t1=2, traced=True, configs={"shareq.experiments.enable": True})
        stage.configure_group(shareq_assignor=self.assignor)
        return stage

    def more_actions(self) -> list[Callable[[], None]]:
        return [self.change_lags] * 3 + [self.change_assignor]

    def change_lags(self) -> None:
        """New lags; some cannot be read."""
        for name in TOPICS:
            for index in range(12):
                self.stage.summaries[name, index] = (0, 0) if self.rng.random() < 0.9 else (-1, -1)
                self.stage.ends[name, index] = self.rng.choice(LAGS)

    def change_assignor(self) -> None:
        self.assignor = self.rng.choice(["", *ASSIGNORS])
        self.configure(shareq_assignor_lag_interval_ms=self.rng.choice([1000, 10_000]))

    def configure(self, **configs: object) -> None:
        self.stage.configure_group(shareq_assignor=self.assignor, **configs)

    # ---- A3 ----------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.calm = self.stage.appending and not self.stage.held
        super().step()

    def check(self) -> None:
        """While the targets of a review's bump are outstanding, they differ from the present ones."""
        super().check()
        bumped = [event.reason for event in self.stage.events if isinstance(event, GroupEpochBumped)]
        self.stage.events.clear()
        group = self.group()
        if group is None or group.assignment_epoch == group.group_epoch:
            return
        if self.calm and len(bumped) == 1 and bumped[0] in REVIEWS:
            weights = self.stage.coordinator._context.own(PartitionWeights).of(GROUP)
            given = assignor_input(group, group.subscriptions, self.stage.image, weights)
            assert assignor_of(GROUP, self.stage.image).assign(given) != group.targets

    def settle(self) -> None:
        """At the end nothing changes, and nothing is written."""
        self.assignor = "cut"
        super().settle()
        written = [len(log) for log in self.stage.logs.values()]
        for _ in range(8):
            self.stage.wait(5000)
            for client in self.clients.values():
                client.request_id = self.send(client.request())
            self.collect()
        assert [len(log) for log in self.stage.logs.values()] == written

    # ---- A1, A2 ------------------------------------------------------------------------------------------------------

    def check_coverage(self) -> None:
        equal = len({frozenset(client.topics) for client in self.clients.values()}) == 1
        partitions = pairs = 0
        for name in TOPICS:
            topic = self.stage.image.topics.get(name)
            if topic is None:
                continue
            count = len(topic.partitions)
            subscribers = [client for client in self.clients.values() if name in client.topics]
            mine = {c.member: {i for t, i in c.held if t == topic.topic_id} for c in self.clients.values()}
            assert set().union(*mine.values()) == (set(range(count)) if subscribers else set()), "A1"
            assert not any(mine[client.member] for client in self.clients.values() if client not in subscribers)
            of_topic = sum(map(len, mine.values()))
            assert of_topic <= max(count + len(subscribers) - 1, 0), "A2, of one topic"
            pairs += of_topic
            partitions += count if subscribers else 0
        if equal and partitions:
            assert pairs <= partitions + len(self.clients) - 1, "A2"


@pytest.mark.parametrize("round_number", range(12))
def test_random_histories_with_changing_lags_and_assignors(seed: int, round_number: int) -> None:
    run(CutTrial(seed + round_number), moving=True)
