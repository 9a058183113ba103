"""The broker configurations that an Apache Kafka has. It accepts any other key, and leaves it unused without a word."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping

from shareq.kafka.broker_process import KafkaCommand
from shareq.model.configs import BROKER_CONFIGS
from shareq.model.experiments import ENABLE
from shareq.model.hidden_values import shown
from shareq.model.near_names import did_you_mean

_OF_BOTH = BROKER_CONFIGS.keys() - {ENABLE}
"""Also those that Kafka has and does not list: internal ones, and those of its authorizer."""

_PREFIXES = ("listener.name.", "rsm.config.", "rlmm.config.")
"""The beginnings of keys for one listener, and for the plugins of remote storage."""

_LISTED = re.compile(r'<a id="([\w.-]+)"></a><a id="brokerconfigs_')


def unused_keys(program: KafkaCommand, config: Mapping[str, object]) -> Iterator[str]:
    """A sentence for each key that this Kafka does not have. Its own list is asked for only if a key is not one of
    shareq's: that takes one to two seconds."""
    unsure = [key for key in config if key not in _OF_BOTH and not key.startswith(_PREFIXES)]
    listed = _listed(program) if unsure else set()
    for key in unsure:
        if listed and key not in listed:
            yield (
                f"{key}={shown(key, config[key])}: Apache Kafka {program.jars.version} has no such configuration, "
                f"only a plugin could read it{did_you_mean(key, listed | _OF_BOTH)}"
            )


def _listed(program: KafkaCommand) -> set[str]:
    """The keys in the documentation that Kafka prints; none if it prints none."""
    command = program.tool("kafka.server.KafkaConfig", (), *program.archive.use())
    return set(_LISTED.findall(subprocess.run(command, capture_output=True, text=True, check=False).stdout))
