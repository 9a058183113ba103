"""How `shareq produce` reads records: the properties and the form of lines of Kafka's LineMessageReader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from shareq.model.errors import ConfigException


class LineRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class LineReader:
    """A line is HEADERS, KEY and VALUE, of which the first two are optional; each is followed by its separator. A part
    that equals `null_marker` is null."""

    parse_key: bool = False
    key_separator: str = "\t"
    parse_headers: bool = False
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    ignore_error: bool = False
    null_marker: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LineReader:
        """From parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, headers.key.separator,
        ignore.error, null.marker. ConfigException: there are others, or separators are equal."""
        given = {key.replace(".", "_"): value for key, value in properties.items()}
        if unknown := given.keys() - set(cls.__dataclass_fields__):
            known = ", ".join(name.replace("_", ".") for name in cls.__dataclass_fields__)
            name = min(unknown).replace("_", ".")
            raise ConfigException(f"--reader-property {name}: is not a property of lines, which has {known}")
        flags = {name: given.pop(name, "").strip().lower() == "true" for name in _FLAGS}
        made = cls(**flags, **given)  # type: ignore[arg-type]    # the other fields are texts
        names = ("headers.delimiter", "headers.separator", "headers.key.separator", "null.marker")
        for one, other in [*combinations(names, 2), ("null.marker", "key.separator")]:
            if getattr(made, one.replace(".", "_")) == getattr(made, other.replace(".", "_")):
                raise ConfigException(f"{one} and {other} may not be equal")
        return made

    def records(self, lines: Iterable[str]) -> Iterator[LineRecord]:
        """The records of the lines. ConfigException: a separator is missing."""
        for number, line in enumerate(lines, 1):
            headers, rest = self._part(self.parse_headers, line, self.headers_delimiter, "headers delimiter", number)
            key, value = self._part(self.parse_key, rest, self.key_separator, "key separator", number)
            yield LineRecord(
                None if key is None else self._data(key),
                self._data(value),
                [] if headers in (None, self.null_marker) else list(self._headers(headers or "", number)),
            )

    def _part(self, wanted: bool, text: str, separator: str, name: str, number: int) -> tuple[str | None, str]:
        """The text before the separator, None without one, and the rest."""
        if not wanted:
            return None, text
        part, found, rest = text.partition(separator)
        if found:
            return part, rest
        if not self.ignore_error:
            raise ConfigException(f"No {name} found on line number {number}: {text!r}")
        return None, text

    def _headers(self, text: str, number: int) -> Iterator[tuple[str, bytes | None]]:
        for pair in re.split(self.headers_separator, text):
            name, found, value = pair.partition(self.headers_key_separator)
            if not found and not self.ignore_error:
                raise ConfigException(f"No header key separator found in pair {pair!r} on line number {number}")
            if name == self.null_marker:
                raise ConfigException(f"Header keys should not be equal to the null marker {self.null_marker!r}")
            yield name, self._data(value) if found else None

    def _data(self, text: str) -> bytes | None:
        return None if text == self.null_marker else text.encode()


_FLAGS = ("parse_key", "parse_headers", "ignore_error")
