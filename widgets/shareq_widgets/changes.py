"""The difference between two JSON values, for messages and recordings: a view shows many similar ones.

`js/changes.js` applies it.
"""

from __future__ import annotations

from typing import Any

Change = list[Any]
"""["=", value]: replaced. ["{", changes, removed]: a dict; a change for each key, and the removed keys.
["[", first, count, items]: a list; `count` items from `first` on are replaced by `items`."""


def change(before: Any, after: Any) -> Change | None:
    """The change from one value to another; None if they are equal."""
    if before == after:
        return None
    if isinstance(before, dict) and isinstance(after, dict):
        changes = {
            key: change(before[key], value) if key in before else ["=", value]
            for key, value in after.items()
            if key not in before or before[key] != value
        }
        return ["{", changes, [key for key in before if key not in after]]
    if isinstance(before, list) and isinstance(after, list):
        return _of_list(before, after)
    return ["=", after]


def _of_list(before: list[Any], after: list[Any]) -> Change:
    shorter = min(len(before), len(after))
    first = 0
    while first < shorter and before[first] == after[first]:
        first += 1
    same = 0
    while same < shorter - first and before[-1 - same] == after[-1 - same]:
        same += 1
    return ["[", first, len(before) - same - first, after[first : len(after) - same]]


def changed(value: Any, by: Change | None) -> Any:
    """The value after a change; the value itself stays as it is."""
    if by is None:
        return value
    if by[0] == "=":
        return by[1]
    if by[0] == "[":
        _, first, count, items = by
        return [*value[:first], *items, *value[first + count :]]
    _, changes, removed = by
    kept = {key: old for key, old in value.items() if key not in removed}
    return kept | {key: changed(value.get(key), one) for key, one in changes.items()}
