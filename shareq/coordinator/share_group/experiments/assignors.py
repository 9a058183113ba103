"""All assignors by name, and the one of a group: by the experiment `shareq.assignor`, else by the brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from shareq.coordinator.share_group.assignor import Assignor, AssignorInput, assign_all
from shareq.coordinator.share_group.experiments.cut_assignor import assign_cut, is_even
from shareq.coordinator.share_group.simple_assignor import assign_simple
from shareq.model.image import ClusterImage


class NamedAssignor(NamedTuple):
    """`is_even`: of an assignor that weighs partitions; True if the present targets may stay with these weights."""

    assign: Assignor
    is_even: Callable[[AssignorInput], bool] | None = None

    @property
    def weighs(self) -> bool:
        """True if the targets depend on the weights of partitions."""
        return self.is_even is not None


ASSIGNORS: Mapping[str, NamedAssignor] = {
    "simple": NamedAssignor(assign_simple),
    "all_to_all": NamedAssignor(assign_all),
    "cut": NamedAssignor(assign_cut, is_even),
}


def assignor_name(group_id: str, image: ClusterImage) -> str:
    """The name of the assignor of a group, as in ShareGroupDescribe."""
    experiments = image.group_config(group_id).experiments
    of_brokers: str = image.broker_config["group.share.assignors"]
    return (experiments.assignor if experiments else "") or of_brokers


def assignor_of(group_id: str, image: ClusterImage) -> NamedAssignor:
    """The assignor of a group."""
    return ASSIGNORS[assignor_name(group_id, image)]
