"""Solutions of lesson 13."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shareq.admin import Admin


def comes_again(acts: Iterable[tuple[str, list[int]]]) -> set[int]:
    again: set[int] = set()
    for what, offsets in acts:
        if what == "delivered":
            again |= set(offsets)
        elif what == "committed":
            again -= set(offsets)
    return again


def left(address: str, group: str) -> int:
    with Admin({"bootstrap.servers": address}) as admin:
        return admin.list_share_group_offsets(group).total


SOLUTIONS: Final = {"13.1": comes_again, "13.2": left}
