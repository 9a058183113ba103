"""ReadJournal (30002): the journal of a tap, for views in other processes. A tap answers it, and no broker has it."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


@message
class ReadJournalRequest(Request):
    """The entries of the journal from an order on; the tap waits up to `max_wait_ms` for the first of them.

    `group_id`: a group to observe if the tap does not yet; None: none. `max_bytes` limits the entries in the response,
    but for the first one.
    """

    API_KEY: ClassVar[int] = 30002

    group_id: str | None = None
    from_order: int
    max_wait_ms: int
    max_bytes: int


@message
class ReadJournalResponse(Response):
    """`journal`: a journal file of JSON Lines, with its header and some entries. Entries before the first of them are
    missing if its order is higher than the requested one: the tap's bounded journal has dropped them. `total`: the
    order behind the newest entry. `now_ms`: the tap's clock."""

    error_code: Errors = Errors.NONE
    now_ms: int = -1
    total: int = -1
    journal: bytes = b""
