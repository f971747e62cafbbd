# SPDX-License-Identifier: MIT
"""Makes members larger and smaller by the daemon's service, as anybody may.

Nodes are requested with the member's tag, in its rank slot. What is not done, as a call
failed, is asked for again in the next step.
"""

from __future__ import annotations

from collections.abc import Sequence

from burst.core.tagged_nodes import TaggedBurst, TaggedNodes
from burst.errors import BurstError, Late, Unreadable
from burst.model.ranks import format_hostlist
from burst.runtime.daemon_package import CallService
from burst.runtime.service_answers import Row
from burst_ensemble.core.intents import EndMember, ResizeMember
from burst_ensemble.core.record import EnsembleStart


class MemberSizes:
    """Resizes members.

    Where its provider can resize a burst, one that is online is. Else, or where that
    cannot be, a member grows by further bursts in the rest of its rank slot, of fewer
    nodes where need be, and shrinks by whole bursts on which nothing runs. The size of
    an isolated member is how many nodes the bursts of its jobs may have together.
    """

    def __init__(self, call: CallService) -> None:
        self._call = call

    def resize(
        self,
        start: EnsembleStart,
        to: ResizeMember,
        nodes: TaggedNodes,
    ) -> str:
        """Return why the member will not be as large as it should be, empty if it will.

        Raises Unreadable, and Late where it is not known what was done.
        """
        tag, member = start.membership(to.member), start.spec.member(to.member)
        request: dict[str, str | int] = {
            "provider": member.provider,
            "tag": tag.name,
            "offer": member.offer,
            "image": member.image,
        }
        if member.is_isolated:
            made, why = self._try("isolate", **request, nodes=to.nodes)
            return why or str(made["why"])
        request["slot"] = format_hostlist(start.slots.get(member.name, ()))
        paid = nodes.bursts_of(tag)
        live = [burst for burst in paid if burst.usable]
        more = to.nodes - sum(burst.wanted for burst in live)
        if more <= 0:
            self._shrink(live, -more, to.why)
            return ""
        # Nodes that leave are paid until they are gone.
        more = min(more, member.max - sum(burst.nodes for burst in paid))
        if more <= 0:
            return "nodes that it gives back are not gone yet"
        request |= {"nodes": more, "least": 1, "grow": True, "note": to.why}
        made, why = self._try("request", **request)
        return why or str(made["why"])

    def end(self, start: EnsembleStart, to: EndMember) -> None:
        """Have all bursts of a member taken down, and its jobs that wait ended."""
        tag = start.membership(to.member).name
        self._call("down", {"tag": tag, "note": to.why})

    def _shrink(self, live: Sequence[TaggedBurst], fewer: int, why: str) -> None:
        """Take down whole bursts, the newest first; then have one shrink."""
        rest = []
        for burst in reversed(live):
            if burst.nodes <= fewer and not burst.has_jobs:
                _, refusal = self._try("down", burst=burst.id, note=why)
                fewer -= 0 if refusal else burst.nodes
            else:
                rest.append(burst)
        for burst in rest:
            nodes = burst.wanted - fewer
            if fewer > 0 and nodes > 0:
                _, refusal = self._try("resize", burst=burst.id, nodes=nodes, note=why)
                if not refusal:
                    return

    def _try(self, method: str, **payload: str | int) -> tuple[Row, str]:
        """Call the service; return its answer, or why it refuses."""
        try:
            return self._call(method, payload), ""
        except (Late, Unreadable):
            raise
        except BurstError as error:
            return {}, error.what
