"""The options that all tools have in common, and the admin client that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shareq.client.config import CONNECTION_KEYS
from shareq.client.properties import client_properties
from shareq.model.errors import ConfigException, KafkaException, in_words
from shareq.version import __version__

if TYPE_CHECKING:
    from shareq.admin import Admin

DEFAULT_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Connection:
    """The values of the common options. `timeout_s`: the longest time of one call of the admin client."""

    bootstrap_servers: str
    command_config: Path | None
    properties: Mapping[str, str]
    timeout_s: float

    def config(self) -> dict[str, str]:
        """The configuration of a client: the properties of --command-config, those of --command-property, and the
        address."""
        properties = {} if self.command_config is None else client_properties(self.command_config)
        return {**properties, **self.properties, "bootstrap.servers": self.bootstrap_servers}

    def shared_config(self) -> dict[str, str]:
        """The part of the configuration that every kind of client takes, for tools with several of them."""
        return {key: value for key, value in self.config().items() if key in CONNECTION_KEYS}

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        from shareq.admin import Admin  # not at import: the help needs none

        with Admin(self.config()) as admin:
            yield admin


def connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: the options --bootstrap-server, --command-config and --timeout, passed as `connection`; and each error
    as one line."""

    @click.option(
        "--timeout",
        type=click.IntRange(min=1),
        default=DEFAULT_TIMEOUT_MS,
        show_default=True,
        metavar="MS",
        help="The longest time to wait for an answer, in milliseconds.",
    )
    @wraps(command)
    def timed(connection: Connection, *, timeout: int, **options: Any) -> None:
        command(replace(connection, timeout_s=timeout / 1000), **options)

    return client_options(timed)


def client_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator for tools in which --timeout means something else: the options --bootstrap-server, --command-config,
    --command-property and --version."""

    @click.version_option(__version__)
    @click.option("--bootstrap-server", required=True, metavar="HOST:PORT", help="The servers to connect to.")
    @click.option(
        "--command-config",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A properties file with configurations of the client.",
    )
    @click.option(
        "--command-property",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A configuration of the client, which has precedence over the file; repeatable.",
    )
    @wraps(command)
    def connected(
        bootstrap_server: str, command_config: Path | None, properties: tuple[str, ...], **options: Any
    ) -> None:
        with plain_errors():
            given = pairs_of("--command-property", properties)
            command(Connection(bootstrap_server, command_config, given, DEFAULT_TIMEOUT_MS / 1000), **options)

    return connected


def pairs_of(option: str, texts: Iterable[str]) -> dict[str, str]:
    """The keys and values of key=value. UsageError: a text has another form."""
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not key or not sign:
            raise click.UsageError(f"{option} {text}: must be key=value")
        found[key] = value
    return found


@contextmanager
def plain_errors() -> Iterator[None]:
    """Show the errors of arguments, of the system and of Kafka as one line, without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # click ends the command when its output has no reader any more
    except (ConfigException, OSError, ValueError) as problem:
        raise click.ClickException(in_words(problem)) from problem
    except KafkaException as problem:
        error = problem.error
        raise click.ClickException(f"{error.name()}: {error.str()}") from problem
