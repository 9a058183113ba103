"""Views and plots that also accept the bootstrap address of a Kafka cluster, and then observe it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shareq import trace
from shareq.client.patience import SILENT_MS
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.events import ObservationDisturbed
from shareq.observer.observer import Observer, observe
from shareq.observer.tap_follower import TapFollower
from shareq.transports import IN_PROCESS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FIRST_S = 3.0
"""How long a view of an address waits for the first poll, in seconds: of a tap, and then of a Kafka."""


def watched(address: str, group: str, topics: list[str] | None = None) -> Observer | TapFollower:
    """What a view of an address shows: the journal of a tap if one answers there, else that of an observer."""
    return followed(address, group) or observed(address, group, topics)


def followed(address: str, group: str) -> TapFollower | None:
    """A follower that has what the tap at an address knows of the group; None if no tap answers there.

    KafkaException, with the reason, if the journal of the tap cannot be followed.
    """
    if address.startswith(f"{IN_PROCESS}://"):
        return None
    follower = TapFollower(address, group)
    try:
        follower.await_sign(lambda: follower.polled or follower.decided, address, 2 * FIRST_S)
        follower.wait(lambda: follower.decided, FIRST_S if follower.polled else FIRST_S - SILENT_MS / 1000)
        if follower.offered and follower.closed:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"{address} cannot be shown: {follower.trouble}"))
    except BaseException:
        follower.close()
        raise
    if follower.offered:
        return follower
    follower.close()
    return None


def observed(address: str, group: str, topics: list[str] | None = None, *, alone: bool = False) -> Observer:
    """An observer for a view of an address. KafkaException, with the reason, if the first poll reads nothing: a picture
    of nothing would look like an empty group. `alone`: no tap was looked for there, which has warned of a silence."""
    observer = observe(address, group, topics)
    try:
        if alone:
            observer.await_sign(lambda: observer.polled, address, FIRST_S)
        observer.wait(lambda: observer.polled, FIRST_S - SILENT_MS / 1000 * alone)
        read = any(not isinstance(entry.event, ObservationDisturbed) for entry in observer.journal)
        if not read and (not observer.polled or observer.trouble):
            why = observer.trouble or f"the cluster does not answer within {FIRST_S:g} s"
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"{address} cannot be shown: {why}"))
    except BaseException:
        observer.close()
        raise
    return observer


def view(source: Any, group: str, topic: str, partition: int = 0) -> trace.View:
    """View of one share-partition. `source`: a `Journal`, or an object that has one as `.journal`, such as a cluster;
    or the bootstrap address of a Kafka cluster, which is observed until the view is closed, or that of a tap, whose
    journal is followed.

    The share-partition may have no events yet. ConfigException for an invalid argument, and for a group, topic or
    partition that the journal does not have while it has others; KafkaException for an invalid address, and for one at
    which no Kafka answers.
    """
    if not isinstance(source, str):
        return trace.view(source, group, topic, partition)
    watching = watched(source, group, [topic])
    try:
        return trace.view(watching, group, topic, partition, close=watching.close)
    except BaseException:
        watching.close()
        raise


def lag_plot(source: Any, group: str, topic: str | None = None, ax: Axes | None = None) -> trace.Plot:
    """Lag of a group by partition over time, with a line for each failure.

    `topic` None: all topics of the group. `source` may be the bootstrap address of a Kafka cluster: then the plot shows
    the present lag. For its lag over time, pass an observer.
    """
    if not isinstance(source, str):
        return trace.lag_plot(source, group, topic, ax)
    with observed(source, group, None if topic is None else [topic], alone=True) as observer:
        observer.refresh()
        return trace.lag_plot(observer, group, topic, ax)
