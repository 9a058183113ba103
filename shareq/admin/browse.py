"""Browsing a share-partition: its records with their states and holders, page by page (an experiment)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shareq.admin.broker_routing import BrokerRouting, PartitionKey
from shareq.admin.core import Operation
from shareq.admin.results import Result, Results, Shown
from shareq.log.records import decode
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.frozen import frozen
from shareq.model.messages.share_browse import (
    DONE,
    UNTIL_EVENT,
    BrowseShareGroupRequest,
    BrowseShareGroupResponse,
    KeptBack,
)
from shareq.model.printable import escape
from shareq.model.states import RecordState

_UNKNOWN_API = (
    "browsing needs brokers of shareq with shareq.experiments.enable=true; "
    "of another Kafka, shareq.observer shows the durable states"
)


@frozen
class BrowsedRun(Result):
    """Neighbouring offsets with one state, such as "AVAILABLE"; "DONE" is everything below the SPSO. `remaining_ms`: of
    the lock, or of the rest; not above 0 if it is over. `reason`: why an AVAILABLE record cannot be acquired now."""

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None
    remaining_ms: int | None
    reason: str | None


@frozen
class BrowsedRecord(Shown):
    """A record, and its state as in `BrowsedRun`."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    state: str
    delivery_count: int
    member_id: str | None
    remaining_ms: int | None
    reason: str | None


class BrowsedPage:
    """The answer to one request: all of it has the time `now_ms` of the leader. `speo` is `spso` - 1 if nothing is in
    flight. `runs`: by first offset."""

    def __init__(self, response: BrowseShareGroupResponse) -> None:
        self.spso, self.speo = response.spso, response.speo
        self.high_watermark, self.now_ms = response.high_watermark, response.now_ms
        self.next_offset = response.next_offset
        self.runs: Results[int, BrowsedRun] = Results(
            {run.first_offset: _browsed_run(run, response.now_ms) for run in response.runs}
        )
        self._batches = response.records

    def records(self) -> Iterator[BrowsedRecord]:
        """The records of the page, without transaction markers. CorruptBatch: a batch that cannot be decoded."""
        runs = iter(self.runs.values())
        run = next(runs, None)
        for batch in self._batches:
            for record in () if batch.is_control else decode(batch):
                while run is not None and run.last_offset < record.offset:
                    run = next(runs, None)
                if run is not None and run.first_offset <= record.offset:
                    yield BrowsedRecord(
                        offset=record.offset,
                        timestamp=record.timestamp,
                        key=record.key,
                        value=record.value,
                        headers=tuple(record.headers),
                        state=run.state,
                        delivery_count=run.delivery_count,
                        member_id=run.member_id,
                        remaining_ms=run.remaining_ms,
                        reason=run.reason,
                    )


class Browse:
    """The records of a share-partition: `for record in browse`. `first` is the first page; later ones are requested as
    the iteration gets to them, and are newer. Each iteration requests them again."""

    def __init__(self, title: str, first: BrowsedPage, page_from: Callable[[int], BrowsedPage]) -> None:
        self.first = first
        self._title = title
        self._page_from = page_from

    def pages(self) -> Iterator[BrowsedPage]:
        """The pages up to the end of the log; with read_committed, up to the last stable offset."""
        page, at = self.first, -1
        while page.runs or page.next_offset > at:
            yield page
            at = page.next_offset
            if at >= page.high_watermark:
                return
            page = self._page_from(at)

    def runs(self) -> Iterator[BrowsedRun]:
        """The runs of all pages."""
        for page in self.pages():
            yield from page.runs.values()

    def __iter__(self) -> Iterator[BrowsedRecord]:
        for page in self.pages():
            yield from page.records()

    def _caption(self) -> str:
        page = self.first
        in_flight = f"SPEO {page.speo}" if page.speo >= page.spso else "nothing in flight"
        return f"{self._title}: SPSO {page.spso}, {in_flight}, high watermark {page.high_watermark}"

    def _rest(self) -> str:
        page = self.first
        return f"more from offset {page.next_offset}" if page.next_offset < page.high_watermark else ""

    def __repr__(self) -> str:
        return "\n".join(filter(None, [self._caption(), repr(self.first.runs), self._rest()]))

    def _repr_html_(self) -> str:
        rest = self._rest()
        end = f"<p>{escape(rest)}</p>" if rest else ""
        return f"<p>{escape(self._caption())}</p>{self.first.runs._repr_html_()}{end}"


def browsed(group_id: str, place: PartitionKey, first_offset: int, page: Callable[[int], BrowsedPage]) -> Browse:
    """A browse whose pages `page` requests, the first one now."""

    def clear(offset: int) -> BrowsedPage:
        try:
            return page(offset)
        except KafkaException as failure:
            if failure.error.code() != Errors.UNSUPPORTED_VERSION:
                raise
            raise KafkaException(KafkaError(Errors.UNSUPPORTED_VERSION, _UNKNOWN_API)) from None

    topic, partition = place
    return Browse(f"{group_id} on {topic}:{partition}", clear(first_offset), clear)


def page_from(
    routing: BrokerRouting, group_id: str, place: PartitionKey, from_offset: int, max_records: int
) -> Operation[BrowsedPage]:
    """One page. Raises KafkaException for what cannot be browsed."""
    topic, partition = place
    image = yield from routing.metadata([topic])
    topic_id = next((found.topic_id for found in image.topics if not found.error_code), None)
    if topic_id is None:
        raise KafkaException(KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} [{partition}] does not exist"))
    request = BrowseShareGroupRequest(
        group_id=group_id, topic_id=topic_id, partition=partition, from_offset=from_offset, max_records=max_records
    )
    done = yield from routing.by_leader([place], lambda _: request, lambda found: [(place, found.error_code, found)])
    error, response = done[place]
    if error is not None:
        reason = None if response is None else response.error_message
        raise KafkaException(KafkaError(Errors(error.code()), reason) if reason else error)
    return BrowsedPage(response)


def _browsed_run(run: BrowseShareGroupResponse.Run, now_ms: int) -> BrowsedRun:
    return BrowsedRun(
        first_offset=run.first_offset,
        last_offset=run.last_offset,
        state="DONE" if run.state == DONE else RecordState(run.state).name,
        delivery_count=run.delivery_count,
        member_id=run.member_id,
        remaining_ms=None if run.until_ms == UNTIL_EVENT else run.until_ms - now_ms,
        reason=KeptBack(run.reason).words or None,
    )
