"""Acknowledgements: both modes, commits, the callback, locks and limits, with the same results in all four pairings."""

from __future__ import annotations

from typing import Any

from tests.pairings.stage import Stage, pairing, raised, seen, take_together, until, values
from tests.polling import take

# ---- implicit --------------------------------------------------------------------------------------------------------


@pairing({"first": [("a", 1), ("b", 1)], "second": [("c", 1)], "lag": 0, "left": []})
def test_implicit_mode_accepts_with_the_next_poll(stage: Stage) -> Any:
    stage.create()
    stage.write("a", "b")
    consumer = stage.consumer()
    first = take(consumer, 2)
    stage.write("c")
    second = take(consumer, 1)
    consumer.commit_sync()
    consumer.close()
    return {
        "first": seen(first),
        "second": seen(second),
        "lag": stage.admin.lag(stage.group).total,
        "left": seen(stage.consumer().poll(0.5)),
    }


@pairing({"before": [("a", 1), ("b", 1)], "after": [("a", 2), ("b", 2)]})
def test_close_in_implicit_mode_releases(stage: Stage) -> Any:
    stage.create()
    stage.write("a", "b")
    with stage.consumer() as consumer:
        before = take(consumer, 2)
    return {"before": seen(before), "after": seen(take(stage.consumer(), 2))}


@pairing([{}, {0: None}, {}, {0: None}, {}])
def test_commit_sync_returns_results_of_sent_acknowledgements(stage: Stage) -> Any:
    stage.create()
    consumer = stage.consumer()
    results = [stage.results(consumer.commit_sync())]
    for value in ("a", "b"):
        stage.write(value)
        take(consumer, 1)
        results += [stage.results(consumer.commit_sync()), stage.results(consumer.commit_sync())]
    return results


@pairing([{0: None}, {1: None}, {2: None}])
def test_commit_sync_returns_the_acknowledged_partitions(stage: Stage) -> Any:
    stage.create(partitions=3)
    consumer = stage.consumer()
    results = []
    for partition in range(3):
        stage.write("a", partition=partition)
        take(consumer, 1)
        results.append(stage.results(consumer.commit_sync()))
    return results


# ---- explicit --------------------------------------------------------------------------------------------------------


@pairing({"commit": {0: None}, "again": [("released", 2)], "then": {0: None}, "left": []})
def test_every_acknowledge_type_by_commit_sync(stage: Stage) -> Any:
    """W2: an accepted or rejected record is not delivered again, a released one is."""
    stage.create()
    stage.write_batch("accepted", "released", "rejected")
    consumer = stage.explicit()
    for message, kind in zip(take(consumer, 3), (1, 2, 3), strict=True):
        consumer.acknowledge(message, kind)
    commit = stage.results(consumer.commit_sync())
    again = take(consumer, 1)
    consumer.acknowledge(again[0])
    then = stage.results(consumer.commit_sync())
    return {"commit": commit, "again": seen(again), "then": then, "left": seen(consumer.poll(0.3))}


@pairing([("released", 2)])
def test_every_acknowledge_type_by_the_next_poll(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("accepted", "released", "rejected")
    consumer = stage.explicit()
    for message, kind in zip(take(consumer, 3), (1, 2, 3), strict=True):
        consumer.acknowledge(message, kind)
    return seen(take(consumer, 1))


@pairing({"again": [("b", 2)], "lag": 0})
def test_the_last_acknowledgement_before_the_commit_counts(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b")
    consumer = stage.explicit()
    first, second = take(consumer, 2)
    for message, kind in ((first, 2), (first, 3), (second, 1), (second, 2), (first, 1)):
        consumer.acknowledge(message, kind)
    consumer.commit_sync()
    again = take(consumer, 1)
    consumer.acknowledge(again[0])
    consumer.commit_sync()
    return {"again": seen(again), "lag": stage.admin.lag(stage.group).total}


@pairing([("b", 2)])
def test_records_are_acknowledged_by_offset(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b")
    consumer = stage.explicit()
    take(consumer, 2)
    consumer.acknowledge_offset(stage.topic, 0, 0)
    consumer.acknowledge_offset(stage.topic, 0, 1, stage.client.AcknowledgeType.RELEASE)
    consumer.commit_sync()
    return seen(take(consumer, 1))


@pairing({"poll": "IllegalStateException", "commit": {0: None}, "still": "IllegalStateException", "left": []})
def test_explicit_mode_requires_an_acknowledgement_of_each_record(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b")
    consumer = stage.explicit()
    first, second = take(consumer, 2)
    poll = raised(consumer.poll, 0.1)
    consumer.acknowledge(first)
    commit = stage.results(consumer.commit_sync())
    still = raised(consumer.poll, 0.1)
    consumer.acknowledge(second)
    return {"poll": poll, "commit": commit, "still": still, "left": seen(consumer.poll(0.3))}


@pairing({"before": [("a", 1), ("b", 1), ("c", 1)], "after": [("b", 2), ("c", 2)]})
def test_close_sends_acknowledgements_and_releases_the_rest(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b", "c")
    with stage.explicit() as consumer:
        before = take(consumer, 3)
        consumer.acknowledge(before[0])
        consumer.acknowledge(before[1], 2)
    return {"before": seen(before), "after": seen(take(stage.consumer(), 2))}


@pairing(
    {
        "in implicit mode": "IllegalStateException",
        "twice": "nothing",
        "type 0": "ValueError",
        "type 5": "ValueError",
        "elsewhere": "IllegalStateException",
        "no such offset": "IllegalStateException",
        "negative": "ValueError",
        "after the commit": "IllegalStateException",
        "not a message": "TypeError",
        "a float": "TypeError",
    }
)
def test_invalid_acknowledgements_are_refused(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    with stage.consumer() as implicit:
        (held,) = take(implicit, 1)
        in_implicit_mode = raised(implicit.acknowledge, held)
    consumer = stage.explicit()
    (message,) = take(consumer, 1)
    consumer.acknowledge(message)
    found = {
        "in implicit mode": in_implicit_mode,
        "twice": raised(consumer.acknowledge, message),
        "type 0": raised(consumer.acknowledge, message, 0),
        "type 5": raised(consumer.acknowledge, message, 5),
        "elsewhere": raised(consumer.acknowledge_offset, "elsewhere", 0, 0),
        "no such offset": raised(consumer.acknowledge_offset, stage.topic, 0, 77),
        "negative": raised(consumer.acknowledge_offset, stage.topic, 0, -1),
        "not a message": raised(consumer.acknowledge, "a"),
        "a float": raised(consumer.acknowledge, message, 1.0),
    }
    consumer.commit_sync()
    return found | {"after the commit": raised(consumer.acknowledge, message)}


# ---- the callback ----------------------------------------------------------------------------------------------------


@pairing([({0: [0, 1, 2]}, None)])
def test_the_callback_receives_results_of_commit_async(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b", "c")
    consumer = stage.explicit()
    calls = stage.record_callbacks(consumer)
    for message in take(consumer, 3):
        consumer.acknowledge(message)
    consumer.commit_async()
    until(lambda: calls, consumer)
    return calls


@pairing({"before it returns": [({0: [0, 1]}, None)], "result": {0: None}})
def test_the_callback_runs_before_commit_sync_returns(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b")
    consumer = stage.explicit()
    calls = stage.record_callbacks(consumer)
    for message in take(consumer, 2):
        consumer.acknowledge(message)
    result = stage.results(consumer.commit_sync())
    return {"before it returns": list(calls), "result": result}


@pairing([({0: [0, 1]}, None), ({0: [2]}, None)])
def test_the_callback_receives_results_of_acknowledgements_sent_by_polls(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b")
    consumer = stage.consumer()
    calls = stage.record_callbacks(consumer)
    take(consumer, 2)
    until(lambda: calls, consumer)
    stage.write("c")
    take(consumer, 1)
    until(lambda: len(calls) == 2, consumer)
    return calls


@pairing([({0: [0]}, None)])
def test_the_callback_receives_results_of_acknowledgements_sent_by_close(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b")
    consumer = stage.explicit()
    calls = stage.record_callbacks(consumer)
    consumer.acknowledge(take(consumer, 2)[0])
    consumer.close()
    return calls


@pairing({"commit": "ZeroDivisionError", "inside": "IllegalStateException", "afterwards": [("b", 1)]})
def test_an_exception_of_the_callback_is_raised_by_the_call(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    consumer = stage.explicit()
    inside: list[str] = []

    def fail(offsets: object, error: object) -> None:
        inside.append(raised(consumer.commit_sync))
        raise ZeroDivisionError

    consumer.set_acknowledgement_commit_callback(fail)
    consumer.acknowledge(take(consumer, 1)[0])
    commit = raised(consumer.commit_sync)
    consumer.set_acknowledgement_commit_callback(None)
    stage.write("b")
    return {"commit": commit, "inside": inside[0], "afterwards": seen(take(consumer, 1))}


# ---- locks and limits ------------------------------------------------------------------------------------------------

# On a machine that stalls, a lock of a second may run out before the client has the record: its next delivery counts.


@pairing({"deliveries between": 1, "late": {0: "INVALID_RECORD_STATE"}, "in time": {0: None}})
def test_acknowledgement_after_the_lock_expired_is_refused(stage: Stage) -> Any:
    stage.create(share_record_lock_duration_ms=1000)
    stage.write("a")
    slow = stage.explicit()
    (message,) = take(slow, 1)
    stage.lengthen_locks()
    quick = stage.explicit()
    (again,) = take(quick, 1)
    slow.acknowledge(message)
    late = stage.results(slow.commit_sync())
    quick.acknowledge(again)
    between = again.delivery_count() - message.delivery_count()
    return {"deliveries between": between, "late": late, "in time": stage.results(quick.commit_sync())}


@pairing({"calls": [({0: [0]}, "INVALID_RECORD_STATE")], "deliveries between": 1})
def test_the_callback_receives_the_error_of_an_expired_lock(stage: Stage) -> Any:
    stage.create(share_record_lock_duration_ms=1000)
    stage.write("a")
    slow = stage.explicit()
    calls = stage.record_callbacks(slow)
    (message,) = take(slow, 1)
    stage.lengthen_locks()
    (again,) = take(stage.explicit(), 1)
    slow.acknowledge(message)
    slow.commit_async()
    until(lambda: calls, slow)
    return {"calls": calls, "deliveries between": again.delivery_count() - message.delivery_count()}


@pairing({"seen": [("poison", 1), ("good", 1), ("poison", 2), ("poison", 3)], "left": [], "lag": 0})
def test_a_record_is_delivered_up_to_the_limit(stage: Stage) -> Any:
    stage.create(share_delivery_count_limit=3)
    stage.write_batch("poison", "good")
    consumer = stage.explicit()
    found: list[Any] = []
    while len(found) < 4:
        for message in take(consumer, 1):
            found.append(message)
            consumer.acknowledge(message, 2 if message.value() == b"poison" else 1)
        consumer.commit_sync()
    left = seen(consumer.poll(0.5))
    return {"seen": seen(found), "left": left, "lag": stage.admin.lag(stage.group).total}


@pairing({"held": 100, "behind": 0, "after": list(range(100, 150))})
def test_the_number_of_locked_records_is_limited(stage: Stage) -> Any:
    stage.create(share_partition_max_record_locks=100)
    for start in range(0, 150, 50):
        stage.write_batch(*map(str, range(start, start + 50)))
    first = stage.explicit()
    held = take_together(first, 100)
    second = stage.consumer()
    behind = len(second.poll(1))
    for message in held:
        first.acknowledge(message)
    first.commit_sync()
    return {"held": len(held), "behind": behind, "after": [int(value) for value in values(take(second, 50))]}
