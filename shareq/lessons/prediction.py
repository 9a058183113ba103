"""Predictions: a learner commits to an answer before the outcome is shown, and then sees both side by side."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from math import isfinite
from typing import Any

from shareq.lessons.progress import for_readers, load, store

Value = str | int | float


class Prediction:
    """One question. `commit` is final; `outcome` shows what happened, once there is a committed answer.

    In a notebook it is displayed with its choices, or a field, and a button.
    """

    def __init__(self, key: str, question: str, choices: Iterable[Value], within: float) -> None:
        self.key = key
        self.question = question
        self.choices = tuple(choices)
        self.answer: Value | None = None
        self._within = within
        self.known: Outcome | None = None
        self._form: Any = None

    def commit(self, answer: Value) -> Prediction:
        """Commit to an answer. ValueError for one that is no choice or no number, and for a second one."""
        if self.answer is not None:
            raise ValueError(f"{self.key} is committed already, to {self.answer!r}")
        if not self.choices and not _is_number(answer):
            raise ValueError(f"answer={answer!r}: must be a number")
        found = [choice for choice in self.choices if _alike(choice, answer, 0)]
        if self.choices and not found:
            raise ValueError(f"answer={answer!r}: must be one of {', '.join(map(repr, self.choices))}")
        self.answer = found[0] if found else answer
        self._grade()
        return self

    def outcome(self, happened: Value, *shown: object) -> Outcome:
        """What happened, with the prediction beside it, and then `shown`.

        Nothing of it is displayed before a prediction is committed, except to readers.
        """
        if self.choices and not any(_alike(choice, happened, 0) for choice in self.choices):
            raise AssertionError(f"{self.key}: {happened!r} happened, and is none of {self.choices}")
        self.known = Outcome(self, happened, tuple(map(str, shown)))
        self._grade()
        return self.known

    @property
    def right(self) -> bool | None:
        """Is the committed answer what happened? None before both are known."""
        if self.answer is None or self.known is None:
            return None
        return _alike(self.answer, self.known.happened, self._within)

    def _grade(self) -> None:
        if (right := self.right) is not None:
            record = load()
            record.predictions.setdefault(self.key, right)
            store(record)
        if self._form is not None:
            self._form.refresh()

    def _text(self) -> str | None:
        if self.answer is None:
            return None
        return f"your prediction: {self.answer}. Now run the next cell." if self.known is None else repr(self.known)

    def __repr__(self) -> str:
        lines = [f"? {self.question}"]
        if self.choices:
            lines.append(f"  {' | '.join(map(str, self.choices))}")
        if (text := self._text()) is not None:
            lines += [f"  {line}" for line in text.splitlines()]
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        text = {"text/plain": repr(self)}
        if find_spec("ipywidgets") is None:
            return text
        from shareq.lessons.prediction_form import Form

        self._form = self._form or Form(self.question, self.choices, self.commit, self._text)
        return {**self._form.bundle(), **text}


class Outcome:
    """What happened, beside the prediction; withheld as long as there is none."""

    def __init__(self, prediction: Prediction, happened: Value, shown: tuple[str, ...]) -> None:
        self.prediction = prediction
        self.happened = happened
        self.shown = shown

    def __repr__(self) -> str:
        guess = self.prediction
        if guess.answer is None and not for_readers():
            return "? Commit a prediction in the cell above: what happened then appears below it."
        lines = [f"what happened:   {self.happened}", *self.shown]
        if guess.right is not None:
            lines.insert(0, f"your prediction: {guess.answer} {'✓' if guess.right else '✗'}")
        return "\n".join(lines)


def predict(key: str, question: str, choices: Iterable[Value] = (), *, within: float = 0) -> Prediction:
    """A question of a lesson; its key is the lesson's number and a letter, such as "03.a".

    Without choices a number is asked for; it is right if it is off by at most `within`.
    """
    return Prediction(key, question, choices, within)


def _is_number(value: Value) -> bool:
    try:
        return isfinite(float(value))
    except ValueError:
        return False


def _alike(one: Value, other: Value, within: float) -> bool:
    try:
        return abs(float(one) - float(other)) <= within
    except ValueError:
        return str(one).strip().lower() == str(other).strip().lower()
