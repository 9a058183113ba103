"""Browsing in the tests of the leader: one page of a share-partition, in the shorthand of BEHAVIOUR.md."""

from __future__ import annotations

from collections import deque
from typing import Any

from shareq.model.messages.share_browse import DONE, BrowseShareGroupRequest, BrowseShareGroupResponse, KeptBack
from shareq.model.states import RecordState
from tests.leader.share_partition_stage import NAMES, span
from tests.leader.stage import TOPIC_ID, SentRequest, Stage

ENABLED = {"shareq.experiments.enable": True}


def send_browse(stage: Stage, partition: int = 0, *, group_id: str = "g", **fields: Any) -> SentRequest:
    """A request that may have to wait."""
    given = {"topic_id": TOPIC_ID, "partition": partition, **fields}
    return stage.send(BrowseShareGroupRequest(group_id=group_id, **given))


def browse(stage: Stage, partition: int = 0, **fields: Any) -> BrowseShareGroupResponse:
    response = send_browse(stage, partition, **fields).response
    assert isinstance(response, BrowseShareGroupResponse)
    return response


def browse_apart(stage: Stage, partition: int, **fields: Any) -> BrowseShareGroupResponse:
    """A page at once, whatever the stage keeps waiting or lets fail."""
    kept = stage.hold, stage.hold_reads, stage.persister_errors
    stage.hold, stage.hold_reads, stage.persister_errors = False, False, deque()
    page = browse(stage, partition, **fields)
    stage.hold, stage.hold_reads, stage.persister_errors = kept
    return page


def shown(page: BrowseShareGroupResponse) -> str:
    """ "2 ACQ(1)@m, 3 AV(2) rests, 4 AV(0) key, 6-7 AV(0)"."""
    return ", ".join(map(_run, page.runs))


def _run(run: BrowseShareGroupResponse.Run) -> str:
    where = span(run.first_offset, run.last_offset)
    if run.state == DONE:
        return f"{where} done"
    holder = f"@{run.member_id}" if run.member_id else ""
    reason = f" {KeptBack(run.reason).name.lower()}" if run.reason else ""
    return f"{where} {NAMES[RecordState(run.state)]}({run.delivery_count}){holder}{reason}"
