"""Time to live: shareq/leader/experiments/BEHAVIOUR.md, rules 4.1 to 4.9 and their examples."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from shareq.model.events import ExpiredRecordsSkipped, RecordsChanged, WindowMoved
from shareq.model.experiments import Experiments
from tests.leader.experiments.browsing import ENABLED, browse, shown
from tests.leader.share_partition_stage import SharePartitionStage, show
from tests.leader.stage import Member, Stage

TEN_SECONDS = Experiments(record_ttl_ms=10_000)


def living(now_ms: int = 0, **options: object) -> SharePartitionStage:
    stage = SharePartitionStage(experiments=TEN_SECONDS, **options)  # type: ignore[arg-type]
    stage.now_ms = now_ms
    return stage


# ---- the share-partition ---------------------------------------------------------------------------------------------


def test_4_1_a_record_is_archived_at_the_age_of_its_time_to_live() -> None:
    """Example 1: records of 0 s with a time to live of 10 s."""
    assert living(9_999).fetch("m", "0-9") == "0-9(1)"
    stage = living(10_000)
    assert stage.fetch("m", "0-9") == ""
    assert (stage.state, stage.next, stage.dcc) == ("0-9 AR(0)", 10, 10)
    write = stage.tick(10_000)
    assert show(write) == "start 0, dcc 10: 0-9 AR(0)"
    assert stage.ok(write)
    assert stage.spso == 10


def test_4_2_a_returned_record_expires_at_the_next_acquisition() -> None:
    """Example 2: acquired at 9 s, released at 12 s. Without a fetch nothing happens."""
    stage = living(9_000)
    assert stage.fetch("m", "0-9") == "0-9(1)"
    stage.now_ms = 12_000
    stage.acknowledge("m", "0-9:2")
    stage.tick(60_000)
    assert stage.state == "0-9 AV(1)"
    assert stage.fetch("n", "0-9") == ""
    assert stage.state == "0-9 AR(1)"


def test_4_2_an_acceptance_counts_however_late() -> None:
    """Example 3: acquired at 9 s, accepted at 39 s."""
    stage = living(9_000)
    stage.fetch("m", "0-9")
    stage.now_ms = 39_000
    assert stage.fetch("n", "0-9", offset=0) == "", "what a member holds does not expire"
    assert stage.state == "0-9 ACQ(1)@m"
    assert stage.acknowledge("m", "0-9:1") == "start 0, dcc 10: 0-9 ACK(1)"


def test_4_1_a_batch_lives_as_long_as_its_youngest_record() -> None:
    """Example 5: a batch with records of 0 s and 8 s lives to 18 s."""
    assert living(17_999).fetch("m", "0-1", times=[8_000]) == "0-1(1)"
    assert living(18_000).fetch("m", "0-1", times=[8_000]) == ""


def test_4_1_a_batch_without_a_timestamp_never_expires() -> None:
    assert living(10**12).fetch("m", "0-1", times=[-1]) == "0-1(1)"


def test_4_3_limits_count_only_records_that_are_not_too_old() -> None:
    stage = living(10_000)
    assert stage.fetch("m", "0-4,5-9,10-14,15-19", times=[0, 9_000, 0, 9_000], most=7, mode="R") == "5-9(1), 15-16(1)"
    assert stage.state == "0-4 AR(0), 5-9 ACQ(1)@m, 10-14 AR(0), 15-16 ACQ(1)@m, 17-19 AV(0)"


def test_4_3_a_gap_between_batches_that_are_too_old_is_not_acquired() -> None:
    stage = living(10_000)
    assert stage.fetch("m", "0-4,8-9,12-14", times=[0, 0, 9_000]) == "10-14(1)", "as Kafka, 10-11 with its successor"
    assert stage.state == "0-9 AR(0), 10-14 ACQ(1)@m"


def test_4_3_expired_records_enter_the_window_as_far_as_it_has_room() -> None:
    stage = living(10_000, locks=100)
    assert stage.fetch("m", "0-9,10-299,300-309", times=[9_000, 0, 9_000]) == "0-9(1)"
    assert stage.state == "0-9 ACQ(1)@m, 10-99 AR(0)"
    assert not stage.can_acquire
    stage.acknowledge("m", "0-9:1")
    assert stage.fetch("m", "10-299,300-309", times=[0, 9_000]) == "", "again as many as the window has room for"
    assert (stage.spso, stage.window_end) == (100, 200)


def test_4_4_expired_records_go_to_the_dead_letter_queue_if_the_group_says_so() -> None:
    stage = SharePartitionStage(
        queue=True, experiments=Experiments(record_ttl_ms=10_000, record_ttl_deadletter_enable=True)
    )
    stage.now_ms = 10_000
    assert stage.fetch("m", "0-9") == ""
    assert (stage.state, stage.dcc) == ("0-9 AI(0)", 0)
    write = stage.tick(10_000)
    assert show(write) == "start 0, dcc 0: 0-9 AI(0)"
    stage.ok(write)
    assert stage.letters() == "0-9(0) expired"
    assert stage.dead_lettered((0, 10)) == "start 0, dcc 10: 0-9 AR(0)"
    assert stage.spso == 10


def test_4_4_without_the_configuration_expired_records_are_archived() -> None:
    stage = living(10_000, queue=True)
    stage.fetch("m", "0-9")
    assert stage.state == "0-9 AR(0)"


def test_4_6_a_resting_record_is_judged_when_it_has_rested() -> None:
    stage = SharePartitionStage(experiments=Experiments(record_ttl_ms=10_000, release_backoff_ms=5_000))
    stage.now_ms = 9_000
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "0:2,1-9:1")
    stage.now_ms = 13_999
    assert stage.fetch("m", "0-9,10-19", times=[0, 9_000], offset=0) == "10-19(1)"
    assert stage.state.startswith("0 AV(1) until 14000")
    stage.tick(14_000)
    assert stage.fetch("m", "0-9") == ""
    assert stage.state.startswith("0 AR(1), ")


def test_4_6_records_that_wait_for_their_key_expire_with_their_batch() -> None:
    """The next record of the key goes on at once: the lane is not held."""
    stage = SharePartitionStage(experiments=Experiments(record_ttl_ms=10_000, key_ordering="key"))
    assert stage.fetch("m", "0-3", keys="AAAB") == "0(1), 3(1)"
    stage.acknowledge("m", "0:2,3:1")
    stage.now_ms = 10_000
    assert stage.fetch("n", "0-3,4-5", keys="AAABAA", times=[0, 9_000]) == "4(1)"
    assert stage.state == "0 AR(1), 1-2 AR(0), 3 ACK(1), 4 ACQ(1)@n, 5 AV(0)"


def test_4_7_the_time_to_live_is_read_at_each_acquisition() -> None:
    stage = living(10_000)
    stage.config = SharePartitionStage(experiments=Experiments()).config
    assert stage.fetch("m", "0-9") == "0-9(1)"


# ---- the leader: windows that pass what is too old -------------------------------------------------------------------

TTL = {"shareq.record.ttl.ms": "10000"}


def aged(*batches: int, group: dict[str, str] | None = None) -> tuple[Stage, Member]:
    """A leader whose log has old records, and a member that has a session with it."""
    stage = Stage(broker=ENABLED, group=TTL | (group or {}), traced=True)
    stage.stamped = True
    stage.state().start_offset = 0
    stage.produce(0, *batches)
    stage.pass_time(10_000)
    return stage, stage.member("m")


def skips(stage: Stage) -> list[tuple[int, int]]:
    return [(e.first, e.end) for e in stage.events if isinstance(e, ExpiredRecordsSkipped)]


def test_4_5_an_empty_window_passes_old_records_in_one_write() -> None:
    """Example 4: a million old records. One write, no change of records, and the next fetch reads above them."""
    stage, member = aged(*[1000] * 1000)
    assert member.fetch("0", max_wait_ms=100).acquired == {}
    assert skips(stage) == [(0, 1_000_000)]
    assert [(e.spso, e.window_end) for e in stage.events if isinstance(e, WindowMoved)] == [(1_000_000, 1_000_000)]
    assert not [e for e in stage.events if isinstance(e, RecordsChanged)]
    stage.pass_time(0)
    assert [(write.start_offset, write.state_batches) for write in stage.writes] == [(1_000_000, ())]
    waiting = member.fetch(max_wait_ms=5000)
    stage.produce(0, 3)
    assert waiting.acquired == {0: [(1_000_000, 1_000_002, 1)]}


def test_4_5_the_window_begins_with_the_first_batch_that_is_not_too_old() -> None:
    """A look-up finds a record; its batch may begin below."""
    stage, member = aged(5, 5)
    stage.stamped, stage.find_offset = False, (Errors.NONE, 12)
    stage.logs[0].append(5, 100, max_timestamp=stage.now_ms)
    assert member.fetch("0", max_wait_ms=100).acquired == {}
    assert skips(stage) == [(0, 10)]
    assert member.fetch(max_wait_ms=0).acquired == {0: [(10, 14, 1)]}


def test_4_5_fetches_wait_while_the_first_record_is_looked_up() -> None:
    stage, member = aged(5, 5)
    stage.hold_reads = True
    first = member.fetch("0", max_wait_ms=500)
    stage.produce(0, 2)
    stage.release_logs()
    assert first.acquired == {}
    (look_up,) = stage.held_logs
    assert (look_up.offset, look_up.max_bytes) == (10, 1)
    second = member.fetch(max_wait_ms=500)
    assert stage.held_logs == [look_up]
    stage.hold_reads = False
    stage.release_logs()
    assert second.acquired == {0: [(10, 11, 1)]}


@pytest.mark.parametrize("found", [(Errors.UNKNOWN_SERVER_ERROR, -1), (Errors.NONE, 0)], ids=["error", "below"])
def test_4_5_a_look_up_without_a_result_leaves_old_records_to_the_fetches(found: tuple[Errors, int]) -> None:
    """The log may have a younger record below the SPSO: timestamps are those of producers."""
    stage, member = aged(5, 5)
    stage.stamped, stage.find_offset = False, found
    assert member.fetch("0", max_wait_ms=100).acquired == {}
    assert skips(stage) == []
    member.fetch(max_wait_ms=100)
    changes = [(e.first, e.end, e.cause, e.state) for e in stage.events if isinstance(e, RecordsChanged)]
    assert changes == [(0, 10, "expired", 4)]
    stage.pass_time(0)
    assert stage.state().start_offset == 0
    assert stage.state().records == dict.fromkeys(range(10), (4, 0))


def test_4_5_nothing_is_passed_that_belongs_into_the_dead_letter_queue() -> None:
    queue = {"errors.deadletterqueue.topic.name": "dlq.t", "shareq.record.ttl.deadletter.enable": "true"}
    stage, member = aged(5, 5, group=queue)
    member.fetch("0", max_wait_ms=100)
    assert skips(stage) == []
    changes = [(e.first, e.end, e.cause, e.state) for e in stage.events if isinstance(e, RecordsChanged)]
    assert changes == [(0, 10, "expired", 3)]


def test_4_5_a_new_leader_passes_again_what_was_not_durable() -> None:
    stage, member = aged(5, 5)
    stage.hold = True
    opened = member.fetch("0", max_wait_ms=100)
    stage.release()
    assert opened.acquired == {}
    stage.pass_time(0)
    stage.release(error=Errors.NETWORK_EXCEPTION)
    assert stage.state().start_offset == 0
    stage.hold = False
    stage.set_leader(0, 1, 1)
    stage.set_leader(0, 0, 2)
    member.fetch(max_wait_ms=100)
    assert skips(stage) == [(0, 10)] * 2


def test_4_8_a_browse_shows_what_is_too_old_and_archives_nothing() -> None:
    stage, _ = aged(5)
    stage.produce(0, 5)
    assert shown(browse(stage, from_offset=0)) == "0-4 AV(0) expired, 5-9 AV(0)"
    assert stage.events == []
