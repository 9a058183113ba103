"""What a process on a backend answers itself: share groups, their durable state, their configurations.

BEHAVIOUR.md, section 5. A request that names both share groups and others is answered in parts, here and there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from shareq.broker.alter_configs import alter_configs, incremental_alter_configs
from shareq.broker.backend.group_answers import listed_groups, listed_resources, with_backend_epochs
from shareq.broker.backend.group_configs import SHARD, GroupConfigs
from shareq.broker.backend.group_types import joins_other_group, joins_share_group, refusal_at_backend, refusal_here
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.refused_writes import merged, refused_parts
from shareq.broker.backend.state_topic import joins_session
from shareq.broker.backend.topic_changes import shown
from shareq.broker.configs import describe_configs
from shareq.broker.controller import Changes
from shareq.broker.host import Host
from shareq.broker.placement import ErrorWithMessage
from shareq.broker.user_credentials import no_authentication
from shareq.coordinator.share_state import find_share_coordinator
from shareq.model.actor import Answer, ClientContext, Incoming, Respond
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import (
    CoordinatorType,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
)
from shareq.model.messages.describe import ListConfigResourcesRequest
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)

Done = Callable[[Answer], object]
Forward = Callable[[Request, Done], None]

_OF_GROUPS = (
    ShareGroupHeartbeatRequest,
    ShareGroupDescribeRequest,
    DescribeShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
)
_OF_STATES = (
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    WriteShareGroupStateRequest,
    DeleteShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
)
OF_SHARE_GROUPS = (ShareFetchRequest, ShareAcknowledgeRequest, *_OF_GROUPS, *_OF_STATES)
"""What only a process answers that leads the share-partition or the shard."""

PROCESS = ClientContext(client_id="shareq-process")
"""The sender of what processes ask each other."""


class Exchanges:
    """Requests to an actor of this process, and the calls for their responses."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._open: dict[int, Callable[[Response], object]] = {}

    def ask(self, host: Host, request: Request, client: ClientContext, done: Callable[[Response], object]) -> None:
        """Deliver a request to the actor; `done` gets its response."""
        number = next(self._ids)
        self._open[number] = done
        host.deliver(Incoming(number, request, client))

    def respond(self, host: Host, effect: Respond) -> None:
        """Carry out an actor's `Respond`."""
        del host
        self._open.pop(effect.id)(effect.response)


class Services:
    """Answers the requests of this process's part; `image` is read at each request. `ask_leader(group, request, done)`
    asks the process that leads the shard of a share group."""

    def __init__(
        self,
        groups: Host,
        states: Host,
        configs: GroupConfigs,
        exchanges: Exchanges,
        *,
        mirror: MetadataMirror,
        ask_leader: Callable[[str, Request, Done], object],
    ) -> None:
        self._ask_leader = ask_leader
        self._groups = groups
        self._states = states
        self._configs = configs
        self._exchanges = exchanges
        self._mirror = mirror
        self._special: dict[type[Request], Callable[[Any, ClientContext, Done, Forward], None]] = {
            FindCoordinatorRequest: self._find_coordinator,
            ListGroupsRequest: self._list_groups,
            ListConfigResourcesRequest: self._list_config_resources,
            DeleteGroupsRequest: self._delete_groups,
            DescribeConfigsRequest: self._describe_configs,
            IncrementalAlterConfigsRequest: self._alter_configs,
            AlterConfigsRequest: self._alter_configs,
            SaslHandshakeRequest: self._refuse_login,
            SaslAuthenticateRequest: self._refuse_login,
            FetchRequest: self._fetch,
        }

    @property
    def _image(self) -> ClusterImage:
        return self._configs.image

    def serve(self, request: Request, client: ClientContext, done: Done, forward: Forward) -> None:
        """Answer a request here, or in part, or not at all: `forward` sends a request to the backend. What would change
        internal topics is refused."""
        configs = self._mirror.place(SHARD)
        rest, refusal = refused_parts(request, self._image, configs.topic_id if configs else None)
        if refusal is None:
            self._serve(request, client, done, forward)
        elif rest is None:
            done(Answer(0, refusal))
        else:
            self._serve(rest, client, partial(_merge, request, refusal, done), forward)

    def _serve(self, request: Request, client: ClientContext, done: Done, forward: Forward) -> None:
        special = self._special.get(type(request))
        if joins_share_group(request):
            refusal_here(request, forward, lambda no: self._unless(no, done, self._ask, self._groups, request, client))
        elif joins_other_group(request):
            refusal_at_backend(request, self._ask_leader, lambda no: self._unless(no, done, forward, request))
        elif isinstance(request, _OF_GROUPS):
            self._ask(self._groups, request, client, done)
        elif isinstance(request, _OF_STATES):
            self._ask(self._states, request, client, done)
        elif special is not None:
            special(request, client, done, forward)
        else:
            forward(request, partial(self._when_shown, request, done))

    def _when_shown(self, request: Request, done: Done, answer: Answer) -> None:
        """Answer a change of topics when the image shows it."""
        test = shown(request, answer.response)
        if test is None:
            done(answer)
        else:
            self._mirror.when(test, lambda: done(answer))

    def _unless(self, refusal: Response | None, done: Done, serve: Callable[..., None], *args: Any) -> None:
        if refusal is None:
            serve(*args, done)
        else:
            done(Answer(0, refusal))

    def _ask(self, host: Host, request: Request, client: ClientContext, done: Done) -> None:
        def answered(response: Response) -> None:
            done(Answer(0, with_backend_epochs(response, self._image)))

        self._exchanges.ask(host, request, client, answered)

    @staticmethod
    def _fetch(request: FetchRequest, client: ClientContext, done: Done, forward: Forward) -> None:
        """A client that adds the state topic by its name in the backend to a session begins another one."""
        del client
        if joins_session(request):
            done(Answer(0, FetchResponse(error_code=Errors.FETCH_SESSION_ID_NOT_FOUND)))
        else:
            forward(request, done)

    @staticmethod
    def _refuse_login(
        request: SaslHandshakeRequest | SaslAuthenticateRequest, client: ClientContext, done: Done, forward: Forward
    ) -> None:
        """The connection to the backend is not the client's: its login must not change."""
        del client, forward
        done(Answer(0, no_authentication(request)))

    # ---- groups ------------------------------------------------------------------------------------------------------

    def _find_coordinator(
        self, request: FindCoordinatorRequest, client: ClientContext, done: Done, forward: Forward
    ) -> None:
        """Share coordinators are here; all others, also those of share groups, are the backend's choice: every broker
        of this process answers for all share groups. While the backend does not answer, the client gets an error that
        it may retry: the end of its connection would end its share session, and with it the locks of its records."""
        del client

        def found_there(answer: Answer) -> None:
            if answer.response is None and answer.error.retriable:
                unknown = partial(FindCoordinatorResponse.Coordinator, error_code=Errors.COORDINATOR_NOT_AVAILABLE)
                coordinators = tuple(unknown(key=key) for key in request.coordinator_keys)
                answer = Answer(0, FindCoordinatorResponse(coordinators=coordinators))
            done(answer)

        if request.key_type != CoordinatorType.SHARE:
            forward(request, found_there)
            return
        if SHARE_STATE_TOPIC not in self._image.topics:
            self._mirror.create(SHARE_STATE_TOPIC)
        found = tuple(find_share_coordinator(key, self._image) for key in request.coordinator_keys)
        done(Answer(0, FindCoordinatorResponse(coordinators=found)))

    def _list_groups(self, request: ListGroupsRequest, client: ClientContext, done: Done, forward: Forward) -> None:
        """Share groups of all processes, and the backend's groups of the first one: clients ask all nodes."""

        def add(ours: Response) -> None:
            if not self._mirror.speaks_for_backend:
                done(Answer(0, ours))
                return
            forward(request, lambda answer: done(answer._replace(response=listed_groups(ours, answer.response))))

        self._exchanges.ask(self._groups, request, client, add)

    def _delete_groups(self, request: DeleteGroupsRequest, client: ClientContext, done: Done, forward: Forward) -> None:
        """Delete share groups here, and the groups that are unknown here at the backend."""

        def rest(ours: Response) -> None:
            assert isinstance(ours, DeleteGroupsResponse)
            unknown = tuple(one.group_id for one in ours.results if one.error_code is Errors.GROUP_ID_NOT_FOUND)
            if not unknown:
                done(Answer(0, ours))
                return

            def merge(answer: Answer) -> None:
                response = answer.response
                if isinstance(response, DeleteGroupsResponse):
                    kept = tuple(one for one in ours.results if one.group_id not in unknown)
                    response = replace(response, results=kept + response.results)
                done(answer._replace(response=response))

            forward(DeleteGroupsRequest(groups_names=unknown), merge)

        self._exchanges.ask(self._groups, request, client, rest)

    # ---- configurations ----------------------------------------------------------------------------------------------

    def _list_config_resources(
        self, request: ListConfigResourcesRequest, client: ClientContext, done: Done, forward: Forward
    ) -> None:
        del client

        def merge(answer: Answer) -> None:
            done(answer._replace(response=listed_resources(request, answer.response, self._image)))

        forward(request, merge)

    def _describe_configs(
        self, request: DescribeConfigsRequest, client: ClientContext, done: Done, forward: Forward
    ) -> None:
        del client

        def here(part: DescribeConfigsRequest, take: Callable[[Sequence[Any]], None]) -> None:
            take(describe_configs(part, self._image, -1).results)

        _in_parts(request, "results", here, done, forward)

    def _alter_configs(
        self,
        request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
        client: ClientContext,
        done: Done,
        forward: Forward,
    ) -> None:
        _in_parts(request, "responses", partial(self._alter_here, client), done, forward)

    def _alter_here(
        self,
        client: ClientContext,
        request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
        take: Callable[[Sequence[Any]], None],
    ) -> None:
        """Check the changes, store the valid ones, and report all. Another process asks the one that it takes for the
        writer; a request is not passed on twice."""
        checked = _Checked(self._configs)
        if client.client_id == PROCESS.client_id and not self._configs.writes:
            refuse = partial(IncrementalAlterConfigsResponse.Result, error_code=Errors.NOT_CONTROLLER)
            groups = [one.resource_name for one in request.resources]
            take([refuse(resource_type=ResourceType.GROUP, resource_name=group) for group in groups])
            return
        alter: Any = alter_configs if isinstance(request, AlterConfigsRequest) else incremental_alter_configs
        results = {one.resource_name: one for one in alter(request, checked, -1).responses}
        left = len(checked.changes)
        if not left:
            take(tuple(results.values()))

        def stored(group_id: str, outcome: ErrorWithMessage) -> None:
            nonlocal left
            left -= 1
            error, why = outcome
            results[group_id] = replace(results[group_id], error_code=error, error_message=why)
            if not left:
                take(tuple(results.values()))

        for group_id, changes in checked.changes.items():
            self._configs.alter(group_id, changes, lambda outcome, g=group_id: stored(g, outcome))  # type: ignore[misc]


class _Checked:
    """Collects the valid changes of groups that a request asks for: the part of a controller that
    `shareq.broker.alter_configs` uses for groups."""

    def __init__(self, configs: GroupConfigs) -> None:
        self.image = configs.image
        self.changes: dict[str, Changes] = {}
        self._configs = configs

    def alter_group_configs(self, group_id: str, changes: Changes, *, validate_only: bool = False) -> ErrorWithMessage:
        problem, _ = self._configs.merged(group_id, changes)
        if not problem[0] and not validate_only:
            self.changes[group_id] = changes
        return problem


def _merge(request: Request, refusal: Response, done: Done, answer: Answer) -> None:
    """Answer with the response to the rest of a request, and with what was refused of it."""
    response = answer.response
    done(answer if response is None else answer._replace(response=merged(request, response, refusal)))


def _in_parts(
    request: Any,
    results: str,
    here: Callable[[Any, Callable[[Sequence[Any]], None]], None],
    done: Done,
    forward: Forward,
) -> None:
    """Answer the groups of a request about resources here, the others at the backend. `results`: the field of the
    response with a result for each resource."""
    ours = tuple(one for one in request.resources if one.resource_type == ResourceType.GROUP)
    others = tuple(one for one in request.resources if one.resource_type != ResourceType.GROUP)
    if not ours:
        forward(request, done)
        return

    def answered(found: Sequence[Any]) -> None:
        if not others:
            done(Answer(0, _RESPONSES[type(request)](**{results: tuple(found)})))
            return

        def merge(answer: Answer) -> None:
            response: Any = answer.response
            if response is not None:
                both = {(one.resource_type, one.resource_name): one for one in (*found, *getattr(response, results))}
                named = dict.fromkeys((one.resource_type, one.resource_name) for one in request.resources)
                response = replace(response, **{results: tuple(both[name] for name in named if name in both)})
            done(answer._replace(response=response))

        forward(replace(request, resources=others), merge)

    here(replace(request, resources=ours), answered)


_RESPONSES: dict[type[Request], Callable[..., Response]] = {
    DescribeConfigsRequest: DescribeConfigsResponse,
    IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse,
    AlterConfigsRequest: AlterConfigsResponse,
}
