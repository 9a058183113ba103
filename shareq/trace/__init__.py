"""The trace of a cluster: the journal of its events, the analysis of a journal, and views of both.

`journal`: entries, their index, their file formats. `analysis`: states, ledgers, lag and metrics, all derived from a
journal. `views`: text, HTML and plots. Imports run only from views to analysis to journal.
"""

from shareq.trace.analysis.exchanges import Exchange
from shareq.trace.analysis.fold import JournalCorrupt
from shareq.trace.analysis.lag import Attempts, attempts, lag_over_time
from shareq.trace.analysis.metrics import Metric
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry, Journal, JournalFileError
from shareq.trace.views.messages import Exchanges, messages
from shareq.trace.views.plots import Plot, lag_plot, raster
from shareq.trace.views.state_diagram import state_diagram
from shareq.trace.views.tables import (
    ClusterView,
    GroupView,
    Ledger,
    Metrics,
    cluster_view,
    group_view,
    ledger,
    metrics,
)
from shareq.trace.views.view import View, view

__all__ = [
    "Attempts",
    "ClusterView",
    "Entry",
    "Exchange",
    "Exchanges",
    "GroupView",
    "Journal",
    "JournalCorrupt",
    "JournalFileError",
    "Ledger",
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
    "state_diagram",
    "view",
]
