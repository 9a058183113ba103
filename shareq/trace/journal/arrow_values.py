"""Values of Arrow arrays as Python values of the types that the fields of events have, a whole array at a time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


def arrow_type(annotation: Any) -> Any:
    """The Arrow type of the JSON form of a field; None if it has none, as a tuple of different types."""
    import pyarrow as pa

    scalars = {int: pa.int64(), str: pa.string(), bool: pa.bool_()}
    if annotation in scalars:
        return scalars[annotation]
    arguments = get_args(annotation)
    if get_origin(annotation) is UnionType:
        inner = [argument for argument in arguments if argument is not NoneType]
        return arrow_type(inner[0]) if len(inner) == 1 and inner[0] in scalars else None
    if get_origin(annotation) is tuple and arguments[-1] is Ellipsis:
        item = arrow_type(arguments[0])
        return None if item is None else pa.list_(item)
    return pa.list_(pa.int64()) if set(_row(annotation)) == {int} else None


def python_values(array: Any, annotation: Any, *, optional: bool = False) -> list[Any] | None:
    """The values of an array; None if one is null and not `optional`, or does not fit. Equal texts are one object."""
    if array.null_count and not optional:
        return None
    if annotation is str:
        return texts_of(array)
    if annotation is int:
        return _numbers(array)
    if annotation is bool:
        return list(array.to_pylist())
    if get_origin(annotation) is tuple and get_args(annotation)[-1] is Ellipsis:
        items = python_values(array.flatten(), get_args(annotation)[0])
        return None if items is None else _grouped(items, array.value_lengths().to_numpy().tolist())
    return _rows(array, annotation)


def texts_of(array: Any) -> list[str | None]:
    """The texts of an array, None where it has null."""
    import numpy as np
    import pyarrow as pa

    if not len(array):
        return []
    found = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    texts = np.array([*found.dictionary.to_pylist(), None], object)
    values: list[str | None] = texts[found.indices.fill_null(len(texts) - 1).to_numpy()].tolist()
    return values


def _numbers(array: Any) -> list[int | None]:
    """The numbers of an array, None where it has null."""
    values = array.fill_null(0).to_numpy()
    if array.null_count:
        values = values.astype(object)
        values[array.is_null().to_numpy(zero_copy_only=False)] = None
    numbers: list[int | None] = values.tolist()
    return numbers


def _grouped(items: Iterable[Any], lengths: list[int]) -> list[tuple[Any, ...]]:
    """The items as tuples of these lengths."""
    rest = iter(items)
    return [tuple(islice(rest, length)) for length in lengths]


def _rows(array: Any, annotation: Any) -> list[Any] | None:
    """Lists of whole numbers as tuples of the annotated type; None if one has another length."""
    width = len(_row(annotation))
    numbers = array.flatten()
    if numbers.null_count or set(array.value_lengths().unique().to_pylist()) - {width}:
        return None
    values = iter(numbers.to_numpy().tolist())
    rows = zip(*[values] * width, strict=True)
    return list(rows) if get_origin(annotation) is tuple else list(map(partial(tuple.__new__, annotation), rows))


def _row(annotation: Any) -> tuple[Any, ...]:
    """The types of the values of a tuple of fixed length, named or not; empty for another type."""
    if get_origin(annotation) is tuple:
        return get_args(annotation)
    return tuple(get_type_hints(annotation).values()) if hasattr(annotation, "_fields") else ()
