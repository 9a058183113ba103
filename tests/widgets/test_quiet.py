"""What a virtual cluster still has to do for a group."""

from __future__ import annotations

from shareq import Cluster
from shareq.trace.analysis.group_history import history_of
from shareq_widgets import views
from shareq_widgets.quiet import awaits
from shareq_widgets.steering import Steering


def test_a_group_awaits_the_end_of_locks_and_of_silent_members() -> None:
    """Then a run ends, within a few heartbeat intervals of the last event."""
    cluster = Cluster(seed=1)
    cluster.create_topic("jobs", 1)
    cluster.configure_group("crew", {"share.auto.offset.reset": "earliest"})
    steering, history = Steering(cluster, "crew", ["jobs"]), history_of(cluster.journal, "crew")
    for name, value in (("add consumer", "accept"), ("advance", 10_000)):
        steering.do(name, value)
    assert not awaits(history, cluster.now_ms)
    steering.do("work time of A", 20_000)
    steering.do("produce", 1)
    steering.do("advance", 1_000)
    assert awaits(history, cluster.now_ms)
    steering.do("crash A")
    timeline = views.timeline(cluster, group="crew")
    timeline.run_on()
    playback = timeline._playback
    while playback.running_on:
        playback.tick(1_500)
    assert not awaits(history, cluster.now_ms)
    assert history.group(history.total).members == {}
    last = playback.snapshot["event"]
    assert last is not None
    assert playback.message.startswith("Nothing more happens here but heartbeats")
    assert cluster.now_ms - last["time_ms"] < 30_000
