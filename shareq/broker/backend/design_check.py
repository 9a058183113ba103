"""The check of the state topic before the start: its states must be of this process's design. BEHAVIOUR.md, 1.6."""

from __future__ import annotations

from collections.abc import Callable

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.shard_reads import RETRY_MS
from shareq.broker.backend.topics import IN_BACKEND
from shareq.broker.loop import EventLoop
from shareq.model.actor import Answer
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.topics import DescribeConfigsRequest, DescribeConfigsResponse, ResourceType
from shareq.model.state_designs import StateDesign

CLEANUP_POLICY = "cleanup.policy"
NAME = IN_BACKEND[SHARE_STATE_TOPIC]


class DesignCheck:
    """Compares the cleanup policy of the state topic with that of the design. `refusal`: why the start is refused."""

    def __init__(self, design: StateDesign, client: BackendClient, loop: EventLoop) -> None:
        self.refusal = ""
        self._design = design
        self._client = client
        self._loop = loop

    def begin(self, passed: Callable[[], object]) -> None:
        """Call `passed` if the topic is one of this design, as soon as it exists. Without a persister it has no states,
        whatever it is."""
        if self._design is StateDesign.NONE:
            passed()
            return
        resource = DescribeConfigsRequest.Resource(
            resource_type=ResourceType.TOPIC, resource_name=NAME, configuration_keys=(CLEANUP_POLICY,)
        )

        def described(answer: Answer) -> None:
            response = answer.response
            (result,) = response.results if isinstance(response, DescribeConfigsResponse) else (None,)
            found = [config.value for config in result.configs if config.name == CLEANUP_POLICY] if result else []
            if not found:  # the topic is being created, or the broker did not answer
                self._loop.at(self._loop.time_ms() + RETRY_MS, lambda: self.begin(passed))
            elif found == [self._design.cleanup_policy]:
                passed()
            else:
                self.refusal = (
                    f"persister={str(self._design)!r}: the topic {NAME} has {CLEANUP_POLICY}={found[0]}: another "
                    f"persister has made it, whose states this one cannot read. Start with that one, or delete the "
                    f"topic and lose the states"
                )

        self._client.call_any(DescribeConfigsRequest(resources=(resource,)), described)
