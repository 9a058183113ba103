"""What a configuration is: a key, a default, what is allowed, and the words for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shareq.model.errors import ConfigException

INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ConfigDef:
    """One key: its default as a typed value, the allowed range or choices, and what it is for."""

    key: str
    default: int | float | bool | str
    doc: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    broker_key: str | None = None
    """Group keys: the broker key that stands in for a missing override."""
    bounds: tuple[str, str] | None = None
    """Group keys: the broker keys that bound an override."""
    unused: bool = False
    """Accepted and checked because Kafka has the key; nothing here reads it."""

    @property
    def allowed(self) -> str:
        """The allowed values in words, for error messages and tables."""
        if isinstance(self.default, bool):
            return "true or false"
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, (int, float)):
            return f"{self.low}..{self.high}" if self.high not in (None, INT_MAX) else f">= {self.low}"
        return "any text"

    def parse(self, value: object) -> int | float | bool | str:
        """The typed value; ConfigException names the key, the value and what is allowed. 5.0 is the integer 5."""
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
        """Digits alone, ASCII ones, and a fraction where the key takes one; None for any other text."""
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
    """Milliseconds of `by_duration:PnDTnHnMn.nS`, or None where the text is no such thing."""
    prefix, _, iso = text.partition(":")
    match = _DURATION.fullmatch(iso.upper()) if prefix == "by_duration" else None
    if match is None or not any(match.groups()):
        return None
    part = {name: float(value or 0) for name, value in match.groupdict().items()}
    seconds = part["days"] * 86400 + part["hours"] * 3600 + part["minutes"] * 60 + part["seconds"]
    return int(seconds * 1000)
