"""Groups and the cluster as folds of the journal."""

from __future__ import annotations

from shareq.model import events as e
from shareq.model.states import GroupState
from shareq.trace import Journal, cluster_view, group_view

ASSIGNED = (("t", (0, 1)),)
HISTORY: list[e.Event] = [
    e.BrokerStarted(0),
    e.BrokerStarted(1),
    e.TopicCreated("t", "id", 2),
    e.LeaderElected("t", 0, 0, 0),
    e.TopicCreated("__share_group_state", "id", 50),
    e.MemberJoined("g", "m", "c", ("t",)),
    e.GroupEpochBumped("g", 2, "member joined"),
    e.SharePartitionsInitialized("g", "t", (1,)),
    e.SharePartitionsInitialized("g", "t", (0, 1)),
    e.TargetAssignmentComputed("g", 2, (("m", ASSIGNED), ("unknown", ()))),
    e.MemberReconciled("g", "m", 2, ASSIGNED),
    e.MemberReconciled("g", "unknown", 2, ASSIGNED),
    e.ConfigChanged("group:g", "share.delivery.count.limit", "3"),
    e.ConfigChanged("group:h", "share.delivery.count.limit", "4"),
    e.RecordsAppended("t", 0, 0, 9),
    e.LogStartMoved("t", 0, 4),
    e.BrokerStopped(1, True),
    e.PartitionsAdded("t", "id", 3),
    e.MemberLeft("g", "m", "left"),
    e.ConfigChanged("group:g", "share.delivery.count.limit", None),
    e.TopicDeleted("t", "id"),
    e.GroupDeleted("g"),
]


def journal_of(count: int = len(HISTORY)) -> Journal:
    journal = Journal()
    for event in HISTORY[:count]:
        journal.record(0, 0, event)
    return journal


def test_group_view_folds_the_groups_events() -> None:
    group = group_view(journal_of(), "g", until=14)
    member = group.members["m"]
    assert (group.state, group.group_epoch, group.assignment_epoch) == (GroupState.STABLE, 2, 2)
    assert (member.client_id, member.member_epoch, member.assignment, member.target) == ("c", 2, ASSIGNED, ASSIGNED)
    assert (group.initialized, list(group.members)) == ({"t": (0, 1)}, ["m"])
    assert group.configs == {"share.delivery.count.limit": "3"}
    deleted = group_view(journal_of(), "g")
    assert (deleted.state, deleted.group_epoch, deleted.initialized, deleted.configs) == (GroupState.EMPTY, 0, {}, {})


def test_cluster_view_folds_brokers_and_topics() -> None:
    cluster = cluster_view(journal_of(), until=18)
    assert cluster.brokers == {0: True, 1: False}
    assert [len(partitions) for partitions in cluster.topics.values()] == [3, 50]
    first = cluster.topics["t"][0]
    assert (first.leader, first.leader_epoch, first.log_start, first.log_end) == (0, 0, 4, 9)
    assert list(cluster.own_topics()) == ["t"]
    assert cluster_view(journal_of()).own_topics() == {}


def test_partitions_without_their_creation_are_added() -> None:
    journal = Journal()
    journal.record(0, 0, e.RecordsAppended("t", 2, 5, 9))
    assert [partition.log_end for partition in cluster_view(journal).topics["t"]] == [0, 0, 9]
