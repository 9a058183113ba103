"""The words for the events of a record: one row for each `RecordEvent`, which the journal and all pictures use.

A row that is missing is an error at import, so that a new event gets its words in one place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from shareq.model.states import RecordEvent


class RecordWords(NamedTuple):
    """The words for one event of a record.

    `sentence`: of the journal, about `{offsets}` and `{member}`. `past`: the event as a chapter of the record's life
    names it. `because`: a clause with `{holder}`, `{at}` and `{delivery}`, the reason for the place of the record.
    `lock`: the end of its lock in a few words; "": as `past`.
    """

    sentence: str
    past: str
    because: str
    lock: str = ""


WORDS: Final[dict[str, RecordWords]] = {
    RecordEvent.ACQUIRE: RecordWords(
        "{member} acquired {offsets}", "acquired", "{holder} acquired it at {at}, in {delivery}"
    ),
    RecordEvent.ACCEPT: RecordWords(
        "{member} accepted {offsets}", "accepted", "{holder} accepted it at {at}, in {delivery}"
    ),
    RecordEvent.RELEASE: RecordWords(
        "{member} released {offsets}", "released", "{holder} released it at {at}, in {delivery}"
    ),
    RecordEvent.REJECT: RecordWords(
        "{member} rejected {offsets}", "rejected", "{holder} rejected it at {at}, in {delivery}"
    ),
    RecordEvent.GAP: RecordWords(
        "{member} found no record at {offsets}",
        "acknowledged as a gap",
        "{holder} found no record there at {at}",
        lock="no record there",
    ),
    RecordEvent.RENEW: RecordWords(
        "{member} renewed its lock on {offsets}", "renewed", "{holder} renewed its lock at {at}, in {delivery}"
    ),
    RecordEvent.LOCK_TIMEOUT: RecordWords(
        "the lock on {offsets} ran out",
        "not acknowledged: the lock ran out",
        "the lock of {holder} ran out at {at}, in {delivery}",
        lock="expired",
    ),
    RecordEvent.SESSION_RELEASE: RecordWords(
        "the share session of {member} released {offsets}",
        "released at the end of the share session",
        "the share session of {holder} ended at {at}, in {delivery}",
        lock="session ended",
    ),
    RecordEvent.LOG_START: RecordWords(
        "the log now starts above {offsets}",
        "below the new log start",
        "the log start moved above it at {at}",
        lock="below the log start",
    ),
    RecordEvent.MISSING: RecordWords(
        "{offsets} is no longer in the log",
        "no longer in the log",
        "a fetch at {at} found that the log no longer has it",
    ),
    RecordEvent.ABORTED: RecordWords(
        "{offsets} belongs to an aborted transaction",
        "found to be part of an aborted transaction",
        "it belongs to an aborted transaction",
        lock="transaction aborted",
    ),
    RecordEvent.DEAD_LETTERED: RecordWords(
        "the way of {offsets} to the dead-letter queue has ended",
        "on its way to the dead-letter queue until then",
        "its way to the dead-letter queue ended at {at}",
    ),
    RecordEvent.EXPIRED: RecordWords(
        "the time to live of {offsets} was over",
        "its time to live was over",
        "its time to live was over when a fetch reached it at {at}",
    ),
    RecordEvent.TXN_ABORT: RecordWords(
        "the transaction that {offsets} is staged in was aborted",
        "given back: its transaction was aborted",
        "the transaction that {holder} acknowledged it in was aborted at {at}, in {delivery}",
        lock="acknowledgement rolled back",
    ),
}

assert WORDS.keys() == set(RecordEvent), set(RecordEvent) ^ WORDS.keys()
