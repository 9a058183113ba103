"""The source of a function under construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class FunctionSource:
    """Lines of Python, the objects that they refer to, and the indentation of the next line."""

    def __init__(self, header: str, purpose: str) -> None:
        self._lines = [header, f'    """{purpose}"""']
        self._objects: dict[str, Any] = {}
        self._depth = 1
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def begin(self, text: str) -> None:
        """Add a line before all others."""
        self._lines.insert(2, f"    {text}")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A new variable name."""
        self._names += 1
        return f"{stem}{self._names}"

    def bind(self, stem: str, value: Any) -> str:
        """A name that refers to `value` in the function."""
        name = self.fresh(stem)
        self._objects[name] = value
        return name

    def function(self, name: str, helpers: dict[str, Any]) -> Callable[..., Any]:
        """The compiled function. `function.__source__` is its text, so that generated code can be read, too."""
        text = "\n".join(self._lines) + "\n"
        namespace = {**helpers, **self._objects}
        exec(compile(text, f"<{name}>", "exec"), namespace)
        function: Callable[..., Any] = namespace[name]
        vars(function)["__source__"] = text
        return function
