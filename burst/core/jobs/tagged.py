# SPDX-License-Identifier: MIT
"""Jobs with a tag: they wait for nodes that are requested with it."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping, Set

import msgspec

from burst.core.jobs.job_context import JobContext
from burst.core.plan.demands import Demand
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.records import is_usable
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
        request, shapes = demand.request, self._shapes(demand)
        if shapes and not any(nodes_needed(request, each) for each in shapes):
            return Decision(Reason.NEVER_FITS, {"want": describe_need(request)})
        assert demand.tag is not None
        facts = {"tag": demand.tag.name, "have": self._too_few(demand)}
        for_tag = Decision(Reason.TAGGED, facts)
        return msgspec.structs.replace(demand, not_bought=for_tag)

    def _shapes(self, demand: Demand) -> Set[Shape]:
        """Return the shapes of the nodes that could be requested for a job.

        Empty as long as that is not known: in an isolated burst, or if no rank of a
        slot is admitted by its constraint.
        """
        if not self._joined_alone:
            return frozenset()
        table, admitted = self._plan.table, self._plan.admitted(demand)
        return {
            kind[0]
            for kind in table.kinds
            if table.capacity(kind, admitted, 1, spread=False)
        }

    @functools.cached_property
    def _joined_alone(self) -> bool:
        """Whether all offers are known, and each is for nodes of rank slots alone.

        Offers may be gone for a while, and a failed job is lost.
        """
        catalog = self._plan.catalog
        modes = {mode for each in catalog.known for mode in each.offer.modes}
        return bool(modes) and not catalog.unknown and "isolated" not in modes

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
