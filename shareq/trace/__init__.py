"""The journal of everything that happened, and what is derived from it: states, words, figures, pictures."""

from shareq.trace.fold import JournalCorrupt, SharePartitionState
from shareq.trace.groups import ClusterView, GroupView, cluster_view, group_view
from shareq.trace.journal import Entry, Journal
from shareq.trace.jsonl import JournalFileError
from shareq.trace.lag import Attempts, attempts, lag_over_time
from shareq.trace.ledger import Ledger, ledger
from shareq.trace.messages import Exchange, Messages, messages
from shareq.trace.metrics import Metric, Metrics, metrics
from shareq.trace.plots import Plot, lag_plot, raster
from shareq.trace.view import View, view

__all__ = [
    "Attempts",
    "ClusterView",
    "Entry",
    "Exchange",
    "GroupView",
    "Journal",
    "JournalCorrupt",
    "JournalFileError",
    "Ledger",
    "Messages",
    "Metric",
    "Metrics",
    "Plot",
    "SharePartitionState",
    "View",
    "attempts",
    "cluster_view",
    "group_view",
    "lag_over_time",
    "lag_plot",
    "ledger",
    "messages",
    "metrics",
    "raster",
    "view",
]
