"""The default persister over a network that loses, delays and repeats messages, with brokers that stop and start."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from shareq.model.actor import Answer, Call, ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.cluster import FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.share_state import ReadShareGroupStateResponse
from shareq.persister.combined_response import RESPONSES
from tests.budgets import cases
from tests.coordinator.share_state import stage as coordination
from tests.persister.stage import OTHER, TOPIC, Read, Stage, Write, cluster, read, write

STEPS = cases(2_000, 8_000)
NODES = (1, 2, 3)
RETRIED = (
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
)


def start_offset_of(group: str, topic: str, partition: int) -> int:
    """A start offset that identifies the entry of a response."""
    return partition * 4 + 2 * (group == "h") + (topic == OTHER)


class RandomBrokers:
    """Brokers with random responses; some of them are stopped."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.stage = Stage(cluster(1, 2, 3), seed)
        self.requests: dict[int, Any] = {}

    def change_cluster(self) -> None:
        """Send a random image: the state topic exists or not, leaders have moved, brokers are stopped."""
        rng = self.rng
        leaders = [rng.choice((-1, *NODES)) for _ in range(rng.choice((0, 3, 3, 3)))]
        dead = tuple(node for node in NODES if rng.random() < 0.2)
        self.stage.send(ImageChanged(cluster(*leaders, dead=dead)))

    def ask(self) -> None:
        rng = self.rng
        partitions = [rng.randrange(12) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
        made = rng.choice((read, write))(*partitions, group=rng.choice("gh"), topic=rng.choice((TOPIC, OTHER)))
        self.requests[self.stage.ask(made)] = made

    def answer(self, call: Call) -> None:
        """Answer a call with success or an error, lose it, or answer it twice."""
        rng, stage = self.rng, self.stage
        chance = rng.random()
        if chance < 0.1:
            stage.lose(call, rng.choice((Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT)))
        elif isinstance(call.request, FindCoordinatorRequest):
            stage.found(call, rng.choice(NODES), rng.choice((Errors.NONE, *RETRIED)) if chance < 0.3 else Errors.NONE)
        else:
            stage.send(Answer(call.id, self._response(call.request)))
        if rng.random() < 0.1:
            stage.reply(Call(call.id, call.node, write(99)), Errors.UNKNOWN_SERVER_ERROR)

    def _response(self, request: Any) -> Any:
        rng, response = self.rng, RESPONSES[type(request)]

        def entry(topic: str, partition: int) -> Any:
            if rng.random() < 0.2:
                return response.Partition(partition=partition, error_code=rng.choice(RETRIED))
            if response is ReadShareGroupStateResponse:
                return response.Partition(
                    partition=partition, start_offset=start_offset_of(request.group_id, topic, partition)
                )
            return response.Partition(partition=partition)

        topics = [
            response.Topic(topic_id=t.topic_id, partitions=tuple(entry(t.topic_id, e.partition) for e in t.partitions))
            for t in request.topics
        ]
        return response(results=tuple(rng.sample(topics, len(topics))))

    def check(self) -> None:
        """Every request has exactly one response, with the right entry for each of its entries."""
        assert self.stage.answers.keys() == self.requests.keys()
        for id_, request in self.requests.items():
            response = self.stage.answers[id_]
            for topic, results in zip(request.topics, response.results, strict=True):
                assert topic.topic_id == results.topic_id
                assert [e.partition for e in topic.partitions] == [r.partition for r in results.partitions]
                if isinstance(request, Read):
                    for r in results.partitions:
                        expected = start_offset_of(request.group_id, topic.topic_id, r.partition)
                        assert r.error_code or r.start_offset == expected


def test_every_request_has_one_response_under_random_faults(seed: int) -> None:
    brokers = RandomBrokers(seed)
    rng, stage = brokers.rng, brokers.stage
    for _ in range(STEPS):
        chance = rng.random()
        if chance < 0.4:
            brokers.ask()
        elif chance < 0.85 and stage.calls:
            brokers.answer(stage.calls.pop(rng.randrange(len(stage.calls))))
        elif chance < 0.98 and stage.persister.wake_at_ms is not None:
            stage.wait()
        elif chance > 0.99:
            brokers.change_cluster()
        writes = [call for call in stage.calls if isinstance(call.request, Write)]
        open_writes = [(call.node, cast(Write, call.request).group_id) for call in writes]
        assert len(open_writes) == len(set(open_writes)), "one request of a kind and group in flight to a broker"
    while stage.calls or stage.persister.wake_at_ms is not None:
        if stage.calls:
            brokers.answer(stage.calls.pop(0))
        else:
            stage.wait()
    brokers.check()


# ---- with a share coordinator ----------------------------------------------------------------------------------------


class PersisterWithCoordinator:
    """A persister with a share coordinator whose log fails at random and whose shards are re-elected."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        image = coordination.image(
            coordination.topic_image("t", TOPIC, 8), state_partitions=4, snapshot_update_records_per_snapshot=3
        )
        self.home = coordination.Stage(image)
        self.stage = Stage(image, seed)

    def deliver_next(self) -> None:
        """Deliver one call to the coordinator and its response back; either can get lost."""
        rng, call = self.rng, self.stage.calls.pop(0)
        if isinstance(call.request, FindCoordinatorRequest):
            coordinator = FindCoordinatorResponse.Coordinator(key=call.request.coordinator_keys[0], node_id=1)
            self.stage.send(Answer(call.id, FindCoordinatorResponse(coordinators=(coordinator,))))
            return None
        chance = rng.random()
        if chance < 0.05:
            return self.stage.lose(call, Errors.NETWORK_EXCEPTION)
        self.home.append_error = Errors.NOT_ENOUGH_REPLICAS if chance < 0.15 else Errors.NONE
        response = self.home.ask(cast(Any, call.request))
        if chance > 0.95:
            self.stage.lose(call, Errors.REQUEST_TIMED_OUT)
        else:
            self.stage.send(Answer(call.id, response))
        if rng.random() < 0.05:
            self.home.append_error = Errors.NONE
            self.home.elect(rng.randrange(4))
        return None


@pytest.mark.parametrize("index", range(4), ids=lambda index: f"run {index}")
def test_successful_writes_are_durable_under_random_faults(seed: int, index: int) -> None:
    """A write with a successful response is in the state, whatever messages were lost. BEHAVIOUR.md, 9 and 12."""
    pair = PersisterWithCoordinator(seed + index)
    stage, rng = pair.stage, pair.rng
    confirmed = dict.fromkeys(range(8), -1)
    initialize = coordination.Initialize
    for partition in range(8):
        pair.home.ask(
            coordination.named(initialize, SharePartitionKey("g", TOPIC, partition), state_epoch=0, start_offset=0)
        )
    writes: dict[int, tuple[int, int]] = {}
    for start in range(1, STEPS // 20):
        partition = rng.randrange(8)
        entry = Write.Partition(partition=partition, state_epoch=0, leader_epoch=0, start_offset=start)
        request = Write(group_id="g", topics=(Write.Topic(topic_id=TOPIC, partitions=(entry,)),))
        writes[stage.ask(request)] = partition, start
        while stage.calls and rng.random() < 0.7:
            pair.deliver_next()
        if stage.persister.wake_at_ms is not None and rng.random() < 0.3:
            stage.wait()
    while stage.calls or stage.persister.wake_at_ms is not None:
        if stage.calls:
            pair.deliver_next()
        else:
            stage.wait()
    assert stage.answers.keys() == writes.keys()
    for id_, (partition, start) in writes.items():
        if not stage.answers[id_].results[0].partitions[0].error_code:
            confirmed[partition] = max(confirmed[partition], start)
    pair.home.append_error = Errors.NONE
    pair.home.start()
    for partition, least in confirmed.items():
        summary = pair.home.summary(SharePartitionKey("g", TOPIC, partition))
        assert summary.start_offset >= least
    assert any(least > 0 for least in confirmed.values())
