"""The API pages: `python -m tests.house.api_pages build/api` writes the public docstrings as HTML, with pdoc.

A warning of pdoc's is an error. With `--without-source` the pages lack the source code, whose colours take most time.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_type_hints

PUBLIC: Final = (
    "shareq",
    "shareq.trace",
    "shareq.kafka",
    "shareq.spark",
    "shareq.sim",
    "shareq.team",
    "shareq.workload",
    "shareq.lessons",
    "shareq_widgets",
)
"""The modules with a page. What they export is public."""


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a module with their objects: `__all__`, or else the names without underscore that the module
    defines itself."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
        yield f"{module.__name__}.{name}", getattr(module, name)


def members(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself."""
    for attribute, value in vars(kind).items():
        described = isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)
        if described and not attribute.startswith("_"):
            yield f"{name}.{attribute}", getattr(kind, attribute)


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every public module, function, class, method and property, by its name."""
    for path in PUBLIC:
        module = import_module(path)
        yield path, module
        for name, value in exported(module):
            if inspect.isclass(value):
                yield name, value
                yield from members(name, value)
            elif inspect.isroutine(value):
                yield name, value


def write(folder: Path, *, source: bool) -> None:
    """Make the pages of all public modules in `folder`."""
    from pdoc import pdoc, render

    render.configure(show_source=source)
    for _, value in public_objects():
        if inspect.isclass(value) and issubclass(value, tuple):  # pdoc looks for their types in the wrong module
            value.__new__.__annotations__ = get_type_hints(value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc(*(argument for path in PUBLIC for argument in (path, f"!{path}[.]")), output_directory=folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]), source="--without-source" not in sys.argv)
    print(f"{sys.argv[1]}/index.html")
