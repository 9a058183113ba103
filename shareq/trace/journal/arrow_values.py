"""Values of Arrow arrays as Python values of the types that the fields of events have, a whole array at a time.

Arrays are shared with numpy as buffers: `to_numpy` and `pyarrow.array` import pandas, which takes a new process a third
of the time that a journal of a million events takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def to_numpy(array: Any) -> NDArray[Any]:
    """The numbers of an array, any number where it has null."""
    import numpy as np

    dtype = np.dtype(str(array.type))
    return (
        np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
        if len(array)
        else np.zeros(0, dtype)
    )


def to_arrow(numbers: NDArray[Any], present: NDArray[Any] | None = None) -> Any:
    """An array of whole numbers; null where `present` is False."""
    import numpy as np
    import pyarrow as pa

    valid = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    kind = getattr(pa, str(numbers.dtype))()
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(np.ascontiguousarray(numbers))])


def to_arrow_text(text: str) -> Any:
    """A text as a scalar."""
    import numpy as np
    import pyarrow as pa

    stored = text.encode()
    ends = pa.py_buffer(np.array([0, len(stored)], np.int32))
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(stored)])[0]


def _nulls(array: Any) -> NDArray[Any]:
    """True where the array has null."""
    import pyarrow as pa

    return to_numpy(array.is_null().cast(pa.int8())).astype(bool)


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
        return None if items is None else _grouped(items, to_numpy(array.value_lengths()).tolist())
    return _rows(array, annotation)


def texts_of(array: Any) -> list[str | None]:
    """The texts of an array, None where it has null."""
    if not len(array):
        return []
    places, texts = coded(array)
    values: list[str | None] = texts[places].tolist()
    return values


def coded(array: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The place of each value among the different ones, and these, of which the last one is None, for nulls."""
    import numpy as np
    import pyarrow as pa

    found = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    values = np.array([*found.dictionary.to_pylist(), None], object)
    places = to_numpy(found.indices)
    if found.indices.null_count:
        places = np.where(_nulls(found.indices), len(values) - 1, places)
    return places, values


def _numbers(array: Any) -> list[int | None]:
    """The numbers of an array, None where it has null."""
    values = to_numpy(array)
    if array.null_count:
        values = values.astype(object)
        values[_nulls(array)] = None
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
    values = iter(to_numpy(numbers).tolist())
    rows = zip(*[values] * width, strict=True)
    return list(rows) if get_origin(annotation) is tuple else list(map(partial(tuple.__new__, annotation), rows))


def _row(annotation: Any) -> tuple[Any, ...]:
    """The types of the values of a tuple of fixed length, named or not; empty for another type."""
    if get_origin(annotation) is tuple:
        return get_args(annotation)
    return tuple(get_type_hints(annotation).values()) if hasattr(annotation, "_fields") else ()
