"""Offsets of the source, tasks made of ranges, and options."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shareq.spark
from shareq.spark.options import KNOWN, parse
from shareq.spark.ranges import Batch, Range, cut, from_json, merged, split, to_json

ID = "q" * 22


def ranges(*places: tuple[str, int, int, int, int]) -> tuple[Range, ...]:
    return tuple(Range(topic, ID, partition, first, end, count) for topic, partition, first, end, count in places)


def offsets(several: tuple[Range, ...]) -> list[tuple[str, int, int, int]]:
    """The oracle: each offset separately."""
    return [(at.topic, at.partition, offset, at.delivery_count) for at in several for offset in range(at.first, at.end)]


some_ranges = st.lists(
    st.builds(
        lambda topic, partition, first, size, count: Range(topic, ID, partition, first, first + size, count),
        st.sampled_from("ab"),
        st.integers(0, 2),
        st.integers(0, 50),
        st.integers(1, 30),
        st.integers(1, 3),
    ),
    max_size=12,
).map(tuple)


@given(some_ranges, st.integers(0, 1 << 40))
def test_an_offset_is_restored_from_json(some: tuple[Range, ...], number: int) -> None:
    batch = from_json(json.loads(json.dumps(to_json(Batch(number, some)))))
    assert batch.number == number
    assert sorted(batch.ranges) == sorted(some)


@pytest.mark.parametrize("offset", [{}, {"batch": 1}, {"batch": 1, "topics": {"t": {"id": ID}}}, {"topics": []}])
def test_an_invalid_offset_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is not an offset of a share group's source"):
        from_json(offset)


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        pytest.param([("t", 0, 0, 5, 1), ("t", 0, 5, 9, 1)], [("t", 0, 0, 9, 1)], id="adjacent"),
        pytest.param([("t", 0, 5, 9, 1), ("t", 0, 0, 5, 1)], [("t", 0, 0, 9, 1)], id="in any order"),
        pytest.param([("t", 0, 0, 5, 1), ("t", 0, 5, 9, 2)], None, id="with different delivery counts"),
        pytest.param([("t", 0, 0, 5, 1), ("t", 0, 6, 9, 1)], None, id="with a gap"),
        pytest.param([("t", 0, 0, 5, 1), ("t", 1, 5, 9, 1)], None, id="in two partitions"),
    ],
)
def test_adjacent_ranges_with_equal_delivery_counts_are_merged(
    given: list[tuple[str, int, int, int, int]], joined: list[tuple[str, int, int, int, int]] | None
) -> None:
    assert merged(ranges(*given)) == ranges(*(joined or given))


@given(some_ranges, st.integers(1, 9), st.integers(1, 20))
def test_tasks_cover_each_offset_once(some: tuple[Range, ...], tasks: int, at_least: int) -> None:
    shares = list(split(some, tasks, at_least))
    assert [at for share in shares for at in offsets(share)] == offsets(some)
    assert len(shares) <= tasks
    assert all(sum(at.end - at.first for at in share) >= at_least for share in shares[:-1])


def test_one_task_reads_several_partitions() -> None:
    """Each task has a cost: many small partitions do not make many tasks."""
    several = ranges(*(("t", partition, 0, 10, 1) for partition in range(4)))
    assert list(split(several, 2)) == [several[:2], several[2:]]


def test_several_tasks_read_one_partition() -> None:
    assert list(split(ranges(("t", 0, 0, 100, 1)), 4)) == [
        ranges(("t", 0, first, first + 25, 1)) for first in (0, 25, 50, 75)
    ]


@given(st.integers(0, 9), st.integers(0, 20), st.dictionaries(st.integers(0, 30), st.sampled_from((2, 3))))
def test_runs_keep_the_acknowledge_type_of_each_offset(first: int, size: int, verdicts: dict[int, int]) -> None:
    runs = cut(first, first + size, verdicts, 1)
    found = [(offset, verdict) for low, high, verdict in runs for offset in range(low, high)]
    assert found == [(offset, verdicts.get(offset, 1)) for offset in range(first, first + size)]


NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "a, b", "group.id": "g"}


def test_options_have_defaults() -> None:
    options = parse(NEEDED)
    assert (options.topics, options.group, options.on_failure) == (("a", "b"), "g", "release")
    assert (options.lock_renewal, options.min_partitions, options.max_records) == (True, None, 500_000)


def test_option_names_ignore_case_and_configs_are_passed_on() -> None:
    options = parse({**NEEDED, "MAXRECORDSPERBATCH": "7", "kafka.client.rack": "r1"})
    assert (options.max_records, options.conf["client.rack"]) == (7, "r1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"startingOffsets": "earliest"}, "unknown option 'startingOffsets'", id="unknown"),
        pytest.param({"subscribe": ""}, "option 'subscribe' must be set", id="no topic"),
        pytest.param({"subscribe": " , "}, "must name at least one topic", id="only commas"),
        pytest.param({"group.id": ""}, "option 'group.id' must be set", id="no group"),
        pytest.param({"kafka.bootstrap.servers": ""}, "must be set", id="no address"),
        pytest.param({"maxRecordsPerBatch": "0"}, "option 'maxRecordsPerBatch'='0'", id="no records"),
        pytest.param({"minPartitions": "many"}, "option 'minPartitions'='many'", id="not a number"),
        pytest.param({"lockRenewal": "perhaps"}, "option 'lockRenewal'='perhaps'", id="neither true nor false"),
        pytest.param({"onFailure": "accept"}, "option 'onFailure'='accept'", id="an invalid value"),
        pytest.param({"kafka.no.such.key": "1"}, "no.such.key", id="an unknown config"),
        pytest.param({"kafka.max.poll.records": "5"}, "the source sets it", id="a config that the source sets"),
    ],
)
def test_invalid_options_are_refused_by_name(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse({**NEEDED, **changes})


def test_every_option_is_documented() -> None:
    """What `help(shareq.spark)` shows."""
    table = [line for line in (shareq.spark.__doc__ or "").splitlines() if line[:5].strip() and line.startswith("    ")]
    assert [line.split()[0] for line in table] == [*KNOWN, "kafka.*"]
