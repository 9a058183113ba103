"""The definition of a configuration key: default, allowed values, description."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shareq.model.errors import ConfigException

INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ConfigDef:
    """One key: its default as a typed value, the allowed range or choices, and its description."""

    key: str
    default: int | float | bool | str
    doc: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    broker_key: str | None = None
    """Group keys: the broker key with the value for groups without an override."""
    bounds: tuple[str, str] | None = None
    """Group keys: the broker keys that bound an override."""
    unused: bool = False
    """True if the key has no effect: it is accepted and checked because Kafka has it."""

    @property
    def allowed(self) -> str:
        """The allowed values as text, for error messages and tables."""
        if isinstance(self.default, bool):
            return "true or false"
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, (int, float)):
            return f"{self.low}..{self.high}" if self.high not in (None, INT_MAX) else f">= {self.low}"
        return "any text"

    def parse(self, value: object) -> int | float | bool | str:
        """The typed value. 5.0 is the integer 5. Raises ConfigException with the key, the value and the allowed
        values."""
        whole = isinstance(value, float) and value.is_integer()
        text = str(int(value) if whole else value).strip()  # type: ignore[call-overload]    # a float
        if isinstance(self.default, bool):
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
        elif isinstance(self.default, (int, float)):
            number = self._number(text)
            if number is not None and self._within(number):
                return number
        elif not self.choices or text in self.choices or self._by_duration(text):
            return text
        raise ConfigException(f"{self.key}={value!r}: must be {self.allowed}")

    def _number(self, text: str) -> int | float | None:
        """The number in `text`: ASCII digits, with a fraction if the key allows one; None for any other text."""
        if re.fullmatch(r"[+-]?[0-9]{1,25}", text):
            return int(text) if isinstance(self.default, int) else float(text)
        if isinstance(self.default, float) and re.fullmatch(r"[+-]?[0-9]{0,25}\.[0-9]{1,25}", text):
            return float(text)
        return None

    def _within(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def _by_duration(self, text: str) -> bool:
        return "by_duration:<duration>" in self.choices and parse_by_duration(text) is not None


_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?"
)


def parse_by_duration(text: str) -> int | None:
    """The milliseconds of `by_duration:PnDTnHnMn.nS`, or None if the text has another form."""
    prefix, _, iso = text.partition(":")
    match = _DURATION.fullmatch(iso.upper()) if prefix == "by_duration" else None
    if match is None or not any(match.groups()):
        return None
    part = {name: float(value or 0) for name, value in match.groupdict().items()}
    seconds = part["days"] * 86400 + part["hours"] * 3600 + part["minutes"] * 60 + part["seconds"]
    return int(seconds * 1000)
