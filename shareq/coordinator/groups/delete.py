"""DeleteGroups: a group of any type with its offsets; of a share group, its share-partitions first.
Source: KIP-932, "Deleting share groups"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

from shareq.coordinator.groups.context import Context
from shareq.coordinator.groups.group import Group
from shareq.coordinator.other.offsets.delete import all_offset_tombstones
from shareq.coordinator.share_group.delete import all_partitions, delete_request, verdicts_of
from shareq.coordinator.share_group.partitions import union
from shareq.coordinator.share_group.records import encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.coordinator.turn import Append, itself
from shareq.model.errors import Errors
from shareq.model.events import GroupDeleted
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse
from shareq.model.messages.share_state import DeleteShareGroupStateResponse
from shareq.model.workflow import Reply, SendToPersister, Workflow


def delete_groups(context: Context, request: DeleteGroupsRequest) -> Workflow[DeleteGroupsResponse]:
    """DeleteGroups: each group separately. A group that a member joins meanwhile is not deleted."""
    errors = yield [_delete_group(context, group_id) for group_id in request.groups_names]
    result = DeleteGroupsResponse.Result
    named = zip(request.groups_names, errors, strict=True)
    return DeleteGroupsResponse(results=tuple(result(group_id=group_id, error_code=error) for group_id, error in named))


def _delete_group(context: Context, group_id: str) -> Workflow[Errors]:
    """Delete the group's share-partitions at the persister, then its records, unless a member has joined meanwhile."""
    shard = yield context.turn(group_id, itself)
    group = shard.groups.get(group_id)
    error = _refuse_delete(group)
    if error:
        return error
    if isinstance(group, ShareGroup) and group.share_partitions is not None:
        known, image = group.share_partitions, context.image
        going = union(all_partitions(known.deleting, image), known.known())
        left = known.delete_all(image)
        failed: Errors = yield Append([encode(group_id, left.to_value(image))])
        if failed:
            return failed
        deleted = {topic: parts for topic, parts in going.items() if topic in left.deleting}
        if deleted:
            error = _deletion_error((yield SendToPersister(delete_request(group_id, deleted))))
            if error:
                return error
    shard = yield context.turn(group_id, itself)
    group = shard.groups.get(group_id)
    error = _refuse_delete(group)
    if error or group is None:
        return error
    failed = yield Append([*all_offset_tombstones(shard.offsets, group_id), *group.tombstones()])
    if not failed:
        context.trace(GroupDeleted(group_id))
    return failed


def _refuse_delete(group: Group | None) -> Errors:
    return Errors.GROUP_ID_NOT_FOUND if group is None else group.refuse_delete()


def _deletion_error(reply: Reply) -> Errors:
    """The first error, of the whole response or of a topic."""
    if not isinstance(reply.response, DeleteShareGroupStateResponse):
        return reply.error or Errors.UNKNOWN_SERVER_ERROR
    failed = (error for error, _ in verdicts_of(reply.response).values() if error)
    return next(failed, Errors.NONE)
