"""Protocol messages in a few words: "fetch, accept 110–113", "got 119–123", "write 41 acknowledged".

The words are taken from the fields as `journal.message_json` writes them. Offsets are inclusive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shareq.model.errors import Errors
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.trace.analysis.caused_events import partitions_of_message
from shareq.trace.analysis.exchanges import Exchange, Fields
from shareq.trace.journal.event_text import count_text, list_text, range_text

PARTS = 2
"""Number of ranges in the words of a message; further ones are counted."""

_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?: (.*)")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class MessageWords(NamedTuple):
    """An exchange in words, and the names of its errors; see the functions below."""

    request: str
    response: str
    errors: tuple[str, ...]


def message_words(exchange: Exchange) -> MessageWords:
    """The words of both messages."""
    return MessageWords(request_words(exchange), response_words(exchange), tuple(error_names(exchange)))


def request_words(exchange: Exchange) -> str:
    """What the request asks for."""
    words = _REQUESTS.get(exchange.api)
    return words(exchange.request) if words else _CAPITAL.sub(" ", exchange.api).lower()


def response_words(exchange: Exchange) -> str:
    """The result in the response, or its first error; "" without a response."""
    if exchange.response is None:
        return ""
    errors = error_names(exchange)
    if errors:
        return list_text(errors, 1)
    words = _RESPONSES.get(exchange.api)
    return words(exchange.response) if words else "ok"


def error_names(exchange: Exchange) -> list[str]:
    """The names of the errors in a response: of the whole request, and of its topics and partitions; each once."""
    top = [Errors(exchange.error).name] if exchange.error else []
    return list(dict.fromkeys([*top, *_errors_within(exchange.response or {})]))


def _errors_within(value: Any) -> Iterator[str]:
    """The values of all fields with an error code; those of NONE are left out of the fields."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if str(name).endswith("error_code") and isinstance(inner, str):
                yield inner
            else:
                yield from _errors_within(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _errors_within(inner)


# ---- requests --------------------------------------------------------------------------------------------------------


def _fetch(fields: Fields) -> str:
    acknowledged = _acknowledgements(fields)
    return f"fetch, {acknowledged}" if acknowledged else "fetch"


def _acknowledgements(fields: Fields) -> str:
    """The acknowledged offsets by type, in the order of types in the request."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for partition in _partitions(fields, "topics"):
        for first, last, types in _ranges(partition.get("acknowledgement_batches", ())):
            names = types.split()
            for place in range(last - first + 1 if len(names) > 1 else 1):
                found = ranges.setdefault(names[place].lower(), [])
                begin, end = (first + place, first + place) if len(names) > 1 else (first, last)
                if found and found[-1][1] + 1 == begin:
                    found[-1] = (found[-1][0], end)
                else:
                    found.append((begin, end))
    return ", ".join(f"{kind} {_offsets(found)}" for kind, found in ranges.items())


def _heartbeat(fields: Fields) -> str:
    return {0: "join", -1: "leave"}.get(fields.get("member_epoch", 1), "heartbeat")


def _write(fields: Fields) -> str:
    """The states to write; without any, the SPSO."""
    parts = []
    for partition in _partitions(fields, "topics"):
        parts += _batches(partition) or [f"SPSO {partition.get('start_offset', -1)}"]
    return f"write {list_text(parts, PARTS)}"


def _batches(partition: Mapping[str, Any]) -> list[str]:
    """The states of a partition by their offsets."""
    batches = [StateBatch(*batch) for batch in partition.get("state_batches", ()) if isinstance(batch, list)]
    return [
        f"{range_text(batch.first_offset, batch.last_offset + 1)} {RecordState(batch.delivery_state).name.lower()}"
        for batch in batches
    ]


def _produce(fields: Fields) -> str:
    counts = [
        int(found[1])
        for partition in _partitions(fields, "topics")
        for batch in partition.get("records", ())
        if (found := re.match(r".*: (\d+) ", str(batch)))
    ]
    return f"produce {count_text(sum(counts), 'record')}" if counts else "produce"


def _of_partitions(verb: str) -> Callable[[Fields], str]:
    """The verb, and the partitions of the request."""

    def words(fields: Fields) -> str:
        return f"{verb} {list_text((f'{topic}-{n}' for topic, n in partitions_of_message(fields)), PARTS)}".rstrip()

    return words


# ---- responses -------------------------------------------------------------------------------------------------------


def _got(fields: Fields) -> str:
    found = [
        (first, last)
        for partition in _partitions(fields, "responses")
        for first, last, _ in _ranges(partition.get("acquired_records", ()))
    ]
    return f"got {_offsets(found)}" if found else "no records"


def _epoch(fields: Fields) -> str:
    """The member epoch, and the number of assigned partitions if there is a new assignment."""
    given = (fields.get("assignment") or {}).get("topic_partitions")
    count = sum(len(topic.get("partitions", ())) for topic in given or () if isinstance(topic, Mapping))
    epoch = f"epoch {fields.get('member_epoch', 0)}"
    return f"{epoch}, {count_text(count, 'partition')}" if given else epoch


def _coordinator(fields: Fields) -> str:
    nodes = [found.get("node_id", -1) for found in fields.get("coordinators", ()) if isinstance(found, Mapping)]
    return f"broker {nodes[0]}" if nodes else "ok"


def _state(fields: Fields) -> str:
    """The durable start, above which a leader passes what is done; -1 in the protocol: it is not decided yet."""
    found = next(_partitions(fields, "results"), None)
    if found is None:
        return "ok"
    start, batches = found.get("start_offset", 0), _batches(found)
    above = f", {list_text(batches, PARTS)}" if batches else ""
    return f"start {'not decided' if start < 0 else start}{above}"


def _partitions(fields: Fields, name: str) -> Iterator[Mapping[str, Any]]:
    """The partitions of all topics in a list of topics."""
    for topic in fields.get(name, ()):
        for partition in topic.get("partitions", ()) if isinstance(topic, Mapping) else ():
            if isinstance(partition, Mapping):
                yield partition


def _ranges(items: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    """First offset, last offset and the rest of each item, such as "3..5: ACCEPT"."""
    for item in items:
        found = _RANGE.fullmatch(str(item))
        if found:
            yield int(found[1]), int(found[2] or found[1]), found[3]


def _offsets(ranges: Sequence[tuple[int, int]]) -> str:
    return list_text((range_text(first, last + 1) for first, last in ranges), PARTS)


_REQUESTS: Mapping[str, Callable[[Fields], str]] = {
    "ShareFetch": _fetch,
    "ShareAcknowledge": lambda fields: _acknowledgements(fields) or "close the share session",
    "ShareGroupHeartbeat": _heartbeat,
    "ConsumerGroupHeartbeat": _heartbeat,
    "WriteShareGroupState": _write,
    "ReadShareGroupState": _of_partitions("read"),
    "InitializeShareGroupState": _of_partitions("initialize"),
    "DeleteShareGroupState": _of_partitions("delete"),
    "Produce": _produce,
}
_RESPONSES: Mapping[str, Callable[[Fields], str]] = {
    "ShareFetch": _got,
    "ShareGroupHeartbeat": _epoch,
    "ConsumerGroupHeartbeat": _epoch,
    "FindCoordinator": _coordinator,
    "ReadShareGroupState": _state,
}
