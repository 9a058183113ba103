"""Optional dependencies: the command that installs them, and the calls that need them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from shareq.extras import command_here, install_command, require
from shareq.sim import Scenario, run, sweep
from shareq.trace import Journal, attempts, lag_plot, ledger, metrics, raster, state_diagram
from tests.trace.histories import GROUP, TOPIC, random_history

ROOT = Path(__file__).parents[1]


def test_an_installed_package_names_its_extra(tmp_path: Path) -> None:
    assert install_command("kafka", tmp_path) == "pip install 'shareq[kafka]'"


def test_a_checkout_is_installed_from_its_folder() -> None:
    assert install_command("spark") == f"pip install -e '{ROOT}[spark]'"


def test_a_command_that_is_not_on_the_path_is_called_by_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    python, command = folder / "python", folder / "shareq"
    monkeypatch.setenv("PATH", str(folder))
    assert command_here(str(python)) == "shareq", "there is none beside this Python"
    command.touch(0o755)
    assert command_here(str(python)) == "shareq"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_here(str(python)) == str(command)
    monkeypatch.chdir(tmp_path)
    assert command_here(str(python)) == ".venv/bin/shareq"


@pytest.mark.parametrize("extra", ["kafka", "lab", "spark"])
def test_the_extra_exists(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]


JOURNAL = [journal for journal, _ in random_history(Random(1), 40)][-1]
FEW = Scenario(records=20, consumers=1)


@pytest.mark.parametrize(
    ("package", "call"),
    [
        pytest.param("matplotlib", lambda folder: raster(JOURNAL, GROUP, TOPIC), id="a raster"),
        pytest.param("matplotlib", lambda folder: lag_plot(JOURNAL, GROUP), id="a lag plot"),
        pytest.param("matplotlib", lambda folder: state_diagram(), id="a state diagram"),
        pytest.param("numpy", lambda folder: raster(JOURNAL, GROUP, TOPIC), id="the samples of a raster"),
        pytest.param("numpy", lambda folder: ledger(JOURNAL, GROUP, TOPIC), id="a ledger"),
        pytest.param("numpy", lambda folder: attempts(JOURNAL, GROUP, TOPIC), id="attempts"),
        pytest.param("numpy", lambda folder: run(FEW, 1), id="a simulation"),
        pytest.param("pandas", lambda folder: metrics(JOURNAL).to_frame(), id="metrics as a DataFrame"),
        pytest.param("pandas", lambda folder: ledger(JOURNAL, GROUP, TOPIC).to_frame(), id="a ledger as a DataFrame"),
        pytest.param("pyarrow", lambda folder: JOURNAL.to_parquet(folder / "j"), id="writing Parquet"),
        pytest.param("pyarrow", lambda folder: Journal.from_parquet(folder / "j"), id="reading Parquet"),
        pytest.param("pyarrow", lambda folder: sweep({"consumers": [1]}, 1, FEW, progress=False), id="a sweep"),
        pytest.param("tqdm", lambda folder: sweep({"consumers": [1]}, 1, FEW, progress=False), id="its progress"),
    ],
)
def test_a_call_names_the_package_that_is_missing(
    package: str, call: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = f"the package {package} is missing: {install_command('lab')}"
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(message)}$") as raised:
        call(tmp_path)
    assert raised.value.name == package


@pytest.mark.parametrize("package", ["anywidget", "traitlets"])
def test_the_widgets_name_the_command_that_installs_them(package: str) -> None:
    """In a process of its own, because the widgets are loaded in this one."""
    code = f"import sys; sys.modules[{package!r}] = None; from shareq_widgets import strip"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == f"ModuleNotFoundError: the package {package} is missing: {install_command('lab')}"


def test_what_is_installed_is_not_missing() -> None:
    require("lab", "numpy", "pytest")
