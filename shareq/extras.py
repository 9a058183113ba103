"""Optional dependencies, and the command that installs them."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_CHECKOUT = Path(__file__).parents[1]


def install_command(extra: str, checkout: Path = _CHECKOUT) -> str:
    """The shell command that installs an extra of this package: from `checkout` where that is one, else by name."""
    if (checkout / "pyproject.toml").is_file():
        return f"pip install -e '{checkout}[{extra}]'"
    return f"pip install 'shareq[{extra}]'"


def command_here(program: str = sys.executable) -> str:
    """What a person types for the command `shareq` in the shell of this process: its name if it is on the PATH, else
    the path of the one beside `program`, the running Python."""
    import shutil  # loads all formats of archives

    beside = Path(program).parent / "shareq"
    found = shutil.which("shareq")
    if not beside.is_file() or (found and Path(found).resolve() == beside.resolve()):
        return "shareq"
    with suppress(ValueError):
        beside = beside.relative_to(Path.cwd())
    return shlex.quote(str(beside))


def require(extra: str, *packages: str) -> None:
    """Raise ModuleNotFoundError with the command that installs `extra` if one of its packages is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise missing(extra, ModuleNotFoundError(name=package))


def missing(extra: str, problem: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error of an import that has failed, with the command that installs `extra`; that of a module of this project
    stays as it is."""
    package = (problem.name or "").partition(".")[0]
    if not package or package.startswith("shareq"):
        return problem
    return ModuleNotFoundError(f"the package {package} is missing: {install_command(extra)}", name=package)
