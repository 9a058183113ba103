"""The definition of a configuration key: default, type, allowed values, description."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from shareq.model.errors import ConfigException
from shareq.model.messages.topics import ConfigType
from shareq.model.numbers import plain

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1

Value = int | float | bool | str

_NUMBER = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class ConfigDef:
    """One key: its default as a typed value, the allowed range or choices, its description and its type."""

    key: str
    default: Value
    doc: str
    low: int | None = None
    high: int | None = None
    """The largest number; for a list, the most elements."""
    choices: tuple[str, ...] = ()
    broker_key: str | None = None
    """Topic and group keys: the broker key with the value for topics or groups without an override."""
    bounds: tuple[str, str] | None = None
    """Group keys: the broker keys that bound an override."""
    off: int | None = None
    """A number beside the range that switches the key off."""
    unused: bool = False
    """True if the key has no effect: it is accepted and checked because Kafka has it."""
    type: ConfigType = ConfigType.UNKNOWN
    """UNKNOWN: derived from the default and the range."""

    def __post_init__(self) -> None:
        if self.type is ConfigType.UNKNOWN:
            object.__setattr__(self, "type", self._derived_type())

    def _derived_type(self) -> ConfigType:
        if isinstance(self.default, bool):
            return ConfigType.BOOLEAN
        if isinstance(self.default, str):
            return ConfigType.STRING
        if isinstance(self.default, float):
            return ConfigType.DOUBLE
        return ConfigType.LONG if self.high is None or self.high > INT_MAX else ConfigType.INT

    @property
    def synonym(self) -> str:
        """The broker key of the same meaning."""
        return self.broker_key or self.key

    @property
    def allowed(self) -> str:
        """The allowed values as text, for error messages and tables."""
        if self.choices:
            words = ", ".join(choice or '""' for choice in self.choices)
            return f"a list of {words}" if self._is_list else words
        if self.type is ConfigType.BOOLEAN:
            return "true or false"
        if isinstance(self.default, (int, float)):
            span = f"{self.low}..{self.high}" if self.high not in (None, INT_MAX, LONG_MAX) else f">= {self.low}"
            return span if self.off is None else f"{self.off} or {span}"
        return "any text"

    @property
    def _is_list(self) -> bool:
        return self.type is ConfigType.LIST and self.high != 1

    def parse(self, value: object) -> Value:
        """The typed value. 5.0 is the integer 5. Raises ConfigException with the key, the value and the allowed
        values."""
        value = plain(value)
        whole = isinstance(value, float) and value.is_integer()
        text = str(int(value) if whole else value).strip()  # type: ignore[call-overload]    # a float
        parsed: Value | None
        if self.type is ConfigType.BOOLEAN:
            parsed = self._parse_boolean(text)
        elif isinstance(self.default, str):
            parsed = self._parse_list(text) if self._is_list else self._parse_word(text)
        else:
            parsed = self._parse_number(text)
        if parsed is None:
            raise ConfigException(f"{self.key}={value!r}: must be {self._kind_for(text)}{self.allowed}")
        return parsed

    def _kind_for(self, text: str) -> str:
        """The words before the range of a number, for a text that is none."""
        if isinstance(self.default, (bool, str)) or _NUMBER.fullmatch(text):
            return ""
        return "a number, " if self.type is ConfigType.DOUBLE else "a whole number, "

    def _parse_boolean(self, text: str) -> bool | None:
        return text.lower() == "true" if text.lower() in (self.choices or ("true", "false")) else None

    def _parse_number(self, text: str) -> int | float | None:
        """The number in `text`: ASCII digits, with a fraction if the key allows one; None for any other text."""
        number: int | float
        if re.fullmatch(r"[+-]?[0-9]{1,25}", text):
            number = float(text) if self.type is ConfigType.DOUBLE else int(text)
        elif self.type is ConfigType.DOUBLE and re.fullmatch(r"[+-]?[0-9]{0,25}\.[0-9]{1,25}", text):
            number = float(text)
        else:
            return None
        within = (self.low is None or number >= self.low) and number <= self._highest
        return number if within or number == self.off else None

    @property
    def _highest(self) -> float:
        return LONG_MAX if self.high is None else self.high

    def _parse_word(self, text: str) -> str | None:
        by_duration = "by_duration:<duration>" in self.choices and parse_by_duration(text) is not None
        return text if not self.choices or text in self.choices or by_duration else None

    def _parse_list(self, text: str) -> str | None:
        words = [word.strip() for word in text.split(",")] if text else []
        legal = all(word in self.choices if self.choices else word for word in words)
        return ",".join(dict.fromkeys(words)) if legal else None


_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?(T(?=[-+0-9])(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?"
    r"(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""As `java.time.Duration.parse` has it."""

_SECONDS = (1, 60, 3_600, 86_400)
_LONGEST_DURATION = 1_000


def parse_by_duration(text: str) -> int | None:
    """The milliseconds of `by_duration:PnDTnHnMn.nS`. None for what Kafka refuses: another form, a negative duration,
    and seconds that take more than 64 bits."""
    prefix, _, iso = text.partition(":")
    match = _DURATION.fullmatch(iso) if prefix == "by_duration" and len(iso) <= _LONGEST_DURATION else None
    if match is None:
        return None
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    given = [int(count) * unit for count, unit in zip((seconds, minutes, hours, days), _SECONDS, strict=True) if count]
    if not given or any(not -LONG_MAX - 1 <= length <= LONG_MAX for length in (*given, *accumulate(given))):
        return None
    nanos = int((fraction or "").ljust(9, "0")) * (-1 if (seconds or "").startswith("-") else 1)
    total = (sum(given) * 1_000_000_000 + nanos) * (-1 if sign == "-" else 1)
    return total // 1_000_000 if 0 <= total < (LONG_MAX + 1) * 1_000_000_000 else None
