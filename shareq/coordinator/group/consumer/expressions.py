r"""Subscriptions by regular expression: Kafka's syntax (RE2), resolved against the topics that exist.

Python's `re` does the matching, so what it knows and RE2 does not is refused, and what RE2 writes in another way is
translated. Source: KIP-848, "Regex based subscription"; RE2's syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from shareq.coordinator.group.consumer.records import RegularExpression
from shareq.model.image import ClusterImage

BATCH_INTERVAL_MS = 10_000
"""All expressions of a group are resolved together, and not more often than this."""

_TOKEN = re.compile(
    r"""
      \\Q(?P<quoted>.*?)(?:\\E|\Z)
    | (?P<set>\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\])
    | (?P<refused>
        \\[1-9Z] | \(\?P=               # references to groups, Python's end of text
        | \(\?(?:=|!|<=|<!|>|\(|\#)     # looking around, atomic groups, conditions, comments
        | (?:[*+?]|\{\d+(?:,\d*)?\})\+  # possessive repetition
      )
    | (?P<named>\(\?<)
    | (?P<end>\\z)
    | \\.
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED_SET = re.compile(r"\[:(\w+):\]")
_NAMED_SETS = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@lru_cache(maxsize=1 << 10)
def compile_expression(regex: str) -> re.Pattern[str] | None:
    """The pattern, or None where RE2 would not take it."""
    if any(token["refused"] for token in _TOKEN.finditer(regex)):
        return None
    try:
        return re.compile(_TOKEN.sub(_in_python, regex), re.ASCII)
    except (re.error, KeyError, OverflowError, RecursionError):
        return None


def _in_python(token: re.Match[str]) -> str:
    """How Python writes what RE2 writes so."""
    match token.lastgroup:
        case "quoted":
            return re.escape(token["quoted"])
        case "set":
            return _NAMED_SET.sub(lambda named: _NAMED_SETS[named[1]], token["set"])
        case "named":
            return "(?P<"
        case "end":
            return r"\Z"
    return token[0]


def resolve(regex: str, image: ClusterImage, now_ms: int) -> RegularExpression:
    """All topics whose whole name matches."""
    return RegularExpression(tuple(sorted(_matching(regex, image.topics))), image.version, now_ms)


def has_new_match(regex: str, known: Iterable[str], names: Iterable[str]) -> bool:
    """Whether one of these names matches, and is not known to."""
    return any(name not in known for name in _matching(regex, names))


def _matching(regex: str, names: Iterable[str]) -> list[str]:
    pattern = compile_expression(regex)
    return [name for name in names if pattern.fullmatch(name)] if pattern else []
