"""Compiles the regular expressions of clients, in the syntax of RE2 as in Kafka.

RE2 matches in linear time. Python's `re` backtracks, so an expression such as `(a|a)*b` could block the server; without
RE2, expressions are therefore not supported. Source: KIP-848, "Regex based subscription"; KIP-1152.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from shareq.extras import install_command

MISSING = f"regular expressions need the package google-re2: {install_command('kafka')}"


class ExpressionError(ValueError):
    """The expression is not valid in RE2, or RE2 is not installed; the message is the cause."""


@lru_cache(maxsize=1 << 7)
def compile_expression(regex: str) -> Callable[[str], bool]:
    """A function that returns True if the whole text matches. Raises ExpressionError."""
    try:
        import re2
    except ImportError as error:
        raise ExpressionError(MISSING) from error
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        fullmatch: Callable[[str], Any] = re2.compile(regex, options).fullmatch
    except re2.error as error:
        raise ExpressionError(error.args[0].decode()) from error
    return lambda text: fullmatch(text) is not None
