"""Operations on share groups: list, describe, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import Operation
from shareq.admin.results import Done, GroupListing, GroupListings, MemberDescription, Results, ShareGroupDescription
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, KafkaError
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse, ListGroupsRequest
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def list_groups(routing: BrokerRouting, types: Sequence[str], states: Sequence[str]) -> Operation[GroupListings]:
    """The groups of all brokers that answer in time, and the errors of the other brokers."""
    request = ListGroupsRequest(types_filter=tuple(types), states_filter=tuple(states))
    responses, errors = yield from routing.every_broker(request)
    found: dict[str, GroupListing] = {}
    for response in responses:
        for group in response.groups:
            found[group.group_id] = GroupListing(
                group_id=group.group_id,
                type=group.group_type,
                protocol=group.protocol_type,
                state=group.group_state,
            )
    return GroupListings(found, errors)


def describe_share_groups(
    routing: BrokerRouting, groups: Sequence[str]
) -> Operation[Results[str, ShareGroupDescription]]:
    def results_of(response: ShareGroupDescribeResponse) -> Iterable[tuple[str, Errors, str | None, Any]]:
        return [(group.group_id, group.error_code, group.error_message, group) for group in response.groups]

    done = yield from routing.by_coordinator(
        groups, lambda names: ShareGroupDescribeRequest(group_ids=names), results_of
    )
    return Results({group: _description(group, *done[group]) for group in dict.fromkeys(groups)})


def _description(
    group_id: str, error: KafkaError | None, found: ShareGroupDescribeResponse.DescribedGroup | None, node: int
) -> ShareGroupDescription:
    return ShareGroupDescription(
        group_id=group_id,
        state=found.group_state if found else "",
        coordinator=node,
        group_epoch=found.group_epoch if found else 0,
        assignment_epoch=found.assignment_epoch if found else 0,
        assignor=found.assignor_name if found else "",
        members=tuple(_member(member) for member in found.members) if found else (),
        error=error,
    )


def _member(member: ShareGroupDescribeResponse.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        topics=member.subscribed_topic_names,
        assignment=tuple(
            TopicPartition(assigned.topic_name, index)
            for assigned in member.assignment.topic_partitions
            for index in assigned.partitions
        ),
    )


def delete_share_groups(routing: BrokerRouting, groups: Sequence[str]) -> Operation[Results[str, Done]]:
    def results_of(response: DeleteGroupsResponse) -> Iterable[tuple[str, Errors, str | None, Any]]:
        return [(result.group_id, result.error_code, None, None) for result in response.results]

    done = yield from routing.by_coordinator(groups, lambda names: DeleteGroupsRequest(groups_names=names), results_of)
    return Results({group: Done(name=group, error=done[group][0]) for group in dict.fromkeys(groups)})
