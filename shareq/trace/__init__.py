"""The journal of everything that happened, and what is derived from it."""

from shareq.trace.journal import Entry, Journal

__all__ = ["Entry", "Journal"]
