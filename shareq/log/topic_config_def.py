"""The definition of a topic configuration: key, default, type, allowed values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from shareq.model.errors import ConfigException

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1

Value = int | float | bool | str


class TopicConfigType(StrEnum):
    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class TopicConfigDef:
    """One key: its default as a typed value, its type, the allowed range or choices, and its documentation."""

    key: str
    default: Value
    type: TopicConfigType
    doc: str
    low: int = 0
    high: int = LONG_MAX
    choices: tuple[str, ...] = ()
    broker_key: str | None = None
    """The broker configuration that holds the default of topics without this key, if its name differs."""

    @property
    def synonym(self) -> str:
        return self.broker_key or self.key

    @property
    def allowed(self) -> str:
        """The allowed values as text, for error messages and tables."""
        if self.type is TopicConfigType.BOOLEAN:
            return " or ".join(self.choices or ("true", "false"))
        if not self.choices and not self._is_number:
            return "any text"
        if self.type is TopicConfigType.LIST:
            return f"a list of {', '.join(self.choices)}"
        if self.type is TopicConfigType.STRING:
            return " or ".join(self.choices)
        return f"{self.low}..{self.high}" if self.high not in (INT_MAX, LONG_MAX) else f">= {self.low}"

    def parse(self, value: object) -> Value:
        """The typed value. ConfigException names the key, the value and the allowed values."""
        text = str(value).strip()
        parsed = self._parse_number(text) if self._is_number else self._parse_word(text)
        if parsed is None:
            raise ConfigException(f"{self.key}={value!r}: must be {self.allowed}")
        return parsed

    @property
    def _is_number(self) -> bool:
        return self.type in (TopicConfigType.INT, TopicConfigType.LONG, TopicConfigType.DOUBLE)

    def _parse_number(self, text: str) -> int | float | None:
        pattern = r"[+-]?\d+(\.\d+)?" if self.type is TopicConfigType.DOUBLE else r"[+-]?\d+"
        if not re.fullmatch(pattern, text):
            return None
        number = float(text) if self.type is TopicConfigType.DOUBLE else int(text)
        highest = min(self.high, INT_MAX) if self.type is TopicConfigType.INT else self.high
        return number if self.low <= number <= highest else None

    def _parse_word(self, text: str) -> bool | str | None:
        if self.type is TopicConfigType.BOOLEAN:
            legal = text.lower() in (self.choices or ("true", "false"))
            return text.lower() == "true" if legal else None
        if self.type is TopicConfigType.LIST:
            words = [word.strip() for word in text.split(",")] if text else []
            legal = all(word in self.choices if self.choices else word for word in words)
            return ",".join(dict.fromkeys(words)) if legal else None
        return text if text in self.choices else None
