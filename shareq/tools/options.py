"""Checks of options that click does not have: one of several, some only together with others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click


def the_one(given: Mapping[str, object], names: Sequence[str], missing: str, default: str = "") -> str:
    """The one option of `names` that is set. UsageError if it is none (unless there is a default) or several."""
    found = [name for name in names if given[name] is not None and given[name] is not False]
    if not found and default:
        return default
    if len(found) != 1:
        flags = ", ".join(map(flag, names))
        raise click.UsageError(f"{missing}: {flags}" if not found else f"only one is possible of {flags}")
    return found[0]


def flag(name: str) -> str:
    """The option of a parameter."""
    return f"--{name.strip('_').replace('_', '-')}"


def texts(values: object) -> tuple[str, ...]:
    """The values of a repeatable option."""
    return tuple(map(str, values)) if isinstance(values, tuple) else ()


def is_given(given: Mapping[str, object], name: str) -> bool:
    return given[name] not in (None, False, ())


def only_with(given: Mapping[str, object], names: Iterable[str], actions: Sequence[str]) -> None:
    """UsageError: one of the options `names` is set, but none of `actions`."""
    if any(is_given(given, action) for action in actions):
        return
    for name in names:
        if is_given(given, name):
            raise click.UsageError(f"{flag(name)} is possible only with {' and '.join(map(flag, actions))}")
