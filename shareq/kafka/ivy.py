"""Downloads Apache Kafka with the Ivy in PySpark's jars: only pip packages are needed, no Maven and no download page.

The source is Maven Central, unless SHAREQ_IVY_SETTINGS names an Ivy settings file or ~/.m2/settings.xml a mirror.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from shareq.extras import install_command
from shareq.jvm import Java, find_java
from shareq.kafka.pinned_jars import is_pinned, unexpected

_log = logging.getLogger("shareq.kafka")

# Kafka's log configuration needs the bridge from SLF4J to Log4j, which is in its release but not in its POMs. Those of
# Kafka 3.9 name a bridge to another library instead.
_BRIDGE = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_EXCLUDED = ("org.slf4j", "slf4j-reload4j")


class IvyFailed(Exception):
    """The download failed; the message continues `... could not be fetched:` with the reason and the remedy."""


class NoRepository(IvyFailed):
    """The download of any release fails like this one."""


def retrieve(version: str, tools: str, folder: Path, cache: Path) -> None:
    """Put the jars of Kafka's broker in `version`, and kafka-tools in version `tools`, which the broker needs, into
    `folder`; shows progress in a terminal or notebook."""
    java, jar = find_java(), _ivy_jar()
    cache.mkdir(parents=True, exist_ok=True)
    (module := cache / "ivy.xml").write_text(_module(version, tools))
    command = [
        *_java_command(java, jar),
        *(
            "-debug",
            "-settings",
            str(_settings(cache)),
            "-ivy",
            str(module),
            "-cache",
            str(cache),
            "-types",
            "jar",
            "bundle",
        ),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            output = _follow(process.stdout, f"Apache Kafka {version}")
            if _missing(output):
                raise _why(output)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise _why(output)
    if unchecked := _without_checksum(output):
        raise IvyFailed(f"the repository publishes no checksum of {', '.join(unchecked)}. Remedy: use another mirror.")
    if wrong := unexpected(version, folder):
        raise IvyFailed(f"{wrong[0]}. Remedy: use another mirror.")
    if not is_pinned(version):
        _log.warning(
            "Apache Kafka %s is not among the releases whose hashes shareq has: its jars were compared with the "
            "checksums that their repository publishes",
            version,
        )


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    found = sorted(Path(str(spec.origin)).parent.glob("jars/ivy-*.jar")) if spec else []
    if not found:
        raise NoRepository(
            f"PySpark, whose Ivy fetches it, is not installed. Run `{install_command('kafka')}`; "
            "or unpack Apache Kafka from kafka.apache.org/downloads and set KAFKA_HOME to its folder."
        )
    return found[-1]


def _module(version: str, tools: str) -> str:
    org = "org.apache.kafka"
    wanted = ((org, "kafka_2.13", version), (org, "kafka-tools", tools), _BRIDGE)
    dependencies = "".join(
        f'<dependency org="{org}" name="{name}" rev="{revision}" conf="default->default"/>'
        for org, name, revision in wanted
    )
    excluded = '<exclude org="{}" module="{}"/>'.format(*_EXCLUDED)
    return (
        '<ivy-module version="2.0"><info organisation="shareq" module="kafka"/>'
        f"<dependencies>{dependencies}{excluded}</dependencies></ivy-module>"
    )


# ---- access to Maven Central -----------------------------------------------------------------------------------------


def _java_command(java: Java, jar: Path) -> list[str]:
    """The command that runs Ivy, with HTTPS_PROXY and NO_PROXY as Java's properties."""
    proxies = getproxies()
    options = []
    if proxy := proxies.get("https"):
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        options += [f"-Dhttps.proxyHost={parts.hostname}", f"-Dhttps.proxyPort={parts.port or 443}"]
    if direct := proxies.get("no"):
        hosts = "|".join(f"*{host}" if host.startswith(".") else host for host in direct.replace(" ", "").split(","))
        options.append(f"-Dhttp.nonProxyHosts={hosts}")
    return [str(java.executable), *options, "-jar", str(jar)]


def _settings(cache: Path) -> Path:
    if chosen := os.environ.get("SHAREQ_IVY_SETTINGS"):
        if not Path(chosen).is_file():
            raise IvyFailed(f"SHAREQ_IVY_SETTINGS={chosen}: the file does not exist.")
        return Path(chosen)
    mirror = _mirror(Path("~/.m2/settings.xml").expanduser())
    root = f" root={quoteattr(mirror)}" if mirror else ""
    settings = cache / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true"{root}/></resolvers></ivysettings>'
    )
    return settings


def _mirror(settings: Path) -> str | None:
    """The first mirror of Maven Central in the user's Maven settings; None if there is none."""
    try:
        tree = ET.parse(settings)  # the user's own file, which Maven parses, too
    except (OSError, ET.ParseError):
        return None
    for mirror in tree.iterfind(".//{*}mirror"):
        of = mirror.findtext("{*}mirrorOf", "").replace(" ", "").split(",")
        blocked = mirror.findtext("{*}blocked", "false").strip() == "true"
        if not blocked and "!central" not in of and {"central", "*", "external:*"} & set(of):
            return mirror.findtext("{*}url", "").strip() or None
    return None


# ---- the output of Ivy ---------------------------------------------------------------------------------------------


def _follow(lines: Iterable[str], title: str) -> str:
    """Read Ivy's output, to its end or to the first module that the repository does not have: Ivy would look for all
    others first. The progress bar's total counts the modules found, its position the jars.
    """
    from tqdm.auto import tqdm

    output = []
    with tqdm(desc=title, unit=" jars", total=0, disable=None) as bar:  # None: hidden unless in a terminal or notebook
        for line in lines:
            output.append(line)
            if line.startswith("\tfound "):
                bar.total += 1
                bar.set_postfix_str(line.split()[1].partition("#")[2], refresh=True)
            elif "[SUCCESSFUL ]" in line:
                bar.update()
            elif _missing(line):
                break
    return "".join(output)


def _missing(output: str) -> list[str]:
    """The modules that the repository does not have."""
    return re.findall(r"\tmodule not found: (\S+)", output)


def _without_checksum(output: str) -> list[str]:
    """The fetched jars that Ivy compared with no published checksum; it fails by itself where they differ."""
    checked = {address.rpartition("/")[2] for address in re.findall(r"(?:sha1|md5) OK for (\S+)", output)}
    fetched = re.findall(r"\[SUCCESSFUL \] \S+;([^\s!]+)!([^\s!]+)\.jar\b", output)
    return sorted({f"{name}-{revision}.jar" for revision, name in fetched} - checked)


def _why(output: str) -> IvyFailed:
    if wrong := re.search(r"(\S+![^\s:]+): invalid (?:sha1|md5): expected=(\S+) computed=(\S+)", output):
        jar, published, computed = wrong.groups()
        return IvyFailed(
            f"{jar} has the checksum {computed}, but {published} is published. Remedy: use another mirror."
        )
    if "PKIX" in output or "SSLHandshakeException" in output:
        return NoRepository(
            "Java does not trust the certificate of Maven Central, as behind a company's proxy. Remedy: name a trust "
            "store with that certificate, JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/path/to/cacerts."
        )
    if "Server access error" in output:
        reasons = re.findall(r"Server access error at url \S+ \((.*)\)", output)
        return NoRepository(
            f"Maven Central cannot be reached ({reasons[0] if reasons else 'no response'}). Remedies: connect to the "
            "network; set HTTPS_PROXY; name a mirror in ~/.m2/settings.xml, or an Ivy settings file in "
            "SHAREQ_IVY_SETTINGS; or unpack Apache Kafka yourself and set KAFKA_HOME to its folder."
        )
    if missing := _missing(output):
        return IvyFailed(f"the repository does not have {', '.join(missing)}. Remedy: choose another version.")
    return IvyFailed("Ivy failed:\n" + "\n".join(output.splitlines()[-12:]))
