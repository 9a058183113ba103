"""The topic of the groups' configurations, with records of other programs in it. BEHAVIOUR.md of the backend, 4."""

from __future__ import annotations

import logging
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest

from shareq.broker.backend.group_configs import GroupConfigs
from shareq.model.actor import RecordsRead
from shareq.model.errors import Errors

LOCK = "share.record.lock.duration.ms"


class Mirror:
    """The image, as `MetadataMirror` keeps it."""

    def __init__(self) -> None:
        self.image = SimpleNamespace(group_configs=MappingProxyType({}))

    def change(self, *, group_configs: Any) -> None:
        self.image.group_configs = group_configs


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        pytest.param(b"crew", b"lock", "Expecting value", id="no JSON"),
        pytest.param(b"crew", b"[1]", "no JSON object of strings", id="no object"),
        pytest.param(b"crew", b'{"a": 1}', "no JSON object of strings", id="a number"),
        pytest.param(b"crew", b"\xff", "can't decode", id="value without UTF-8"),
        pytest.param(b"\xff", b"{}", "can't decode", id="key without UTF-8"),
    ],
)
def test_a_record_of_another_program_is_skipped(
    key: bytes, value: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    mirror = Mirror()
    ignored: Any = lambda *_: None  # noqa: E731
    configs = GroupConfigs(
        cast(Any, None), cast(Any, None), cast(Any, mirror), record=ignored, ask_writer=ignored, when_held=ignored
    )
    records = [
        (0, b"crew", b'{"%s": "20000"}' % LOCK.encode()),
        (1, key, value),
        (2, b"others", b'{"%s": "1000"}' % LOCK.encode()),
    ]
    with caplog.at_level(logging.WARNING, logger="shareq.backend"):
        configs._take(RecordsRead(0, Errors.NONE, records, next_offset=3, done=True))
    assert mirror.image.group_configs == {"crew": {LOCK: "20000"}, "others": {LOCK: "1000"}}
    (line,) = caplog.messages
    assert line.startswith("shareq-group-configs: the record at offset 1 is skipped: ")
    assert why in line
