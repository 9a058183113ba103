"""BrowseShareGroup (30001): look at the records of a share-partition without acquiring them (an experiment)."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response, message
from shareq.model.records import RecordBatch

FROM_SPSO = -1
"""The `from_offset` of a request for the records from the share-partition start offset on."""

DONE = -1
"""The state of records below the share-partition start offset: acknowledged or archived, which is not kept."""

UNTIL_EVENT = -1
"""The `until_ms` of a state that time does not end."""


class KeptBack(IntEnum):
    """Why an AVAILABLE record cannot be acquired now, and an ACQUIRED one not acknowledged."""

    NOT = 0
    RESTS = 1
    KEY = 2
    EXPIRED = 3
    PAUSED = 4
    STAGED = 5

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    KeptBack.NOT: "",
    KeptBack.RESTS: "it rests",
    KeptBack.KEY: "an earlier record of its key is unfinished",
    KeptBack.EXPIRED: "its time to live is over",
    KeptBack.PAUSED: "the group is paused",
    KeptBack.STAGED: "its acknowledgement is staged in a transaction",
}


@message
class BrowseShareGroupRequest(Request):
    """A page of at most `max_records` offsets, from `from_offset` or the share-partition start offset on."""

    API_KEY: ClassVar[int] = 30001

    group_id: str
    topic_id: TopicId
    partition: int
    from_offset: int = FROM_SPSO
    max_records: int = 500
    max_bytes: int = 1 << 20


@message
class BrowseShareGroupResponse(Response):
    """`runs`, with inclusive offsets, cover the page up to `next_offset`, without the offsets that the log does not
    have and that are not in flight. `records` are the whole record batches that have records of the page. `speo` is the
    last offset in flight, `spso` - 1 if there is none.
    """

    @message
    class Run:
        """`member_id` and `until_ms`: the holder and the end of its lock; `until_ms` also the end of a rest."""

        first_offset: int
        last_offset: int
        state: int
        delivery_count: int
        member_id: str | None = None
        until_ms: int = UNTIL_EVENT
        reason: int = KeptBack.NOT

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    spso: int = -1
    speo: int = -1
    high_watermark: int = -1
    now_ms: int = -1
    runs: tuple[Run, ...] = ()
    records: tuple[RecordBatch, ...] = ()
    next_offset: int = -1
