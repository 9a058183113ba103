"""Answers ReadJournal: views in other processes read the tap's journal. BEHAVIOUR.md, section 5."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from shareq.model.errors import Errors
from shareq.model.messages.tap_journal import ReadJournalRequest, ReadJournalResponse
from shareq.trace.journal import Journal
from shareq.trace.journal.jsonl import page
from shareq.wire.errors import MalformedFrame, RequestHeader, UnsupportedVersion
from shareq.wire.frames import decode_request, encode_response

MOST_BYTES = 1 << 20
"""The most entries of a response, in bytes. To encode them takes the tap's thread some milliseconds."""

MOST_WAIT_MS = 30_000
GATHER_S = 0.02
"""The time from a new entry to the responses that have it: events of one moment are in one response."""


class Reader(Protocol):
    """A client's connection."""

    number: int
    admitted: bool

    @property
    def unsent_bytes(self) -> int: ...
    def answer(self, frame: bytes) -> None: ...


@dataclass(slots=True, eq=False)
class _Waiting:
    reader: Reader
    header: RequestHeader
    request: ReadJournalRequest
    timer: asyncio.TimerHandle | None = None


class JournalReaders:
    """Requests that wait for entries, one of a connection. All methods run in the proxy's thread. `follow(group)` makes
    the tap observe a group."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        follow: Callable[[str], object],
    ) -> None:
        self._journal, self._loop, self._now_ms, self._follow = journal, loop, now_ms, follow
        self._waiting: dict[int, _Waiting] = {}
        self._waking = False

    def ask(self, reader: Reader, frame: bytes) -> None:
        """Answer a request, in a frame without its size, now or when it has waited. MalformedFrame, also for a client
        that asks again before it has received the response: what is kept for it stays bounded."""
        try:
            header, request = decode_request(frame)
        except UnsupportedVersion as problem:
            raise MalformedFrame(str(problem)) from problem
        assert isinstance(request, ReadJournalRequest)
        if reader.number in self._waiting or reader.unsent_bytes:
            raise MalformedFrame("the journal is requested before the last response has been received")
        waiting = _Waiting(reader, header, request)
        error = self._refusal(reader, request)
        if error:
            self._respond(waiting, ReadJournalResponse(error_code=error))
            return
        if request.group_id:
            self._follow(request.group_id)
        if request.max_wait_ms > 0 and request.from_order == self._journal.total:
            delay_s = min(request.max_wait_ms, MOST_WAIT_MS) / 1000
            waiting.timer = self._loop.call_later(delay_s, self._end_wait, reader.number)
            self._waiting[reader.number] = waiting
        else:
            self._answer(waiting)

    def grown(self) -> None:
        """The journal may have new entries."""
        if self._waiting and not self._waking and self._is_any_due():
            self._waking = True
            self._loop.call_later(GATHER_S, self._wake)

    def lost(self, number: int) -> None:
        """A connection has ended."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None and waiting.timer is not None:
            waiting.timer.cancel()

    @property
    def waiting(self) -> int:
        """The number of requests that wait; from any thread."""
        return len(self._waiting)

    # ---- responses ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _refusal(reader: Reader, request: ReadJournalRequest) -> Errors:
        if not reader.admitted:
            return Errors.ILLEGAL_SASL_STATE
        return Errors.INVALID_REQUEST if request.from_order < 0 or request.max_bytes < 1 else Errors.NONE

    def _is_any_due(self) -> bool:
        total = self._journal.total
        return any(waiting.request.from_order < total for waiting in self._waiting.values())

    def _wake(self) -> None:
        self._waking = False
        total = self._journal.total
        for number in [one for one, waiting in self._waiting.items() if waiting.request.from_order < total]:
            self._end_wait(number)

    def _end_wait(self, number: int) -> None:
        waiting = self._waiting[number]
        self.lost(number)
        self._answer(waiting)

    def _answer(self, waiting: _Waiting) -> None:
        request, total = waiting.request, self._journal.total
        content = page(self._journal, request.from_order, min(request.max_bytes, MOST_BYTES))
        self._respond(waiting, ReadJournalResponse(now_ms=self._now_ms(), total=total, journal=content))

    @staticmethod
    def _respond(waiting: _Waiting, response: ReadJournalResponse) -> None:
        waiting.reader.answer(encode_response(waiting.header, response))
