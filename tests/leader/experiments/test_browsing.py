"""Browsing: shareq/leader/experiments/BEHAVIOUR.md, rules 3.1 to 3.10 and their examples."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.leader.leader import ShareLeader
from shareq.model.errors import Errors
from shareq.model.messages.share_browse import BrowseShareGroupResponse
from shareq.model.records import AbortedTransaction
from shareq.model.states import RecordState
from tests.leader.experiments.browsing import ENABLED, browse, send_browse, shown
from tests.leader.stage import Stage


def stage_with(keys: str = "", *batches: int, **group: str) -> Stage:
    """A leader with experiments; one partition, whose records have these keys."""
    stage = Stage(broker=ENABLED, group={**group, **({"shareq.key.ordering": "key"} if keys else {})})
    stage.logs[0].keys = keys
    stage.produce(0, *batches)
    return stage


def every_state() -> Stage:
    """SPSO 2; 2 is held by m, 3 rests after its second delivery, 4 waits for its key, 5 is accepted, 6-7 are new."""
    stage = stage_with("--A-A---", 6, 2, **{"shareq.release.backoff.ms": "1000"})
    m, n = stage.member("m"), stage.member("n")
    assert m.fetch("0", max_records=5).acquired == {0: [(0, 3, 1), (5, 5, 1)]}
    m.acknowledge({0: "0-1:1 3:2 5:1"})
    stage.pass_time(1000)
    assert n.fetch("0", max_records=1).acquired == {0: [(3, 3, 2)]}
    n.acknowledge({0: "3:2"})
    return stage


def test_3_1_example_1_states_holders_and_reasons() -> None:
    stage = every_state()
    page = browse(stage)
    assert shown(page) == "2 ACQ(1)@m, 3 AV(2) rests, 4 AV(0) key, 5 ACK(1), 6-7 AV(0)"
    assert (page.spso, page.speo, page.high_watermark, page.now_ms) == (2, 5, 8, stage.now_ms)
    assert [run.until_ms - stage.now_ms for run in page.runs[:3]] == [29_000, 2000, -1 - stage.now_ms]
    assert [(batch.base_offset, batch.last_offset) for batch in page.records] == [(0, 5), (6, 7)]
    assert page.next_offset == 8


def test_3_2_example_2_what_is_done_is_shown_if_it_is_asked_for() -> None:
    page = browse(every_state(), from_offset=0)
    assert shown(page).startswith("0-1 done, 2 ACQ(1)@m, ")


def test_3_3_example_3_below_the_log_start_is_an_error_that_has_the_bounds() -> None:
    stage = every_state()
    stage.logs[0].cut(4)
    page = browse(stage, from_offset=3)
    assert (page.error_code, page.error_message) == (Errors.OFFSET_OUT_OF_RANGE, "offset 3: the log has 4..8")
    assert (page.spso, page.high_watermark, page.runs, page.records) == (2, 8, (), ())
    assert shown(browse(stage)) == "4 AV(0) key, 5 ACK(1), 6-7 AV(0)", "the leader has not met the log start"
    assert browse(stage).spso == 2


def test_3_3_above_the_log_is_an_error_and_its_end_is_an_empty_page() -> None:
    stage = every_state()
    assert browse(stage, from_offset=9).error_code is Errors.OFFSET_OUT_OF_RANGE
    page = browse(stage, from_offset=8)
    assert (page.error_code, page.runs, page.next_offset) == (Errors.NONE, (), 8)


def test_3_4_example_4_a_lock_that_is_over_and_not_swept_is_shown_as_held() -> None:
    stage = every_state()
    stage.now_ms += 30_000  # and no tick
    first, second, *_ = browse(stage).runs
    assert (first.state, first.member_id, first.until_ms <= stage.now_ms) == (RecordState.ACQUIRED, "m", True)
    assert (second.reason, second.until_ms <= stage.now_ms) == (1, True)


def test_3_5_a_browse_takes_no_lock_and_counts_nothing() -> None:
    """A fetch waits, and another one reads: neither ends or changes."""
    stage = stage_with("", 4)
    m = stage.member("m")
    m.fetch("0", max_records=4)
    waiting = m.fetch()
    browse(stage)
    assert waiting.waiting
    stage.hold_reads = True
    stage.produce(0, 2)
    held = list(stage.held_logs)
    asked = send_browse(stage)
    assert stage.held_logs[:-1] == held, "the browse reads while the fetch has the lock"
    stage.release_logs()
    assert waiting.acquired == {0: [(4, 5, 1)]}
    assert asked.response is not None


def test_3_6_a_share_partition_that_is_not_in_memory_is_read_and_forgotten() -> None:
    """The durable state, and nothing else: no session, no event, no write, no letter of what is ARCHIVING."""
    stage = Stage(
        broker=ENABLED,
        group={"errors.deadletterqueue.topic.name": "dlq", "share.delivery.count.limit": "2"},
        traced=True,
    )
    stage.produce(0, 6)
    state = stage.state()
    state.start_offset = 1
    state.records = {1: (3, 2), 2: (0, 1), 3: (2, 1)}
    stage.events.clear()
    assert shown(browse(stage)) == "1 AI(2), 2 AV(1), 3 ACK(1), 4-5 AV(0)"
    assert (stage.events, stage.writes, stage.leader.watches(("t", 0))) == ([], [], False)  # type: ignore[arg-type]
    assert stage.leader.wake_at_ms is None


@pytest.mark.parametrize(("reset", "runs"), [("earliest", "0-5 AV(0)"), ("latest", "")])
def test_3_6_a_share_partition_that_was_never_used_begins_where_a_fetch_would(reset: str, runs: str) -> None:
    page = browse(stage_with("", 6, **{"share.auto.offset.reset": reset}))
    assert (shown(page), page.spso, page.speo) == (runs, 6 * (reset == "latest"), 6 * (reset == "latest") - 1)


def test_3_6_holes_of_the_gap_window_are_new_records() -> None:
    stage = stage_with("", 6)
    state = stage.state()
    state.start_offset = 0
    state.records = {1: (0, 1), 4: (2, 1)}
    assert shown(browse(stage)) == "0 AV(0), 1 AV(1), 2-3 AV(0), 4 ACK(1), 5 AV(0)"


def test_3_7_no_group_is_created() -> None:
    stage = stage_with("", 6)
    for error in (Errors.INVALID_REQUEST, Errors.GROUP_ID_NOT_FOUND):
        stage.persister_errors.append(error)
        page = browse(stage, group_id="h")
        assert page.error_code is Errors.GROUP_ID_NOT_FOUND
        assert page.error_message == "group 'h' does not exist, or never subscribed to t"
    assert stage.writes == []


def test_3_7_a_state_that_cannot_be_read() -> None:
    stage = stage_with("", 6)
    stage.persister_errors.append(Errors.NOT_COORDINATOR)
    page = browse(stage)
    assert page.error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert page.error_message == "the durable state could not be read: NOT_COORDINATOR"


def test_3_8_the_state_is_that_of_the_answer() -> None:
    """The record is accepted, and the leader loses the partition, while a browse reads."""
    stage = stage_with("", 4)
    m = stage.member("m")
    m.fetch("0")
    stage.hold_reads = True
    asked = send_browse(stage)
    m.acknowledge({0: "1-3:1"})
    stage.release_logs()
    assert shown(asked.response) == "0 ACQ(1)@m, 1-3 ACK(1)"
    asked = send_browse(stage)
    m.acknowledge({0: "0:1"})
    stage.release_logs()
    assert (shown(asked.response), asked.response.spso, asked.response.next_offset) == ("", 4, 4)
    asked = send_browse(stage, from_offset=0)
    stage.set_leader(0, 1, 1)
    stage.release_logs()
    assert asked.response.error_code is Errors.NOT_LEADER_OR_FOLLOWER
    assert asked.response.error_message == "broker 1 leads t:0"


def test_3_8_a_share_partition_that_is_dropped_meanwhile_is_read_from_the_durable_state() -> None:
    stage = stage_with("", 4)
    m = stage.member("m")
    m.fetch("0")
    m.acknowledge({0: "0:1"})
    stage.hold_reads = True
    asked = send_browse(stage, from_offset=0)
    stage.close_connection(m.connection_id)
    stage.release_logs()
    assert shown(asked.response) == "0 done, 1-3 AV(1)"


def test_3_9_with_read_committed_a_page_ends_at_the_last_stable_offset() -> None:
    """0-1 are of an aborted transaction, 2 is its marker, 3-4 are plain, 5-6 of an open one."""
    stage = Stage(broker=ENABLED, group={"share.isolation.level": "read_committed"})
    log = stage.logs[0]
    log.append(2, 100, producer_id=7, attributes=0x10)
    log.append(1, 100, producer_id=7, attributes=0x30)
    log.append(2, 100)
    log.append(2, 100, producer_id=8, attributes=0x10)
    log.aborted, log.stable = (AbortedTransaction(7, 0, 2),), 5
    page = browse(stage)
    assert shown(page) == "2-4 AV(0)"
    assert [batch.base_offset for batch in page.records] == [2, 3]
    assert (page.next_offset, page.high_watermark) == (5, 7)
    assert browse(stage, from_offset=5).next_offset == 5
    stage.set_group(isolation_level="read_uncommitted")
    assert shown(browse(stage)) == "0-6 AV(0)"


def test_3_10_a_page_is_bounded_in_records_and_in_bytes() -> None:
    stage = every_state()
    page = browse(stage, max_records=3)
    assert (shown(page), page.next_offset) == ("2 ACQ(1)@m, 3 AV(2) rests, 4 AV(0) key", 5)
    page = browse(stage, from_offset=5, max_records=2)
    assert (shown(page), page.next_offset) == ("5 ACK(1), 6 AV(0)", 7)
    assert [batch.base_offset for batch in page.records] == [0, 6]
    page = browse(stage, from_offset=2, max_bytes=1)
    assert ([batch.base_offset for batch in page.records], page.next_offset) == ([0], 6)


def test_3_10_the_broker_bounds_the_bytes_of_a_page() -> None:
    stage = Stage(broker={**ENABLED, "fetch.max.bytes": 1024})
    stage.produce(0, 1, 1, 1, size=600)
    page = browse(stage, max_bytes=2**31 - 1)
    assert ([batch.base_offset for batch in page.records], page.next_offset) == ([0], 1)


@pytest.mark.parametrize(
    ("fields", "error", "reason"),
    [
        ({"from_offset": -2}, Errors.INVALID_REQUEST, "from_offset=-2: must be -1 or more"),
        ({"max_records": 0}, Errors.INVALID_REQUEST, "max_records=0: must be 1 or more"),
        ({"max_bytes": 0}, Errors.INVALID_REQUEST, "max_bytes=0: must be 1 or more"),
        ({"partition": 1}, Errors.UNKNOWN_TOPIC_OR_PARTITION, "t has no partition 1"),
        ({"topic_id": "U" * 22}, Errors.UNKNOWN_TOPIC_ID, f"no topic has the id {'U' * 22}"),
    ],
)
def test_what_cannot_be_browsed(fields: dict[str, Any], error: Errors, reason: str) -> None:
    page = browse(stage_with("", 1), **fields)
    assert page == BrowseShareGroupResponse(error_code=error, error_message=reason)


def test_a_log_that_cannot_be_read() -> None:
    stage = stage_with("", 1)
    stage.logs[0].error = Errors.KAFKA_STORAGE_ERROR
    assert browse(stage).error_code is Errors.KAFKA_STORAGE_ERROR


def test_while_share_groups_are_switched_off() -> None:
    stage = stage_with("", 1)
    stage.set_image(share_version=0)
    assert browse(stage).error_code is Errors.UNSUPPORTED_VERSION


def test_0_1_without_experiments_the_leader_is_kafkas() -> None:
    assert type(Stage().leader) is ShareLeader


def test_3_5_a_record_on_its_way_to_the_dead_letter_queue_is_shown_and_stays_there() -> None:
    stage = stage_with("", 3, **{"errors.deadletterqueue.topic.name": "dlq"})
    m = stage.member("m")
    m.fetch("0")
    m.acknowledge({0: "0:3"})
    letters = len(stage.events)
    assert shown(browse(stage)) == "0 AI(1), 1-2 ACQ(1)@m"
    assert (len(stage.events), len(stage.writes)) == (letters, 1)
