"""UpdateFeatures: share.version is switched while the cluster runs. Rules: BEHAVIOUR.md, 2.16."""

from __future__ import annotations

import pytest

from shareq import Admin, Cluster
from shareq.model.errors import Errors, KafkaException
from shareq.model.events import StateWritePrepared
from tests.broker.test_dead_letters import Orders
from tests.pairings.dead_letters import REJECT

SHARE = "share.version"


def refused(admin: Admin, levels: dict[str, int], *, downgrade: bool = False) -> int:
    """The code of the error with which the update is refused."""
    with pytest.raises(KafkaException) as raised:
        admin.update_features(levels, downgrade=downgrade)
    return int(raised.value.args[0].code())


@pytest.mark.parametrize(
    ("levels", "downgrade"),
    [
        pytest.param({SHARE: 1}, False, id="a downgrade sent as an upgrade"),
        pytest.param({SHARE: 3}, False, id="above the range"),
        pytest.param({"colour": 1}, False, id="no such feature"),
        pytest.param({"group.version": 0}, True, id="a fixed feature"),
        pytest.param({SHARE: 1, "colour": 1}, True, id="one of two"),
    ],
)
def test_a_refused_update_changes_nothing(levels: dict[str, int], downgrade: bool) -> None:
    with Cluster(brokers=1) as cluster, Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        assert refused(admin, levels, downgrade=downgrade) == Errors.INVALID_UPDATE_VERSION
        assert cluster.image.share_version == 2


def test_an_upgrade_sent_as_a_downgrade_is_refused() -> None:
    with Cluster(brokers=1) as cluster, Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.update_features({SHARE: 1}, downgrade=True)
        assert refused(admin, {SHARE: 2}, downgrade=True) == Errors.INVALID_UPDATE_VERSION


def test_an_update_can_be_tried() -> None:
    with Cluster(brokers=1) as cluster, Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.update_features({SHARE: 0}, downgrade=True, validate_only=True)
        assert cluster.image.share_version == 2


def test_example_27_the_queue_comes_and_goes_with_share_version_2() -> None:
    """Nothing is loaded anew: it takes effect at the next transition."""
    orders = Orders()
    with orders.cluster, Admin(orders.conf) as admin:
        orders.create_queue()
        orders.ten()
        admin.update_features({SHARE: 1}, downgrade=True)
        orders.acknowledge(REJECT, 0)
        orders.cluster.advance(100)
        assert orders.written() == ["0 0-0/4/1 1"]
        admin.update_features({SHARE: 2})
        orders.acknowledge(REJECT, 1)
        orders.cluster.advance(100)
        assert orders.written()[1:] == ["1 1-1/3/1 0", "1 1-1/4/1 1"]
        admin.update_features({SHARE: 1}, downgrade=True)
        orders.acknowledge(REJECT, 2)
        orders.cluster.advance(100)
        assert orders.written()[3:] == ["2 2-2/4/1 1"]
        assert orders.offsets == [1]
        assert len(orders.events(StateWritePrepared)) == 4


def test_share_groups_are_switched_off_and_on() -> None:
    orders = Orders()
    with orders.cluster, Admin(orders.conf) as admin:
        orders.ten()
        orders.consumer.close()
        admin.update_features({SHARE: 0}, downgrade=True)
        orders.consumer = orders.join()
        with pytest.raises(KafkaException):
            orders.consumer.poll(5)
        admin.update_features({SHARE: 2})
        orders.consumer = orders.join()
        assert orders.take(10) == list(range(10))
