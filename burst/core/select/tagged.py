# SPDX-License-Identifier: MIT
"""Jobs with a tag: they wait for nodes that are requested with it."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping, Set

import msgspec

from burst.core.plan.demands import Demand
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.records import is_usable
from burst.core.select.job_context import JobContext
from burst.model.burst import Tag
from burst.model.decision import Decision
from burst.model.reason import Reason
from burst.model.shape import Shape


class TaggedDemands:
    """Decides on the jobs with a tag of one tick."""

    def __init__(self, context: JobContext) -> None:
        self._records, self._plan = context.records, context.plan

    def decide(self, demand: Demand) -> Decision | Demand:
        """Return the demand of a job with a tag, for which alone nothing is bought.

        A decision if no nodes that anybody could request are large enough for it.
        """
        request, shapes = demand.request, self._shapes
        if shapes and not any(nodes_needed(request, each) for each in shapes):
            return Decision(Reason.NEVER_FITS, {"want": describe_need(request)})
        assert demand.tag is not None
        facts = {"tag": demand.tag.name, "have": self._too_few(demand)}
        for_tag = Decision(Reason.TAGGED, facts)
        return msgspec.structs.replace(demand, not_bought=for_tag)

    @functools.cached_property
    def _shapes(self) -> Set[Shape]:
        """The shapes that nodes can have; empty as long as that is not known."""
        catalog = self._plan.eligible.catalog
        if catalog.unread:
            return frozenset()
        offers = [each.offer for each in catalog.known]
        isolated = {each.shape for each in offers if "isolated" in each.modes}
        return isolated.union(shape for shape, _ in self._plan.table.kinds)

    def _too_few(self, demand: Demand) -> str:
        """Return that the nodes of a job's tag are too few or too small for it.

        Empty if they are not, or if there are none. It would wait beside them, however
        idle they are.
        """
        request, nodes = demand.request, self._nodes_by_tag[demand.tag]
        has = nodes.total()
        if has and not any(nodes_needed(request, shape) for shape in nodes):
            return f": none that it has is large enough ({describe_need(request)})"
        few = 0 < has < request.nodes
        return f": it has {has}, and {request.nodes} are needed" if few else ""

    @functools.cached_property
    def _nodes_by_tag(self) -> Mapping[Tag | None, Counter[Shape]]:
        found: dict[Tag | None, Counter[Shape]] = defaultdict(Counter)
        for burst in self._records.live:
            if is_usable(burst) and burst.lease.isolated is None:
                found[burst.lease.tag][burst.lease.shape] += burst.lease.nodes
        return found
