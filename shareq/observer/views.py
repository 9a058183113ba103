"""Views and plots that also accept the bootstrap address of a Kafka cluster, and then observe it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shareq import trace
from shareq.observer.observer import observe

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def view(source: Any, group: str, topic: str, partition: int = 0) -> trace.View:
    """View of one share-partition. `source`: a `Journal`, or an object that has one as `.journal`, such as a cluster;
    or the bootstrap address of a Kafka cluster, which is observed until the view is closed.

    The share-partition may have no events yet. ConfigException for an invalid argument, and for a group, topic or
    partition that the journal does not have while it has others; KafkaException for an invalid address.
    """
    if not isinstance(source, str):
        return trace.view(source, group, topic, partition)
    observer = observe(source, group, [topic])
    try:
        return trace.view(observer, group, topic, partition, close=observer.close)
    except BaseException:
        observer.close()
        raise


def lag_plot(source: Any, group: str, topic: str | None = None, ax: Axes | None = None) -> trace.Plot:
    """Lag of a group by partition over time, with a line for each failure.

    `topic` None: all topics of the group. `source` may be the bootstrap address of a Kafka cluster: then the plot shows
    the present lag. For its lag over time, pass an observer.
    """
    if not isinstance(source, str):
        return trace.lag_plot(source, group, topic, ax)
    with observe(source, group, None if topic is None else [topic]) as observer:
        observer.refresh()
        return trace.lag_plot(observer, group, topic, ax)
