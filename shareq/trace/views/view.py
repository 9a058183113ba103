"""View of one share-partition: snapshots for widgets, at the end of the journal or at any earlier point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.errors import ConfigException
from shareq.model.events import FaultInjected
from shareq.model.numbers import plain
from shareq.trace.analysis.group_history import history_of
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.views.event_index import EventIndex
from shareq.trace.views.event_view import EventView
from shareq.trace.views.share_partition_html import ShownState, share_partition_html
from shareq.trace.views.snapshot import StripContent, StripSnapshot
from shareq.trace.views.strip_content import content
from shareq.trace.views.subjects import check_subject


def view(source: Any, group: str, topic: str, partition: int = 0, *, close: Callable[[], None] | None = None) -> View:
    """View of one share-partition. `source`: a `Journal`, or an object that has one as `.journal`, such as a cluster.

    The share-partition may have no events yet. ConfigException for an invalid argument, and for a group, topic or
    partition that the journal does not have while it has others. `close` is called when the view is closed, or no
    longer referenced.
    """
    partition = plain(partition)
    if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
        raise ConfigException(f"partition={partition!r}: must be a whole number from 0")
    return View(source, group, topic, partition, close)


@used_by_one_thread
class View(EventView):
    """A share-partition and the events that concern it: `total()` of them so far, counted from 1.

    `snapshot(order)` is the state after the first `order` of them, as a dict of JSON values; letters and names of
    members stay the same. `waits`: what the share-partition waits for, None if the journal does not show it. Threads
    take turns, while another one may write the journal.
    """

    def __init__(
        self, source: Any, group: str, topic: str, partition: int, close: Callable[[], None] | None = None
    ) -> None:
        super().__init__(source, group, close)
        self.topic, self.partition = topic, partition
        check_subject(self.journal, group, topic, partition)
        self._history = history = history_of(self.journal, group)
        self._index = EventIndex(
            self._names, self.journal.origin_ms, lambda: history.timeline(topic, partition).entries
        )

    @property
    def _timeline(self) -> PartitionTimeline:
        """The entries of the share-partition, up to the end of the journal."""
        return self._history.timeline(self.topic, self.partition)

    def state(self, order: int | None = None) -> ShownState:
        """The state after `order` events (None: all of them), for programs; `snapshot` is for display."""
        return ShownState.of(self._at(order))

    def _at(self, order: int | None) -> SharePartitionState:
        total = self.total()
        if order is not None:
            self._check(order, low=0)
        return self._timeline.state(total if order is None else order)

    def snapshot(self, order: int | None = None) -> StripSnapshot:
        """The state after `order` events; None is the live end, at the source's own time. ValueError outside
        0..total.
        """
        common = super().snapshot(order)
        return {**common, **self._content(order, common["order"])}

    def _content(self, order: int | None, shown: int) -> StripContent:
        moment = self.moment(shown)
        events = (entry.event for entry in self.journal.between(0, moment, (FaultInjected,)))
        injected = (one for one in events if isinstance(one, FaultInjected))
        faults = {one.member_id: one.fault for one in injected if one.member_id and one.fault}
        return content(self._at(order), self._names.member, self._names.present(moment), faults)

    @property
    def _shown(self) -> StripContent:
        """The content at the live end."""
        return self._content(None, self.total())

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{self.group} on {self.topic}-{self.partition}: {self._shown['text']}"

    def _repr_html_(self) -> str:
        return share_partition_html(self._shown)
