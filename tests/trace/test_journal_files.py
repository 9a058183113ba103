"""Journals are equal after writing and reading JSON Lines and Parquet; bad files are refused with the line."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shareq.model.events import Event, FaultInjected, SharePartitionLoaded, StateWritePrepared, TargetAssignmentComputed
from shareq.model.messages.share_state import StateBatch
from shareq.trace import Entry, Journal, JournalFileError
from shareq.trace.journal import Subject
from shareq.trace.journal.event_codec import EVENT_TYPES, BadEvent, decode, encode
from shareq.trace.journal.parquet_columns import DETAILS

TYPES = get_args(Event)

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**31), 2**31 - 1),
    str: st.text(max_size=6),
    bool: st.booleans(),
    type(None): st.none(),
}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of the annotated type."""
    if annotation in SCALARS:
        return SCALARS[annotation]
    if hasattr(annotation, "_fields"):
        return st.builds(annotation, *map(values, get_type_hints(annotation).values()))
    arguments = get_args(annotation)
    if get_origin(annotation) is UnionType:
        return st.one_of(*map(values, arguments))
    if arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    return st.tuples(*map(values, arguments))


FEWER = settings(max_examples=settings().max_examples // 5)
"""For each of fifty types and for files: the codec goes by the types of fields, which many events share."""

entries = st.lists(
    st.tuples(st.integers(0, 2**45), st.integers(-1, 99), st.one_of(list(map(values, TYPES)))), max_size=6
)


def journal_of(rows: list[tuple[int, int, Event]], origin_ms: int = 77) -> Journal:
    journal = Journal(origin_ms)
    for row in rows:
        journal.record(*row)
    return journal


def by_subject(journal: Journal) -> list[tuple[Subject, list[Entry]]]:
    """The subjects, by first appearance, and the entries about each."""
    return [(one, journal.about(0, journal.total, {one: TYPES})) for one in journal.subjects()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals")


@pytest.mark.parametrize("event_type", TYPES, ids=lambda t: t.__name__)
def test_an_event_is_equal_after_encoding_and_decoding(event_type: type[Any]) -> None:
    @FEWER
    @given(values(event_type))
    def is_equal(event: Event) -> None:
        plain = json.loads(json.dumps(encode(event)))
        again = decode(event_type.__name__, plain)
        assert again == event
        assert type(again) is type(event)
        assert repr(again) == repr(event)

    is_equal()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@given(rows=entries)
@settings(FEWER, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_journal_is_equal_after_writing_and_reading(
    folder: Path, form: str, rows: list[tuple[int, int, Event]]
) -> None:
    journal, path = journal_of(rows), folder / f"journal.{form}"
    getattr(journal, f"to_{form}")(path)
    again = getattr(Journal, f"from_{form}")(path)
    assert list(again) == list(journal)
    assert (again.origin_ms, again.total, again.errors) == (77, len(rows), ())
    assert by_subject(again) == by_subject(journal)


@given(rows=entries)
@settings(FEWER, suppress_health_check=[HealthCheck.too_slow])
def test_a_parquet_file_may_have_many_parts(folder: Path, rows: list[tuple[int, int, Event]]) -> None:
    import pyarrow.parquet as pq

    journal, path = journal_of(rows), folder / "whole.parquet"
    journal.to_parquet(path)
    pq.write_table(pq.read_table(path), folder / "parts.parquet", row_group_size=2)
    again = Journal.from_parquet(folder / "parts.parquet")
    assert list(again) == list(journal)
    assert by_subject(again) == by_subject(journal)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_bounded_journal_keeps_its_orders(tmp_path: Path, form: str) -> None:
    journal = Journal(capacity=2)
    for number in range(5):
        journal.record(number, 0, FaultInjected("x"))
    getattr(journal, f"to_{form}")(tmp_path / "j")
    again = getattr(Journal, f"from_{form}")(tmp_path / "j")
    assert [entry.order for entry in again] == [3, 4]
    assert (again.total, again.dropped) == (5, 3)
    again.record(9, 0, FaultInjected("y"))
    assert again[-1].order == 5
    assert again.between(0, again.total, (FaultInjected,)) == list(again)


def test_no_event_has_a_field_named_as_one_of_the_entry() -> None:
    for event_type in TYPES:
        assert not {"order", "time_ms", "broker", "type"} & set(event_type._fields)
    assert set(EVENT_TYPES.values()) == set(TYPES)


def test_a_jsonl_file_has_a_header_and_a_line_for_each_entry(tmp_path: Path) -> None:
    journal_of([(5, 2, FaultInjected("naïve – ☂"))]).to_jsonl(tmp_path / "j")
    lines = (tmp_path / "j").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"shareq_journal": 2, "origin_ms": 77}
    assert (
        lines[1]
        == '{"order":0,"time_ms":5,"broker":2,"type":"FaultInjected","text":"naïve – ☂","member_id":null,"fault":null}'
    )


def test_the_columns_of_a_parquet_file(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    changed = EVENT_TYPES["RecordsChanged"]("g", "t", 1, "acquire", 5, 9, 1, 2, "m", 99)
    journal_of([(5, 2, changed), (6, -1, FaultInjected("x"))]).to_parquet(tmp_path / "j")
    table = pq.read_table(tmp_path / "j")
    first, second = table.to_pylist()
    assert first.pop("payload").startswith('{"group_id":"g","topic":"t"')
    assert {name: value for name, value in first.items() if value is not None} == {
        "order": 0, "time_ms": 5, "broker": 2, "type": "RecordsChanged", "group_id": "g", "topic": "t", "partition": 1,
        "first": 5, "end": 9, "cause": "acquire", "state": "acquired", "delivery_count": 2, "deadline_ms": 99,
        "member_id": "m",
    }  # fmt: skip
    assert {name for name, value in second.items() if value is not None} == {
        "order", "time_ms", "broker", "type", "payload"
    }  # fmt: skip


GOOD = '{"order":0,"time_ms":5,"broker":2,"type":"FaultInjected","text":"x"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("{", "Expecting property name", id="incomplete JSON"),
        pytest.param("[1]", "must be a JSON object", id="no object"),
        pytest.param("{}", "order must be a whole number, not None", id="no order"),
        pytest.param(GOOD.replace("5", '"5"'), "time_ms must be a whole number, not '5'", id="a time as text"),
        pytest.param(GOOD.replace("2", "true"), "broker must be a whole number, not True", id="a broker as bool"),
        pytest.param(GOOD.replace("FaultInjected", "Nonsense"), "unknown event type 'Nonsense'", id="unknown type"),
        pytest.param(GOOD.replace('"FaultInjected"', "[]"), r"unknown event type \[\]", id="a list as type"),
        pytest.param(GOOD.replace("text", "words"), "FaultInjected has no field 'words'", id="unknown field"),
        pytest.param(GOOD.replace(',"text":"x"', ""), "FaultInjected lacks the field 'text'", id="missing field"),
        pytest.param(GOOD.replace('"x"', "7"), "FaultInjected.text: must be str, not 7", id="field of another type"),
        pytest.param(GOOD.replace('"order":0', '"order":7'), "order 7, expected 1", id="out of order"),
        pytest.param(GOOD, "order 0, expected 1", id="a duplicate order"),
        pytest.param("\udcff", "codec can't decode", id="bytes that are not UTF-8"),
    ],
)
def test_a_bad_line_is_refused_or_left_out(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "j"
    last = GOOD.replace('"order":0', '"order":2')
    lines = ['{"shareq_journal":2,"origin_ms":77}', GOOD, "", line, last]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    with pytest.raises(JournalFileError, match=message) as caught:
        Journal.from_jsonl(path)
    assert (caught.value.line, str(path) in str(caught.value)) == (4, True)
    journal = Journal.from_jsonl(path, strict=False)
    assert [entry.order for entry in journal] == [0, 2]
    assert [str(error) for error in journal.errors] == [str(caught.value)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "not a journal", id="an empty file"),
        pytest.param("hello\n", "not a journal", id="some text"),
        pytest.param("[]\n", "not a journal", id="other JSON"),
        pytest.param('{"shareq_journal":3,"origin_ms":0}\n', "shareq_journal=3: must be 1 or 2", id="a later version"),
        pytest.param('{"shareq_journal":2}\n', "shareq_journal=2: must be 1 or 2, with", id="no origin"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_a_file_without_a_valid_header_is_refused(tmp_path: Path, content: str, message: str, strict: bool) -> None:
    (tmp_path / "j").write_text(content)
    with pytest.raises(JournalFileError, match=message):
        Journal.from_jsonl(tmp_path / "j", strict=strict)


MOVED = '"order":0,"time_ms":5,"broker":2,"type":"WindowMoved"', '"group_id":"g","topic":"t","partition":1,"spso":3'


@pytest.mark.parametrize(
    ("version", "name", "error"),
    [
        pytest.param(1, "speo", None, id="version 1"),
        pytest.param(2, "window_end", None, id="version 2"),
        pytest.param(2, "speo", "WindowMoved has no field 'speo'", id="the name of version 1 in version 2"),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_the_end_of_a_window_has_another_name_in_version_1(
    tmp_path: Path, version: int, name: str, error: str | None, form: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, fields = tmp_path / f"j.{form}", f'{MOVED[1]},"{name}":9'
    if form == "jsonl":
        path.write_text(f'{{"shareq_journal":{version},"origin_ms":0}}\n{{{MOVED[0]},{fields}}}\n')
    else:
        row = json.loads(f"{{{MOVED[0]}}}") | {"payload": f"{{{fields}}}"}
        table = pa.table({column: [value] for column, value in row.items()})
        pq.write_table(table.replace_schema_metadata({"shareq_journal": str(version), "origin_ms": "0"}), path)
    read = getattr(Journal, f"from_{form}")
    if error is None:
        assert [entry.event for entry in read(path)] == [EVENT_TYPES["WindowMoved"]("g", "t", 1, 3, 9)]
    else:
        with pytest.raises(JournalFileError, match=error):
            read(path)


def test_a_parquet_file_without_a_journal_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "text").write_text("hello")
    columns = {"order": [0], "time_ms": [0], "broker": [0], "type": ["Nonsense"], "payload": ["{}"]}
    pq.write_table(pa.table(columns), tmp_path / "foreign")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other")
    mine = pa.table(columns).replace_schema_metadata({"shareq_journal": "2", "origin_ms": "0"})
    pq.write_table(mine, tmp_path / "bad")
    for name, message in [
        ("text", "text"),
        ("foreign", "not a journal"),
        ("other", "other"),
        ("bad", "unknown event type"),
    ]:
        with pytest.raises(JournalFileError, match=message):
            Journal.from_parquet(tmp_path / name)


GOOD_PAYLOAD = '{"group_id":"g","topic":"t","partition":1,"spso":3,"window_end":9}'
ROWS: dict[str, list[Any]] = {
    "order": [0, 1, 2],
    "time_ms": [5, 5, 5],
    "broker": [0, 0, 0],
    "type": ["WindowMoved"] * 3,
    "payload": [GOOD_PAYLOAD] * 3,
}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        pytest.param(
            "payload", GOOD_PAYLOAD.replace("9", '"9"'), "entry 2: WindowMoved.window_end: must be int", id="type"
        ),
        pytest.param("payload", GOOD_PAYLOAD.replace("9", "true"), "entry 2: .*must be int, not True", id="a bool"),
        pytest.param("payload", GOOD_PAYLOAD.replace(',"spso":3', ""), "entry 2: .*lacks the field 'spso'", id="field"),
        pytest.param("payload", GOOD_PAYLOAD[:-1], "entry 2: Expecting", id="incomplete JSON"),
        pytest.param("payload", GOOD_PAYLOAD + "1", "entry 2: Extra data", id="more than one value"),
        pytest.param("payload", "[1]", "entry 2: the payload must be a JSON object", id="no object"),
        pytest.param("type", "Nonsense", "entry 2: unknown event type 'Nonsense'", id="unknown type"),
        pytest.param("time_ms", None, "time_ms must not be null", id="no time"),
        pytest.param("order", 2.5, "order must be int64, not double", id="a broken order"),
    ],
)
def test_a_bad_entry_of_a_parquet_file_is_named(tmp_path: Path, column: str, value: object, message: str) -> None:
    """The entries before it have the same type, and are good."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {**ROWS, column: [*ROWS[column][:2], value]}
    table = pa.table(rows).replace_schema_metadata({"shareq_journal": "2", "origin_ms": "0"})
    pq.write_table(table, tmp_path / "bad")
    with pytest.raises(JournalFileError, match=message):
        Journal.from_parquet(tmp_path / "bad")


def test_a_parquet_file_is_read_without_the_payloads_of_events_in_typed_columns(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = [(5, 0, EVENT_TYPES["WindowMoved"]("g", "t", 1, n, n + 4)) for n in range(3)]
    events.insert(1, (5, 0, FaultInjected("x")))
    journal_of(events).to_parquet(tmp_path / "j")
    table = pq.read_table(tmp_path / "j")
    payloads = table.column("payload").to_pylist()

    def read(column: str, values: list[Any]) -> list[Any]:
        at = table.schema.get_field_index(column)
        changed = table.set_column(at, column, pa.array(values, table.schema.field(at).type))
        pq.write_table(changed, tmp_path / "k")
        return [entry.event for entry in Journal.from_parquet(tmp_path / "k")]

    wanted = [event for _, _, event in events]
    assert read("payload", [None, payloads[1], None, None]) == wanted
    assert read("spso", [0, None, None, 2]) == wanted  # the payload has what the column lacks
    with pytest.raises(JournalFileError, match="payload must not be null"):
        read("payload", [None] * 4)


def test_a_parquet_file_without_a_prepared_state_is_read(tmp_path: Path) -> None:
    changed = EVENT_TYPES["RecordsChanged"]("g", "t", 1, "acquire", 5, 9, 1, 2, "m", 99)
    journal = journal_of([(5, 0, changed)])
    journal.to_parquet(tmp_path / "j")
    assert list(Journal.from_parquet(tmp_path / "j")) == list(journal)


FREQUENT: list[Event] = [
    EVENT_TYPES["HeartbeatReceived"]("g", "m", 3, 0),
    EVENT_TYPES["RecordsDelivered"]("g", "m", "c", "t", 1, 5, 9, 4, 2),
    EVENT_TYPES["AcknowledgementsSent"]("g", "m", "t", 1, (1, 1, 2), 0),
    StateWritePrepared("g", "t", 1, 7, 5, 4, (StateBatch(5, 8, 2, 1), StateBatch(9, 9, 4, 5))),
    EVENT_TYPES["StateRecordWritten"]("g:id:1", "update", 2, 5, (StateBatch(5, 8, 2, 1),)),
    EVENT_TYPES["StateRecordWritten"]("g:id:1", "tombstone", 2, -1, ()),
]


@pytest.mark.parametrize("stored", ["without payloads", "without the columns of other fields"])
def test_frequent_events_are_read_from_typed_columns_or_payloads(tmp_path: Path, stored: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    journal = journal_of([(5, 0, event) for event in FREQUENT])
    journal.to_parquet(tmp_path / "j")
    table = pq.read_table(tmp_path / "j")
    at = table.schema.get_field_index("payload")
    pq.write_table(
        table.set_column(at, "payload", pa.nulls(len(table), pa.string()))
        if stored == "without payloads"
        else table.drop_columns(list(DETAILS)),
        tmp_path / "k",
    )
    again = Journal.from_parquet(tmp_path / "k")
    assert list(again) == list(journal)
    assert by_subject(again) == by_subject(journal)


def test_the_rows_of_a_parquet_file_may_have_any_order(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    journal = journal_of([(5, 0, event) for event in FREQUENT])
    journal.to_parquet(tmp_path / "j")
    pq.write_table(pq.read_table(tmp_path / "j")[::-1], tmp_path / "k")
    again = Journal.from_parquet(tmp_path / "k")
    assert list(again) == list(journal)
    assert by_subject(again) == by_subject(journal)


def test_reading_leaves_the_garbage_collection_as_it_was(tmp_path: Path) -> None:
    Journal().to_jsonl(tmp_path / "j")
    for switch in (gc.disable, gc.enable):
        switch()
        Journal.from_jsonl(tmp_path / "j")
        assert gc.isenabled() == (switch is gc.enable)


@pytest.mark.parametrize(
    ("event_type", "field", "value", "message"),
    [
        pytest.param(SharePartitionLoaded, "runs", 3, "must be a list, not 3", id="no list"),
        pytest.param(SharePartitionLoaded, "runs", [[1, 2, 3]], "must be 4 values, not 3", id="a short row"),
        pytest.param(SharePartitionLoaded, "runs", [[1, 2, 3, "4"]], "must be int, not '4'", id="text in a row"),
        pytest.param(StateWritePrepared, "write_id", True, "must be int, not True", id="a bool as number"),
        pytest.param(TargetAssignmentComputed, "assignment", [["m"]], "must be 2 values, not 1", id="a short pair"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(event_type: type[Any], field: str, value: object, message: str) -> None:
    zeros = {"group_id": "g", "topic": "t", "runs": [], "state_batches": [], "assignment": []}
    fields = {name: zeros.get(name, 0) for name in event_type._fields} | {field: value}
    with pytest.raises(BadEvent, match=rf"{event_type.__name__}\.{field}: {message}"):
        decode(event_type.__name__, fields)


def test_a_journal_of_existing_entries() -> None:
    journal = Journal.of([Entry(4, 0, 0, FaultInjected("x"))], 3)
    assert (journal.total, journal.dropped, journal.origin_ms) == (5, 4, 3)
    assert Journal.of([], 3).total == 0


def test_a_parquet_file_is_read_without_pandas(tmp_path: Path) -> None:
    """Its import takes about as long as the reading of a million events."""
    file = tmp_path / "journal.parquet"
    made = [EVENT_TYPES["WindowMoved"]("g", "t", 1, 3, 9), FaultInjected("x"), FaultInjected("y")]
    journal_of([(5, 0, event) for event in made]).to_parquet(file)
    code = f"from shareq.trace import Journal; print(Journal.from_parquet({str(file)!r}).total)"
    code += "; import sys; print('pandas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["3", "False"]
