"""The terms that views show without room to explain them: one sentence each, for their tooltips, and the notebook that
explains it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Term(NamedTuple):
    """A term of the KIP: its meaning in one sentence, and the notebook with its explanation."""

    meaning: str
    notebook: str


TERMS: Final[dict[str, Term]] = {
    "group epoch": Term("it grows whenever members, subscriptions or topics of the group change.", "04_groups"),
    "assignment epoch": Term("the group epoch for which the target assignment was computed.", "04_groups"),
    "member epoch": Term("the assignment epoch of the assignment that the member has.", "04_groups"),
    "leader epoch": Term(
        "it grows with each election of the partition's leader; writes of an earlier leader are refused.", "06_failover"
    ),
    "fence": Term("a request with an older epoch than the newest one known is refused: it is fenced.", "06_failover"),
}


def meanings(*names: str) -> str:
    """The meanings of these terms, one line each."""
    return "\n".join(f"{name}: {TERMS[name].meaning}" for name in names)
