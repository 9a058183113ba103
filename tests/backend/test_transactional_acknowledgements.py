"""Acknowledgements in a transaction are refused on a backend: its markers do not reach the share coordinators here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shareq import Cluster, KafkaException, Producer, view
from shareq.kafka import LocalKafka
from shareq.model.experiments import ENABLE
from tests.backend.stage import CONFIG, GROUP, Stage
from tests.polling import take


def test_they_are_refused_and_the_records_stay_acquired(kafka: LocalKafka, fresh: Callable[[str], str]) -> None:
    stage = Stage(kafka, fresh)
    with stage.stack:
        cluster = stage.stack.enter_context(Cluster(backend=kafka.bootstrap_servers, config={**CONFIG, ENABLE: True}))
        cluster.create_topic(stage.topic)
        cluster.configure_group(stage.group, GROUP)
        stage.produce("1", "2")
        consumer = stage.consumer(cluster)
        held = take(consumer, 2)
        producer = stage.stack.enter_context(
            Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": fresh("transaction")})
        )
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(KafkaException, match="experiments") as refused:
            producer.send_share_acknowledgements_to_transaction(held, consumer.share_group_metadata())
        assert refused.value.error.name() == "UNSUPPORTED_VERSION"
        producer.abort_transaction()
        assert view(cluster, stage.group, stage.topic).snapshot()["text"] == "SPSO 0 | A A | SPEO 1"
