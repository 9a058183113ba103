"""Browsing: a leader that shows records without acquiring them. Rules: BEHAVIOUR.md, "Browsing".

A browse changes nothing: it takes no fetch lock, and of a share-partition that is not in memory it reads the durable
state into one of its own, which it forgets with the answer.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from shareq.leader.aborted_transactions import aborted_ranges
from shareq.leader.experiments.browsed_runs import browsed_runs, while_paused
from shareq.leader.experiments.errands import Ask, Errand, Errands
from shareq.leader.experiments.expiring_acquisition import expired_ranges
from shareq.leader.experiments.kinds import kind_of_share_partition
from shareq.leader.experiments.staging_requests import GRANTED, Refusal
from shareq.leader.leader import MAX_BYTES, ShareLeader
from shareq.leader.led_partitions import client_error
from shareq.leader.share_partition import SharePartition
from shareq.leader.state_reads import UNKNOWN_START_OFFSET, read_request, reset_timestamp, state_in
from shareq.model.actor import (
    Answer,
    FindOffset,
    Incoming,
    LogRead,
    OffsetFound,
    Persist,
    ReadLog,
    Respond,
)
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.ids import SharePartitionKey, TopicPartition
from shareq.model.messages.share_browse import FROM_SPSO, BrowseShareGroupRequest, BrowseShareGroupResponse
from shareq.model.states import IsolationLevel, PartitionLoadState
from shareq.model.time_of_day import TimeOfDay, same_time

Loading = Generator[Ask, Any, SharePartition | Refusal]
Browse = Generator[Ask, Any, BrowseShareGroupResponse]


class BrowsingShareLeader(ShareLeader):
    """Has the interface of ShareLeader, and answers BrowseShareGroup, too."""

    def __init__(self, broker_id: int, *, traced: bool, sole: bool = False, time_of_day: TimeOfDay = same_time) -> None:
        super().__init__(broker_id, traced=traced, sole=sole, time_of_day=time_of_day)
        self._errands = Errands(self._context, self._handlers)

    def _incoming(self, incoming: Incoming) -> None:
        if isinstance(incoming.request, BrowseShareGroupRequest):
            self._errands.begin(self._answer(incoming.id, incoming.request))
        else:
            super()._incoming(incoming)

    # ---- one browse --------------------------------------------------------------------------------------------------

    def _answer(self, request_id: int, request: BrowseShareGroupRequest) -> Errand:
        page = yield from self._browse(request)
        self._context.effects.append(Respond(request_id, page))

    def _browse(self, request: BrowseShareGroupRequest) -> Browse:
        key = SharePartitionKey(request.group_id, request.topic_id, request.partition)
        found = yield from self._find(request, key)
        if isinstance(found, tuple):
            return _refused(found)
        log = TopicPartition(found.topic, key.partition)
        offset = found.spso if request.from_offset == FROM_SPSO else request.from_offset
        read = yield from self._read(request, log, offset)
        if read.error is Errors.OFFSET_OUT_OF_RANGE and request.from_offset == FROM_SPSO:
            offset = max(offset, read.log_start_offset)
            read = yield from self._read(request, log, offset)
        now_found = yield from self._find(request, key, read_before=found)
        if isinstance(now_found, tuple):
            return _refused(now_found)
        return self._page(request, now_found, offset, read)

    def _read(self, request: BrowseShareGroupRequest, log: TopicPartition, offset: int) -> Generator[Ask, Any, LogRead]:
        isolation = self._context.config(request.group_id).isolation_level
        end = offset + request.max_records
        most = min(request.max_bytes, self._context.image.broker_config[MAX_BYTES])
        read: LogRead = yield lambda call_id: ReadLog(call_id, log, offset, most, isolation, end)
        return read

    def _find(
        self, request: BrowseShareGroupRequest, key: SharePartitionKey, read_before: SharePartition | None = None
    ) -> Loading:
        """The share-partition that this broker leads: the one in memory, else `read_before` if it was never in memory,
        else one that has the durable state."""
        refusal = self._refusal(request)
        if refusal[0]:
            return refusal
        led = self._partitions.get(key)
        if led is not None and led.share_partition.status is PartitionLoadState.ACTIVE:
            return led.share_partition
        if read_before is not None and read_before.status is PartitionLoadState.ACTIVE:
            return read_before
        return (yield from self._load(key))

    def _refusal(self, request: BrowseShareGroupRequest) -> Refusal:
        image = self._context.image
        if image.share_version < 1:
            return Errors.UNSUPPORTED_VERSION, "share groups are switched off"
        for name, least in (("from_offset", FROM_SPSO), ("max_records", 1), ("max_bytes", 1)):
            if getattr(request, name) < least:
                return Errors.INVALID_REQUEST, f"{name}={getattr(request, name)}: must be {least} or more"
        topic = image.topics_by_id.get(request.topic_id)
        partition = image.partition(request.topic_id, request.partition)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_ID, f"no topic has the id {request.topic_id}"
        if partition is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"{topic.name} has no partition {request.partition}"
        if partition.leader != self._context.broker_id:
            return Errors.NOT_LEADER_OR_FOLLOWER, f"broker {partition.leader} leads {topic.name}:{request.partition}"
        return GRANTED

    def _load(self, key: SharePartitionKey) -> Loading:
        """The durable state, as a first fetch would load it. No member holds a record of it, and no letter is sent."""
        context, image = self._context, self._context.image
        topic = image.topics_by_id[key.topic_id].name
        leader_epoch = image.topics[topic].partitions[key.partition].leader_epoch
        answer: Answer = yield lambda call_id: Persist(call_id, read_request(key, leader_epoch))
        state = state_in(answer, key)
        if state is None:
            return Errors.COORDINATOR_NOT_AVAILABLE, f"the durable state could not be read: {answer.error.name}"
        if state.error_code in (Errors.INVALID_REQUEST, Errors.GROUP_ID_NOT_FOUND):  # there is none
            return Errors.GROUP_ID_NOT_FOUND, f"group {key.group_id!r} does not exist, or never subscribed to {topic}"
        if state.error_code:
            reason = f"the durable state could not be read: {state.error_code.name}"
            return client_error(state.error_code), reason
        config, start_offset = context.config(key.group_id), state.start_offset
        if start_offset == UNKNOWN_START_OFFSET:
            log, timestamp = TopicPartition(topic, key.partition), reset_timestamp(config, context.day_ms)
            found: OffsetFound = yield lambda call_id: FindOffset(call_id, log, timestamp)
            if found.error or found.offset < 0:
                error = found.error or Errors.OFFSET_NOT_AVAILABLE
                return error, f"the start offset could not be found: {error.name}"
            start_offset = found.offset
        kind = kind_of_share_partition(config.experiments)
        loaded = kind(key, topic, leader_epoch=leader_epoch, traced=False)
        batches, staged = state.state_batches, state.staged_batches
        if not loaded.load(state.state_epoch, start_offset, batches, config=config, staged=staged):
            return Errors.UNKNOWN_SERVER_ERROR, "the durable state is invalid"
        return loaded

    def _page(
        self, request: BrowseShareGroupRequest, share_partition: SharePartition, offset: int, read: LogRead
    ) -> BrowseShareGroupResponse:
        """The state is that of now, the records those of the read."""
        window = share_partition.window
        committed = self._context.config(request.group_id).isolation_level is IsolationLevel.READ_COMMITTED
        limit = read.last_stable_offset if committed else read.high_watermark
        bounds: dict[str, Any] = {
            "spso": window.spso,
            "speo": window.window_end - 1,
            "high_watermark": read.high_watermark,
            "now_ms": self._context.now_ms,
        }
        beyond = read.error is Errors.OFFSET_OUT_OF_RANGE and request.from_offset == FROM_SPSO  # the end of the log
        if read.error and not beyond:
            reason = None
            if read.error is Errors.OFFSET_OUT_OF_RANGE:
                reason = f"offset {offset}: the log has {read.log_start_offset}..{read.high_watermark}"
            return BrowseShareGroupResponse(error_code=read.error, error_message=reason, **bounds)
        first = max(offset, window.spso) if request.from_offset == FROM_SPSO else offset
        batches = [batch for batch in read.batches if batch.base_offset < limit]
        end = min(batches[-1].last_offset + 1 if batches else limit, limit, offset + request.max_records)
        aborted = aborted_ranges(batches, read.aborted) if committed else []
        left_out = {f for f, _ in aborted}
        experiments = self._context.config(request.group_id).experiments or Experiments()
        expired = expired_ranges(batches, experiments.record_ttl_ms, self._context.day_ms)
        runs = browsed_runs(window, first, end, aborted, expired) if first < end else ()
        return BrowseShareGroupResponse(
            runs=runs if experiments.delivery_enable else while_paused(runs),
            records=tuple(
                batch
                for batch in batches
                if batch.base_offset < end and batch.last_offset >= first and batch.base_offset not in left_out
            ),
            next_offset=max(first, end),
            **bounds,
        )


def _refused(refusal: Refusal) -> BrowseShareGroupResponse:
    error, reason = refusal
    return BrowseShareGroupResponse(error_code=error, error_message=reason)
