"""The share fetch response without its records, which the tap does not read."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Response, message
from shareq.model.messages.share_fetch import NO_LEADER, AcquiredRecords, LeaderIdAndEpoch
from shareq.wire.codec import MessageReader, reader
from shareq.wire.codec.primitives import skip_tags
from shareq.wire.errors import MalformedFrame

SHARE_FETCH = 78


@message
class AcquiredResponse(Response):
    API_KEY: ClassVar[int] = SHARE_FETCH

    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        acknowledge_error_code: Errors = Errors.NONE
        current_leader: LeaderIdAndEpoch = NO_LEADER
        acquired_records: tuple[AcquiredRecords, ...] = ()

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[AcquiredResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    acquisition_lock_timeout_ms: int = 0
    responses: tuple[Topic, ...] = ()


@cache
def _reader(version: int) -> MessageReader:
    return reader(AcquiredResponse, SHARE_FETCH, version)


def decode_acquired(version: int, frame: bytes | bytearray) -> AcquiredResponse:
    """A share fetch response from a frame with its size before it; its records are skipped. MalformedFrame."""
    try:
        response, end = _reader(version).read(frame, skip_tags(frame, 8))
    except (IndexError, ValueError) as problem:
        raise MalformedFrame(f"response of {len(frame)} bytes: {problem}") from problem
    if end > len(frame):
        raise MalformedFrame(f"response of {len(frame)} bytes ends at {end}")
    found: AcquiredResponse = response
    return found
