"""Ids, keys and the hash that spreads them; the vectors are Java's."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.model.ids import java_hash, partition_for, random_id, topic_id_from_bytes, topic_id_to_bytes

RAW = bytes.fromhex("00112233445566778899aabbccddeeff")
TEXT = "ABEiM0RVZneImaq7zN3u_w"


def test_text_form_of_a_topic_id() -> None:
    assert topic_id_from_bytes(RAW) == TEXT
    assert topic_id_to_bytes(TEXT) == RAW
    assert topic_id_to_bytes(TEXT + "==") == RAW


@pytest.mark.parametrize("text", ["", "ABEi", "not base64 at all!!!!!", TEXT + "AAAA"])
def test_what_is_not_a_topic_id(text: str) -> None:
    with pytest.raises(ValueError, match=r"topic id|base64|padding|Non-base64|Only base64"):
        topic_id_to_bytes(text)


@pytest.mark.parametrize(
    ("key", "hashed", "of_50", "of_3"),
    [
        (f"g1:{TEXT}:3", -1719994315, 15, 1),
        (f"a:b:{TEXT}:0", 537377331, 31, 0),
        (f"日本:{TEXT}:1", 842020246, 46, 1),
        ("", 0, 0, 0),
        ("polygenelubricants", -(1 << 31), 0, 0),
    ],
)
def test_java_hash(key: str, hashed: int, of_50: int, of_3: int) -> None:
    assert java_hash(key) == hashed
    assert (partition_for(key, 50), partition_for(key, 3)) == (of_50, of_3)


def test_java_hash_makes_no_object_for_each_character() -> None:
    """Ten thousand ids of a thousand characters would else take the server for a second."""
    text = "\u65e5" * 32_000
    java_hash(text)
    tracemalloc.start()
    try:
        java_hash(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(text)


@given(st.text(max_size=40) | st.text("a~", min_size=1000, max_size=1100) | st.text("\uffff", max_size=40_000))
def test_java_hash_equals_its_definition(text: str) -> None:
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[at : at + 2], "big")) % (1 << 32)
    assert java_hash(text) == value - (1 << 32 if value >= 1 << 31 else 0)
    assert java_hash(3 * text) == java_hash(text + text + text)


def test_random_ids_are_reproducible_and_distinct() -> None:
    first = [random_id(random.Random(7)) for _ in range(2)]
    assert first[0] == first[1]
    rng = random.Random(7)
    many = [random_id(rng) for _ in range(1000)]
    assert len(set(many)) == 1000
    assert all(len(i) == 22 and not i.startswith("-") for i in many)
