"""The configurations of share groups, kept in a compacted topic of the backend. BEHAVIOUR.md, section 4."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.led_shards import write_again
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.restoration import OF_RECORDS
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.backend.shard_reads import RETRY_MS
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC
from shareq.broker.controller import Changes
from shareq.broker.loop import EventLoop
from shareq.broker.placement import NO_ERROR, ErrorWithMessage
from shareq.model.actor import Answer, Appended, AppendRecords, ReadRecords, RecordsRead
from shareq.model.configs import validate_group_overrides
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import ConfigChanged, Event
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.topics import (
    AlterOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)
from shareq.model.records import CoordinatorRecord

_log = logging.getLogger("shareq.backend")

FENCE = CoordinatorRecord(b"", None)
"""A tombstone of no group."""

SHARD = TopicPartition(GROUP_CONFIGS_TOPIC, 0)

FOLLOW_WAIT_MS = 500
"""How long a read of a process that follows the topic waits for changes."""

ASK_MS = 10_000
"""How long a process asks the one that stores changes, which may change meanwhile."""

_UNKNOWN_WRITER = frozenset({Errors.NOT_CONTROLLER, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NETWORK_EXCEPTION})


class GroupConfigs:
    """Reads the stored configurations into the image. The process that leads the topic stores changes; the others
    follow the topic, and send changes to that process with `ask_writer(request, done)`. `when_held(call)` calls while
    no other process can lead.

    `loaded`: True if the image has had all of the topic.
    """

    def __init__(
        self,
        client: BackendClient,
        loop: EventLoop,
        mirror: MetadataMirror,
        *,
        record: Callable[[Event], None],
        ask_writer: Callable[[IncrementalAlterConfigsRequest, Callable[[Answer], object]], object],
        when_held: Callable[[Callable[[], object]], object],
    ) -> None:
        self.loaded = False
        self.writes = False
        """True if this process stores changes."""
        self._client = client
        self._loop = loop
        self._mirror = mirror
        self._record = record
        self._ask_writer = ask_writer
        self._when_held = when_held
        self._log: ShardLog | None = None
        self._place: tuple[TopicId | None, bool] = None, False
        """The id of the topic that was read last, and whether this process led it."""
        self._stored_in: TopicId | None = None
        """The id of the topic that has all configurations of the image."""
        self._next = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def image(self) -> ClusterImage:
        return self._mirror.image

    # ---- reading -----------------------------------------------------------------------------------------------------

    def image_changed(self) -> None:
        """Become the writer, or follow, as the image has it. Do neither while there is no topic."""
        topic_id, leads = self._mirror.group_configs_id, self._mirror.leads(*SHARD)
        if self._log is not None and (topic_id, leads) == self._place:
            return
        self.close()
        if topic_id is not None:
            if topic_id != self._place[0]:
                self._next = 0
            self._place = topic_id, leads
            self._log = log = ShardLog(SHARD, FENCE, self._client, self._loop, self._mirror, cleanup=OF_RECORDS)
            if leads:
                log.open(partial(self._opened, log), partial(self._replaced, log))
            else:
                self._read()

    def _opened(self, log: ShardLog, error: Errors) -> None:
        """Read the log. One that is not in the topic in which the configurations are gets them."""

        def stored(error: Errors) -> None:
            if error:
                self._fenced()
            else:
                self._read()

        if error or self._stored_in in (None, self._place[0]):
            stored(error)
        else:
            write_again(log, [_record(*one) for one in self.image.group_configs.items()], stored)

    def close(self) -> None:
        """Read and store nothing more until the next image."""
        self.writes = False
        if self._log is not None:
            self._log.close()
            self._log = None
        waiting, self._waiting = self._waiting, deque()
        for change in waiting:
            self._loop.post(change)

    def _replaced(self, log: ShardLog) -> None:
        if self._log is log:
            self._fenced()

    def _fenced(self) -> None:
        """Another process has become the writer. If this one still leads, that was a former leader: begin anew."""
        self.close()
        self._loop.at(self._loop.time_ms() + RETRY_MS, lambda: self._when_held(self._mirror.published))

    def _read(self) -> None:
        if self._log is not None:
            wait_ms = 0 if self._place[1] else FOLLOW_WAIT_MS
            self._log.read(ReadRecords(0, SHARD, self._next), self._take, wait_ms=wait_ms)

    def _take(self, read: RecordsRead) -> None:
        self._next = read.next_offset
        configs = dict(self.image.group_configs)
        for offset, key, value in read.records:
            try:
                group_id, found = _stored(key, value)
            except ValueError as problem:
                _log.warning("%s: the record at offset %d is skipped: %s", GROUP_CONFIGS_TOPIC, offset, problem)
                continue
            if self.loaded:
                self._record_changes(group_id, configs.get(group_id, {}), found)
            configs[group_id] = found
        if read.done:
            self.loaded, self._stored_in = True, self._place[0]
        self.writes = self._place[1] and read.done
        self._publish(configs)
        if not self.writes:
            self._read()

    def _publish(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        found = {group: one for group, one in configs.items() if one}
        if found != self.image.group_configs:
            self._mirror.change(group_configs=MappingProxyType(found))

    def _record_changes(self, group_id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                self._record(ConfigChanged(f"group:{group_id}", key, new.get(key)))

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
        change is stored and in the image of this process."""
        problem, _ = self.merged(group_id, changes)
        if problem[0] or validate_only:
            done(problem)
        elif self.writes:
            self._enqueue(group_id, changes, done)
        else:
            self._ask(group_id, changes, done, self._loop.time_ms() + ASK_MS)

    # ---- changes that another process stores -------------------------------------------------------------------------

    def _ask(self, group_id: str, changes: Changes, done: Callable[[ErrorWithMessage], object], due_ms: int) -> None:
        """Send a change to the process that leads the topic, until it is known."""
        if self.writes:
            self._enqueue(group_id, changes, done)
            return

        def taken(answer: Answer) -> None:
            response = answer.response
            results = response.responses if isinstance(response, IncrementalAlterConfigsResponse) else ()
            error, why = (
                (results[0].error_code, results[0].error_message) if results else (Errors.NETWORK_EXCEPTION, None)
            )
            if error in _UNKNOWN_WRITER and self._loop.time_ms() < due_ms:
                again = partial(self._ask, group_id, changes, done, due_ms)
                self._loop.at(self._loop.time_ms() + RETRY_MS, again)
            elif error:
                done((error, why))
            else:
                self._mirror.when(shown, lambda: done(NO_ERROR))

        def shown(image: ClusterImage) -> bool:
            now = image.group_configs.get(group_id, {})
            return all(now.get(key) == value for key, value in changes.items())

        self._ask_writer(_request(group_id, changes), taken)

    # ---- changes that this process stores ----------------------------------------------------------------------------

    def _enqueue(self, group_id: str, changes: Changes, done: Callable[[ErrorWithMessage], object]) -> None:
        self._waiting.append(partial(self._alter, group_id, changes, done))
        if len(self._waiting) == 1:
            self._waiting[0]()

    def _alter(self, group_id: str, changes: Changes, done: Callable[[ErrorWithMessage], object]) -> None:
        problem, merged = self.merged(group_id, changes)
        if self._log is None or not self.writes:
            self._ask(group_id, changes, done, self._loop.time_ms() + ASK_MS)
        elif problem[0]:
            self._end(done, problem)
        else:
            effect = AppendRecords(0, SHARD, (_record(group_id, merged),))
            self._log.append(effect, partial(self._appended, group_id, merged, done))

    def _appended(
        self,
        group_id: str,
        merged: Mapping[str, str],
        done: Callable[[ErrorWithMessage], object],
        appended: Appended,
    ) -> None:
        if appended.error is Errors.NOT_COORDINATOR:
            self._fenced()  # this change and the others that wait are sent to the present writer
        elif appended.error:
            self._end(done, (appended.error, "the configuration could not be stored"))
        else:
            self._next = appended.base_offset + 1
            new = MappingProxyType(dict(merged))
            self._record_changes(group_id, self.image.group_configs.get(group_id, {}), new)
            self._publish({**self.image.group_configs, group_id: new})
            self._end(done, NO_ERROR)

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


def _record(group_id: str, configs: Mapping[str, str]) -> CoordinatorRecord:
    value = json.dumps(dict(configs), sort_keys=True).encode() if configs else None
    return CoordinatorRecord(group_id.encode(), value)


def _stored(key: bytes, value: bytes | None) -> tuple[str, Mapping[str, str]]:
    """A group and its configurations in a record. ValueError for a record that another program has written."""
    found = json.loads(value or b"{}")
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError("its value is no JSON object of strings")
    return key.decode(), MappingProxyType(found)


def _request(group_id: str, changes: Changes) -> IncrementalAlterConfigsRequest:
    """The request of a change."""
    request = IncrementalAlterConfigsRequest
    configs = tuple(
        request.Config(
            name=key, config_operation=AlterOperation.DELETE if value is None else AlterOperation.SET, value=value
        )
        for key, value in changes.items()
    )
    resource = request.Resource(resource_type=ResourceType.GROUP, resource_name=group_id, configs=configs)
    return request(resources=(resource,))
