"""The lock of Pyodide's packages for the site: what it serves itself, and everything else from Pyodide's own server.

Pyodide loads a package when a cell imports it, with all packages on which it depends, and checks their hashes. The
module `pyodide_lock` on PyPI makes such locks, too, but not of this version of Pyodide: it asks for a field that the
lock has no more, and knows no wheels tagged as PEP 783 has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from email import message_from_bytes
from email.message import Message
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FRONT_END: Final = {"jupyterlab-widgets"}
"""Requirements of packages that are no Python in the browser, but part of JupyterLab."""


def locked(pyodide: Path, wheels: Iterable[Path], server: str, more: Mapping[str, list[str]]) -> dict[str, Any]:
    """The lock in the folder `pyodide` with these wheels in place of its own packages of these names.

    The wheels are in the folder of the lock when it is used; all other packages are on `server`, an address. `more`:
    requirements of a package beyond those that its wheel states, by its name.
    ValueError for a requirement that is in neither.
    """
    lock: dict[str, Any] = json.loads((pyodide / "pyodide-lock.json").read_text())
    packages = lock["packages"]
    for package in packages.values():
        package["file_name"] = f"{server}/{package['file_name']}"
    metadata = {wheel: _metadata(wheel) for wheel in wheels}
    names = {wheel: canonicalize_name(found["Name"]) for wheel, found in metadata.items()}
    known = {canonicalize_name(name) for name in packages} | set(names.values())
    environment = _environment(lock["info"]["python"])
    for wheel, name in names.items():
        stated = [Requirement(text) for text in metadata[wheel].get_all("Requires-Dist", [])]
        needed = [one for one in stated if one.marker is None or one.marker.evaluate(environment)]
        depends = {canonicalize_name(one.name) for one in needed} - FRONT_END | set(more.get(name, ()))
        if missing := depends - known:
            raise ValueError(f"{name} requires {', '.join(sorted(missing))}: not in the lock")
        packages[name] = _entry(wheel, name, metadata[wheel]["Version"], sorted(depends))
    return lock


def _entry(wheel: Path, name: str, version: str, depends: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "file_name": wheel.name,
        "sha256": sha256(wheel.read_bytes()).hexdigest(),
        "install_dir": "site",
        "package_type": "package",
        "imports": _modules(wheel),
        "depends": depends,
        "unvendored_tests": False,
    }


def _metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def _modules(wheel: Path) -> list[str]:
    """The modules and packages at the top of a wheel."""
    with ZipFile(wheel) as archive:
        parts = [Path(name).parts for name in archive.namelist() if name.endswith((".py", ".so"))]
    tops = {found[0].partition(".")[0] for found in parts if "." not in found[0] or len(found) == 1}
    return sorted(tops)


def _environment(python: str) -> dict[str, str]:
    """The environment of PEP 508's markers in Pyodide."""
    return {
        "extra": "",
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": "wasm32",
        "platform_python_implementation": "CPython",
        "platform_system": "Emscripten",
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "emscripten",
    }
