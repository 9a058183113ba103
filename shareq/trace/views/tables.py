"""The group, the cluster, the ledger and the metrics of a journal, as tables in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shareq.html import Html, Table, Tables, html, strong
from shareq.trace.analysis import metrics as analysis
from shareq.trace.analysis.groups import Assignment, ClusterFold, GroupFold, fold_cluster, fold_group
from shareq.trace.analysis.ledger import TopicLedger, partition_ledgers
from shareq.trace.journal.event_text import member_name


class GroupView(GroupFold, Tables):
    """A share group after an entry."""

    def tables(self) -> Iterator[Table]:
        """The epochs, and the members."""
        epochs = f"{self.state} · group epoch {self.group_epoch} · assignment epoch {self.assignment_epoch}"
        rows = [
            (
                m.client_id or "–",
                member_name(m.member_id),
                m.member_epoch,
                ", ".join(m.subscribed_topic_names),
                _assigned(m.assignment),
                "yes" if m.assignment == m.target else _assigned(m.target),
            )
            for m in self.members.values()
        ]
        columns = ("client", "member", "epoch", "subscribed", "holds", "as targeted")
        yield Table(columns, rows, caption=Html(f"{strong(self.group_id)} · {html(epochs)}"))


def group_view(source: Any, group: str, until: int | None = None) -> GroupView:
    """The group after the journal's entries below order `until` (None: all)."""
    return fold_group(GroupView(group), source, until)


def _assigned(assignment: Assignment) -> str:
    return (
        ", ".join(f"{topic}-{partition}" for topic, partitions in assignment for partition in partitions) or "nothing"
    )


class ClusterView(ClusterFold, Tables):
    """Brokers and topics after an entry; `brokers`: id -> True if it is running."""

    def tables(self) -> Iterator[Table]:
        """The brokers, and the partitions of topics that are not internal."""
        brokers = [(broker, "running" if alive else "down") for broker, alive in sorted(self.brokers.items())]
        yield Table(("broker", "state"), brokers, caption=strong("Brokers"))
        rows = [
            (f"{topic}-{i}", p.leader if p.leader >= 0 else None, p.leader_epoch, p.log_start, p.log_end)
            for topic, partitions in sorted(self.own_topics().items())
            for i, p in enumerate(partitions)
        ]
        internal = len(self.topics) - len(self.own_topics())
        caption = Html(f"{strong('Partitions')} and {html(internal)} internal topics")
        yield Table(("partition", "leader", "epoch", "log start", "log end"), rows, caption=caption)


def cluster_view(source: Any, until: int | None = None) -> ClusterView:
    """The cluster after the journal's entries below order `until` (None: all)."""
    return fold_cluster(ClusterView(), source, until)


class Ledger(TopicLedger, Tables):
    """Ledgers of a topic by partition; the sums over all partitions are attributes.

    Always: accepted + archived + in_flight + never_delivered + passed_over + unknown == records.
    """

    def tables(self) -> Iterator[Table]:
        """The figures by partition and in total, and the delivery counts."""
        columns = ("partition", *(figure.replace("_", " ") for figure in self.shown))
        rows = [(str(number), *(getattr(part, f) for f in self.shown)) for number, part in self.items()]
        total = (strong("all"), *(strong(getattr(self, f)) for f in self.shown))
        yield Table(columns, [*rows, total], caption=Html(f"{strong(self.group)} · {html(self.topic)}"))
        yield Table(("delivery count", "records"), self.attempts.items(), caption="Deliveries of the delivered")


def ledger(source: Any, group: str, topic: str) -> Ledger:
    """The ledger of a topic in a group. `source`: a `Journal`, or an object with one as `.journal`.

    Needs numpy, and the whole journal: ConfigException if a bounded journal has dropped entries, has no such topic, or
    is that of an observer that does not see all deliveries. `unknown`: see `shareq.trace.analysis.tapped_ledger`.
    """
    return Ledger(group, topic, partition_ledgers(source, group, topic))


class Metrics(analysis.Metrics, Tables):
    """The metrics after an entry of the journal. `value("share-group-count", state="Empty")` looks one up by name."""

    def tables(self) -> Iterator[Table]:
        """Name, tags and value of each metric."""
        rows = [
            (m.name, ", ".join(f"{tag}={value}" for tag, value in m.tags), m.attribute, value)
            for m, value in self.items()
        ]
        yield Table(("metric", "tags", "attribute", "value"), rows, limit=200)


def metrics(source: Any, until: int | None = None) -> Metrics:
    """The metrics after the journal's entries below order `until` (None: all).

    `source`: a `Journal`, or an object with one as `.journal`. Of a bounded journal only the kept entries count. A
    running cluster in this process also has metrics that follow from no event, as they are now, unless `until` is
    given.
    """
    found = analysis.metrics(source, until)
    return Metrics(found, found.left_out)
