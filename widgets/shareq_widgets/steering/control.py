"""One control of the panel: a value within a range or a choice, and the line of Python that applies it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.numbers import plain

BUTTON, SLIDER, CHOICE = "button", "slider", "choice"

Number = int | float


class Executor(Protocol):
    """What a control needs of the panel: it executes a line, and keeps it."""

    def execute(self, line: str) -> None: ...


class Range:
    """The numbers that a slider offers, and those that its control takes; `log`: for a logarithmic slider.

    `low` and `high` bound the slider; `least` and `most` what `do` accepts (None: the same).
    """

    __slots__ = ("high", "least", "log", "low", "most", "whole")

    def __init__(
        self,
        low: Number,
        high: Number,
        *,
        log: bool = False,
        whole: bool = True,
        least: Number | None = None,
        most: Number | None = None,
    ) -> None:
        self.low, self.high, self.log, self.whole = low, high, log, whole
        self.least = low if least is None else least
        self.most = high if most is None else most

    def check(self, name: str, value: object) -> Number:
        """The value; ConfigException with name, value and range if it is not in the range."""
        value = plain(value)
        number = isinstance(value, int if self.whole else (int, float)) and not isinstance(value, bool)
        if not (number and self.least <= value <= self.most):  # type: ignore[operator]    # it is a number
            kind = "a whole number" if self.whole else "a number"
            raise ConfigException(f"{name}={value!r}: must be {kind} in {self.least}..{self.most}")
        return value  # type: ignore[return-value]


def _always() -> str:
    return ""


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Control:
    """A control. The attributes are fixed; the properties are read from the cluster at each access.

    `name` is unique in the panel; `area` groups controls; `subject` is the consumer, broker, topic or partition that it
    acts on ("": the whole cluster or group). `kind`: "button", "slider" or "choice". `meaning`: one sentence. `unit`:
    of a slider's numbers. A `momentary` control acts when it is used, and has a proposal as its value; others set
    something, which is their value.
    """

    panel: Executor
    name: str
    area: str
    kind: str
    meaning: str
    line: Callable[[Any], str]
    """The line for a checked value."""
    subject: str = ""
    unit: str = ""
    momentary: bool = False
    current: Callable[[], Any] = _nothing
    span: Callable[[], Range] | None = None
    options: Callable[[], tuple[Any, ...]] | None = None
    refusal: Callable[[], str] = _always
    checked: Callable[[Any], Any] | None = None
    """A check of its own, for values that are neither in a range nor one of the options; it raises ConfigException."""

    @property
    def value(self) -> Any:
        """What is in force now; of a momentary control, a proposal; None of a button."""
        return self.current()

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of a choice, in order of display."""
        return self.options() if self.options is not None else ()

    @property
    def low(self) -> Number | None:
        """The lower end of a slider."""
        return self.span().low if self.span is not None else None

    @property
    def high(self) -> Number | None:
        """The upper end of a slider. A value in force may lie beyond it, such as a time-out of 300 years."""
        return self.span().high if self.span is not None else None

    @property
    def log(self) -> bool:
        """True if the slider is logarithmic, because its range spans two decades or more. Its low end may be 0."""
        return self.span is not None and self.span().log

    @property
    def whole(self) -> bool:
        """True if a slider has whole numbers only."""
        return self.span is not None and self.span().whole

    @property
    def reason(self) -> str:
        """Why the control is not available; "" if it is."""
        return self.refusal()

    @property
    def available(self) -> bool:
        """True if the control can act now."""
        return not self.reason

    def check(self, value: Any = None) -> Any:
        """The value as `code` uses it. ConfigException names the control, the value and what is allowed."""
        value = plain(value)
        if self.checked is not None:
            return self.checked(value)
        if self.span is not None:
            return self.span().check(self.name, value)
        if self.options is not None:
            if value not in self.choices or isinstance(value, bool) != isinstance(self.choices[0], bool):
                raise ConfigException(f"{self.name}={value!r}: must be one of {', '.join(map(repr, self.choices))}")
            return value
        if value is not None:
            raise ConfigException(f"{self.name}={value!r}: must be None, because a button has no value")
        return None

    def code(self, value: Any = None) -> str:
        """The line of Python that does it in a notebook, with the names of `Steering.setup`. Raises as `check`."""
        return self.line(self.check(value))

    def do(self, value: Any = None) -> str:
        """Execute that line, and return it. ConfigException for a bad value, IllegalStateException if the control is
        not available: both change nothing."""
        line = self.code(value)
        if self.reason:
            raise IllegalStateException(f"{self.name}: {self.reason}")
        self.panel.execute(line)
        return line

    def __repr__(self) -> str:
        state = self.reason or ("" if self.kind == BUTTON else f"{self.value!r} {self.unit}".strip())
        return f"<{self.kind} {self.name}{f': {state}' if state else ''}>"
