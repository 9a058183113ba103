"""The house: which folders there are, how long a module and a function may be, what a file may not mention."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"shareq", "widgets", "notebooks", "tests", "binder", ".ci"}
FILES = {
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "DIFFERENCES.md",
    "GLOSSARY.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "WORKSHOP.md",
    "environment.yml",
    "pyproject.toml",
    "requirements.lock",
}
MODULE_LINES = 400
FUNCTION_LINES = 60


def project_files() -> list[Path]:
    """The files of the project as git knows them, so that an environment or a cache beside them does not count."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).exists()]


def sources() -> list[Path]:
    return [path for path in project_files() if path.suffix == ".py" and path.parts[0] in {"shareq", "widgets"}]


def test_top_level_has_only_known_files_and_folders() -> None:
    tops = {path.parts[0] for path in project_files()}
    assert tops - FOLDERS - FILES == set()


def test_every_room_has_its_layer() -> None:
    """A room that no contract names would be free of all import rules."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(contract for contract in rules["contracts"] if contract["type"] == "layers")["layers"]
    placed = set(re.findall(r"shareq\.(\w+)", " ".join(layers)))
    rooms = {path.parts[1].removesuffix(".py") for path in sources() if path.parts[0] == "shareq"} - {"__init__"}
    assert rooms - placed == set()


def test_every_module_has_at_most_the_allowed_lines() -> None:
    lengths = {str(path): len((ROOT / path).read_text().splitlines()) for path in sources()}
    assert {path: length for path, length in lengths.items() if length > MODULE_LINES} == {}


def test_every_function_has_at_most_the_allowed_lines() -> None:
    too_long = {
        f"{path}:{node.name}": length
        for path in project_files()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := _lines(node)) > FUNCTION_LINES
    }
    assert too_long == {}


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


# Written so that this file does not find itself.
MACHINE_PATH = re.compile(rb"(?<![\w.*/])/(?:" + b"|".join((b"work", b"root", b"home", b"Users")) + rb")/\w")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(b"see /wo" + b"rk/main", True, id="a checkout"),
        pytest.param(b'"/ro' + b'ot/x.log"', True, id="a home, quoted"),
        pytest.param(b"https://host/wo" + b"rk/x", False, id="part of an address"),
        pytest.param(b"folder/ro" + b"ot/x", False, id="part of a longer path"),
        pytest.param(b"root of the group", False, id="only the word"),
    ],
)
def test_machine_path_is_recognised(text: bytes, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) == found


def test_no_file_contains_a_machine_path() -> None:
    found = [
        (str(path), match.group())
        for path in project_files()
        if (match := MACHINE_PATH.search((ROOT / path).read_bytes()))
    ]
    assert found == []


def test_make_lab_says_what_it_does_and_shows_no_log(tmp_path: Path) -> None:
    """The commands as `make` prints them for a machine without an environment."""
    recipe = ["make", "--dry-run", "lab", f"VENV={tmp_path / 'none'}", f"PYTHON={sys.executable}"]
    lines = subprocess.run(recipe, cwd=ROOT, capture_output=True, check=True, text=True).stdout.splitlines()
    [announced] = [number for number, line in enumerate(lines) if "installing shareq[lab]" in line]
    [moving] = [number for number, line in enumerate(lines) if "uv pip install" in line]
    [lab] = [line for line in lines if "jupyter lab " in line]
    assert announced < moving
    assert "--quiet" not in lines[moving], "its line of progress is shown"
    assert {"--log-level=WARN", "--LabApp.log_level=WARN"} <= set(lab.split())
