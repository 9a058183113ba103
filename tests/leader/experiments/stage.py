"""A share-partition that stages acknowledgements, in the shorthand of BEHAVIOUR.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shareq.leader.experiments.staging_share_partition import StagingSharePartition
from shareq.leader.share_partition import PreparedWrite
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.messages.share_state import Producer, StagedBatch
from tests.leader.share_partition_stage import KEY, SharePartitionStage, acknowledgements, state_batches

P = Producer(7, 5)
LATER = Producer(7, 6)
OTHER = Producer(8, 0)


def staged_batches(text: str, producer: Producer = P) -> list[StagedBatch]:
    """ "0-2:ACK,4:AR2" as staged batches."""
    return [StagedBatch(*producer, *batch) for batch in state_batches(text)]


class StagingStage(SharePartitionStage):
    """Its partition stages; the start offset is durable, unless `fresh`. `staged`: what a load finds staged."""

    partition: StagingSharePartition

    def __init__(self, *, fresh: bool = False, staged: list[StagedBatch] | None = None, **more: Any) -> None:
        stored, start = more.pop("stored", ""), more.get("start", 0)
        super().__init__(experiments=more.pop("experiments", Experiments()), **more)
        if stored or staged:
            traced = more.get("traced", False)
            self.partition = type(self.partition)(KEY, "t", leader_epoch=1, traced=traced)
            batches = state_batches(stored)
            assert self.partition.load(3, start, batches, config=self.config, staged=staged or [])
        if not fresh and not staged:
            self.ok(self.partition.write_start(0))

    def prepare(self, member: str, text: str, producer: Producer = P) -> PreparedWrite:
        """Stage; the returned write is in flight."""
        write = self.partition.stage(producer, member, acknowledgements(text), self.config, self.now_ms)
        assert isinstance(write, PreparedWrite), write
        return write

    def staged(self, member: str, text: str, producer: Producer = P) -> None:
        """Stage, durably."""
        assert not self.ok(self.prepare(member, text, producer)), "a staged write never moves the SPSO"

    def refused(self, member: str, text: str, producer: Producer = P) -> Errors:
        error = self.partition.stage(producer, member, acknowledgements(text), self.config, self.now_ms)
        assert isinstance(error, Errors)
        return error

    def commit(self, producer: Producer = P) -> bool:
        return self.partition.end_transaction(producer, True, self.config, self.now_ms)

    def abort(self, producer: Producer = P) -> bool:
        return self.partition.end_transaction(producer, False, self.config, self.now_ms)

    def reread(self, stored: str, staged: list[StagedBatch] | None = None) -> bool:
        settled = self.partition.settled
        return self.partition.reread(state_batches(stored), staged or [], self.config, self.now_ms, settled)

    def limited(self, limit: int) -> None:
        self.config = replace(self.config, delivery_count_limit=limit)

    @property
    def marks(self) -> str:
        """The staged runs with their verdicts: "0-2 accept, 5 reject"."""
        runs = [
            (f"{first}-{end - 1}" if end - first > 1 else f"{first}") + f" {cell.event}"
            for first, end, cell in self.partition.window.states.runs()
            if cell.staged
        ]
        return ", ".join(runs)
