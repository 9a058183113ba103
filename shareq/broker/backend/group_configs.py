"""The configurations of share groups, kept in a compacted topic of the backend. BEHAVIOUR.md, section 4."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.controller import Changes
from shareq.broker.placement import NO_ERROR, ErrorWithMessage
from shareq.model.actor import Appended, AppendRecords, ReadRecords, RecordsRead
from shareq.model.configs import validate_group_overrides
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import ConfigChanged, Event
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord

FENCE = CoordinatorRecord(b"", None)
"""A tombstone of no group."""


class GroupConfigs:
    """Reads the stored configurations into the image, and stores changes before they take effect."""

    def __init__(self, log: ShardLog, mirror: MetadataMirror, record: Callable[[Event], None]) -> None:
        self.loaded = False
        self._log = log
        self._mirror = mirror
        self._record = record
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def image(self) -> ClusterImage:
        return self._mirror.image

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Become the writer, then read the topic to its end."""
        self._log.open(lambda error: None if error else self._read_from(0))

    def _read_from(self, offset: int) -> None:
        self._log.read(ReadRecords(0, self._log.shard, offset), self._take)

    def _take(self, read: RecordsRead) -> None:
        configs = dict(self.image.group_configs)
        for _, key, value in read.records:
            if value is None:
                configs.pop(key.decode(), None)
            else:
                configs[key.decode()] = MappingProxyType(json.loads(value))
        self.loaded = read.done
        self._mirror.change(group_configs=MappingProxyType(configs))
        if not read.done:
            self._read_from(read.next_offset)

    # ---- changes -----------------------------------------------------------------------------------------------------

    def alter(
        self,
        group_id: str,
        changes: Changes,
        done: Callable[[ErrorWithMessage], object],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set overrides of a group, which need not exist, or remove them with None; `done` gets the result when the
        change is stored."""
        self._waiting.append(partial(self._alter, group_id, changes, done, validate_only))
        if len(self._waiting) == 1:
            self._waiting[0]()

    def _alter(
        self, group_id: str, changes: Changes, done: Callable[[ErrorWithMessage], object], validate_only: bool
    ) -> None:
        problem, merged = self.merged(group_id, changes)
        if problem[0] or validate_only:
            self._end(done, problem)
        elif not self.loaded:
            self._end(done, (Errors.COORDINATOR_LOAD_IN_PROGRESS, "the stored group configurations are being read"))
        else:
            value = json.dumps(merged, sort_keys=True).encode() if merged else None
            effect = AppendRecords(0, self._log.shard, (CoordinatorRecord(group_id.encode(), value),))
            self._log.append(
                effect, lambda appended: self._end(done, self._stored(group_id, changes, merged, appended))
            )

    def _end(self, done: Callable[[ErrorWithMessage], object], result: ErrorWithMessage) -> None:
        """Report a change, then begin the next one: the log has one append at a time."""
        done(result)
        self._waiting.popleft()
        if self._waiting:
            self._waiting[0]()

    def merged(self, group_id: str, changes: Changes) -> tuple[ErrorWithMessage, dict[str, str]]:
        """The overrides of a group after a change, or the error of the change."""
        if not group_id:
            return (Errors.INVALID_REQUEST, "the group id is empty"), {}
        old = self.image.group_configs.get(group_id, {})
        merged = {key: value for key, value in {**old, **changes}.items() if value is not None}
        try:
            validate_group_overrides(merged, self.image.broker_config)
        except ConfigException as problem:
            return (Errors.INVALID_CONFIG, str(problem)), {}
        return NO_ERROR, merged

    def _stored(
        self, group_id: str, changes: Changes, merged: Mapping[str, str], appended: Appended
    ) -> ErrorWithMessage:
        if appended.error:
            return appended.error, "the configuration could not be stored"
        for key, value in changes.items():
            self._record(ConfigChanged(f"group:{group_id}", key, value))
        configs = {**self.image.group_configs, group_id: MappingProxyType(dict(merged))}
        self._mirror.change(group_configs=MappingProxyType({group: one for group, one in configs.items() if one}))
        return NO_ERROR
