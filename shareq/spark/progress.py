"""What a long command shows of its progress: a bar in a terminal or a notebook, and lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Step = Callable[[str], None]
"""Begins a step of this name; the step before it has ended."""


@contextmanager
def steps_shown(
    total: int, *, shown: bool, stream: TextIO | None = None, clock_s: Callable[[], float] = time.monotonic
) -> Iterator[Step]:
    """Show `total` steps on `stream`; None: the standard error. A stream that is no terminal, such as the log of a
    build, gets a line when a step begins, with the time of the step before it, and no carriage returns."""
    stream = stream or sys.stderr
    if not shown:
        yield lambda _: None
    elif stream.isatty() or "ipykernel" in sys.modules:
        with _bar(total) as begin:
            yield begin
    else:
        with _lines(total, stream, clock_s) as begin:
            yield begin


@contextmanager
def _bar(total: int) -> Iterator[Step]:
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=" steps") as bar:

        def begin(name: str) -> None:
            bar.set_description(f"{name:<12}")
            bar.update(bar.n < total)

        yield begin
        bar.update(total - bar.n)


@contextmanager
def _lines(total: int, stream: TextIO, clock_s: Callable[[], float]) -> Iterator[Step]:
    began_s, begun = clock_s(), 0
    before = ""

    def end() -> None:
        nonlocal began_s
        now_s = clock_s()
        if before:
            print(f"{begun}/{total} {before}: {now_s - began_s:.1f} s", file=stream, flush=True)
        began_s = now_s

    def begin(name: str) -> None:
        nonlocal begun, before
        end()
        begun, before = min(begun + 1, total), name
        print(f"{begun}/{total} {name} ...", file=stream, flush=True)

    yield begin
    end()
