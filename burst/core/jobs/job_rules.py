# SPDX-License-Identifier: MIT
"""Finds the rule of `[[policy]]` of each pending job, and what it says besides worth.

Without rules, and with `[plan] worth` 0, nothing here changes a decision.
"""

from __future__ import annotations

import msgspec

from burst.config import PolicyRule, Settings
from burst.core.jobs.rules import JobFacts, RuleSet
from burst.core.plan.fit import nodes_needed
from burst.core.world import World
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest

# What the user asks for, the name of the rule, and whether the user is a guest.
_Wish = tuple[BurstPreferences, str | None, bool]


class JobRules:
    """Asks the rules about jobs at one time."""

    def __init__(self, world: World, settings: Settings, now: float) -> None:
        self.world = world
        self.settings = settings
        self.rules = RuleSet(settings.rules, world.userids)
        self._now = now
        self._found: dict[JobId, PolicyRule] = {}
        self._narrowed: dict[_Wish, BurstPreferences] = {}
        self._shapes = {slot.shape for slot in world.slots}

    def may_burst(self, job: JobView) -> bool:
        """Tell whether a job is burstable by its attribute, or as a rule marks it."""
        if job.burstable or job.request is None:
            return job.burstable
        rule = self.rule(job)
        return rule is not None and rule.mark

    def rule(self, job: JobView) -> PolicyRule | None:
        """Return the rule that decides on a job; None if no rule changes anything."""
        if self.rules.leaves_all:
            return None
        rule = self._found.get(job.id)
        if rule is None:
            rule = self.rules.find(self._facts(job), self._now)
            self._found[job.id] = rule
        return rule

    def local_wait(self, job: JobView) -> float:
        """Return for how many seconds a job that can start is left to the scheduler."""
        rule, own = self.rule(job), job.preferences.wait
        if rule is not None and rule.wait is not None:
            return max(rule.wait, own or 0.0)
        return self.settings.intake.local_wait if own is None else own

    def preferences(self, job: JobView) -> BurstPreferences:
        """Return the user's preferences, narrowed by the rule, and if it is a guest."""
        rule, wish = self.rule(job), job.preferences
        guest = self.world.identity.is_guest(job.userid)
        if rule is None and not guest:
            return wish
        key = wish, rule.name if rule else None, guest
        found = self._narrowed.get(key)
        if found is None:
            found = narrowed(wish, rule) if rule else wish
            found = msgspec.structs.replace(found, guest=guest)
            self._narrowed[key] = found
        return found

    def decide_on_bank(self, job: JobView) -> Decision | None:
        """Return why nothing is bought for a job because of its bank; None if not so.

        Flux takes any name for a bank if no plugin of flux-accounting is loaded.
        """
        banks = self.world.banks
        if banks.refuses(job):
            own = ", ".join(sorted(banks.of_user(job.userid))) or "none"
            return Decision(Reason.BANK_REFUSED, {"bank": job.bank, "own": own})
        if self._now >= banks.awaited_until:
            return None
        if not (job.bank or self.settings.uses_banks):
            return None
        return Decision(Reason.BANK_UNREAD, {"until": banks.awaited_until})

    def _facts(self, job: JobView) -> JobFacts:
        return JobFacts(
            userid=job.userid,
            queue=job.queue,
            bank=self.world.banks.bank_of(job),
            name=job.name,
            attributes=job.attributes,
            nodes=self._nodes_of(job.request) if job.request else 0,
            duration=job.duration,
        )

    def _nodes_of(self, request: ResourceRequest) -> int:
        """Return how many lent nodes a job needs; 0 if none would do.

        For a job that asks for nodes, it is their number, whatever nodes there are.
        """
        needs = (nodes_needed(request, shape) for shape in self._shapes)
        return min((need for need in needs if need), default=request.nodes)


def narrowed(wish: BurstPreferences, rule: PolicyRule) -> BurstPreferences:
    """Return preferences of a user, narrowed by a rule."""
    return msgspec.structs.replace(
        wish,
        allowed=rule.providers,
        allowed_price=rule.max_price,
        rule=rule.name,
    )
