"""Requests under way and the handlers of their answers: the only place of a client's actor that makes effects."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from shareq.model.actor import Answer, Call, Effect
from shareq.model.errors import Errors, KafkaError
from shareq.model.messages.base import Request, Response

if TYPE_CHECKING:
    from shareq.model.events import Event

OnAnswer = Callable[[Response | None, Errors, int], None]
"""(response, error, now_ms): without a response, `error` is the reason."""


UNREACHABLE_MS = 3000
"""A client that has never had a response, and whose connections fail for so long, reports an error."""


class Calls:
    """Sends requests, passes each answer to its handler, and collects the effects of one turn of the actor."""

    __slots__ = (
        "_effects",
        "_failing_since_ms",
        "_last_id",
        "_reached",
        "_timeout_ms",
        "_waiting",
        "reason",
        "refusal",
        "unreachable",
    )

    def __init__(self, request_timeout_ms: int = 30000) -> None:
        self.unreachable: KafkaError | None = None
        """The error of a client that no broker has ever answered; a response clears it."""
        self.refusal = ""
        """Why the last connection of such a client has failed; empty before that, and after a response."""
        self._reached = False
        self._failing_since_ms: int | None = None
        self.reason = ""
        """Why the present answer has no response, in words."""
        self._effects: list[Effect] = []
        self._waiting: dict[int, OnAnswer] = {}
        self._last_id = 0
        self._timeout_ms = request_timeout_ms

    def send(self, node: int, request: Request, on_answer: OnAnswer) -> None:
        self._last_id += 1
        self._waiting[self._last_id] = on_answer
        self._effects.append(Call(self._last_id, node, request, self._timeout_ms))

    def emit(self, event: Event) -> None:
        """Write an event to the journal."""
        self._effects.append(event)

    def answered(self, answer: Answer, now_ms: int) -> None:
        """Pass an answer to its handler; a duplicate is dropped."""
        self.reason = answer.reason
        if not self._reached:
            self._watch_first_response(answer, now_ms)
        on_answer = self._waiting.pop(answer.id, None)
        if on_answer is not None:
            on_answer(answer.response, answer.error, now_ms)

    def _watch_first_response(self, answer: Answer, now_ms: int) -> None:
        if answer.error is Errors.REQUEST_TIMED_OUT and answer.response is None:
            return  # neither a sign of a broker nor a refusal
        if answer.error is not Errors.NETWORK_EXCEPTION:
            self._reached = True
            self.unreachable = None
            self.refusal = ""
            return
        self.refusal = answer.reason or "connections fail"
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        elif now_ms - self._failing_since_ms >= UNREACHABLE_MS:
            self.unreachable = KafkaError(KafkaError._TRANSPORT, f"no broker is reachable: {self.refusal}")

    @property
    def reached(self) -> bool:
        """True if a broker has ever answered."""
        return self._reached

    def take_unreachable(self) -> KafkaError | None:
        """The error that no broker is reachable, once; it returns if connections go on failing."""
        error, self.unreachable = self.unreachable, None
        if error is not None:
            self._failing_since_ms = None
        return error

    def take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects


class Backoff:
    """The pause before the next attempt: doubling, bounded, with jitter. Source: Java's ExponentialBackoff."""

    __slots__ = ("_initial_ms", "_max_ms", "_rng")

    def __init__(self, rng: random.Random, initial_ms: int = 100, max_ms: int = 1000) -> None:
        self._rng = rng
        self._initial_ms = initial_ms
        self._max_ms = max_ms

    def delay_ms(self, attempts: int) -> int:
        """The pause after `attempts` failures in a row (at least 1), ms; never below 1."""
        base = min(self._max_ms, self._initial_ms << min(attempts - 1, 20))
        return max(1, round(base * self._rng.uniform(0.8, 1.2)))


def earliest(*times_ms: int | None) -> int | None:
    """The first of several times; None stands for never."""
    return min([at for at in times_ms if at is not None], default=None)
