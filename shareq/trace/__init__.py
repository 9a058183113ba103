"""The journal of everything that happened, and what is derived from it."""

from shareq.trace.fold import JournalCorrupt, SharePartitionState
from shareq.trace.groups import ClusterView, GroupView, cluster_view, group_view
from shareq.trace.journal import Entry, Journal
from shareq.trace.jsonl import JournalFileError
from shareq.trace.view import View, view

__all__ = [
    "ClusterView",
    "Entry",
    "GroupView",
    "Journal",
    "JournalCorrupt",
    "JournalFileError",
    "SharePartitionState",
    "View",
    "cluster_view",
    "group_view",
    "view",
]
