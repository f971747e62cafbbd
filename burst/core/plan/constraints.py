# SPDX-License-Identifier: MIT
"""Finds the ranks that constraints of jobs admit; a tick evaluates only so much."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from burst.errors import JobspecError
from burst.model.constraint import ConstraintEvaluator, ranks_of_mask
from burst.model.lead import LeadIdentity
from burst.model.request import ResourceRequest

MOST_WORK = 100_000
"""How much is evaluated anew for jobs in one tick, in hosts: about 150 ms."""
MOST_BYTES = 32_000_000
"""The most bytes of remembered sets. Constraints of waiting jobs are evaluated once,
not in each tick, as long as their sets fit: some 20,000 different ones on a lead of ten
thousand ranks."""
_OVERHEAD = 200
"""Bytes of a remembered set beside its ranks: its key, and its place in the table."""


class Constraints:
    """Tells which ranks of one lead a constraint admits. Remembers results."""

    def __init__(self, identity: LeadIdentity) -> None:
        properties = tuple(sorted(identity.properties.items()))
        self._evaluator = _evaluator(identity.hosts, properties)
        self._known: dict[str, frozenset[int]] = {}
        self._sets: dict[int, frozenset[int]] = {}
        self.work = 0
        """How much was evaluated anew, in hosts."""
        self.later: frozenset[str] = frozenset()
        """Constraints for which another tick has time."""

    def read(self, wanted: Iterable[tuple[int, str]]) -> None:
        """Evaluate constraints of jobs, as many as this tick has time for.

        `wanted` are users and their constraints, in the order in which their jobs are
        served. All users have an equal share of MOST_WORK, so that nobody waits for
        thousands of jobs of another user.
        """
        new: dict[str, int] = {}
        for user, text in wanted:
            if text not in new and not self._evaluator.knows(text):
                new[text] = user
        share = MOST_WORK / max(1, len(set(new.values())))
        spent = dict.fromkeys(new.values(), 0)
        later = []
        for text, user in new.items():
            if spent[user] >= share or self.work >= MOST_WORK:
                later.append(text)
                continue
            before = self.work
            self.admitted(text)
            spent[user] += self.work - before
        self.later = frozenset(later)

    def admitted(self, constraint: str) -> frozenset[int]:
        """Return the ranks that a constraint admits; all for empty text.

        It is JSON from `burst.model.constraint.canonical`. One that Flux could not
        evaluate admits none.
        """
        found = self._known.get(constraint)
        if found is None:
            before = self._evaluator.work
            mask = self._evaluator.mask(constraint)
            self.work += self._evaluator.work - before
            found = self._sets.get(mask)
            if found is None:
                found = self._sets[mask] = ranks_of_mask(mask)
            self._known[constraint] = found
        return found

    def admitted_to(self, request: ResourceRequest) -> frozenset[int] | None:
        """Return the ranks that a request may have by its constraint; None for any."""
        return self.admitted(request.constraint) if request.constraint else None


class _Evaluator(ConstraintEvaluator):
    """Evaluates constraints for one lead, and remembers results.

    Ticks and the forecaster's thread share it: each step on the table is atomic, and
    both evaluate the same.
    """

    def __init__(
        self,
        hosts: tuple[str, ...],
        properties: tuple[tuple[str, frozenset[int]], ...],
    ) -> None:
        ranks = {host: rank for rank, host in enumerate(hosts)}
        super().__init__(ranks, dict(properties))
        self._remembered: dict[bytes, int] = {}
        self.most = MOST_BYTES // (_OVERHEAD + len(hosts) // 8)
        """How many sets are remembered."""

    def knows(self, constraint: str) -> bool:
        """Tell whether the ranks are known without evaluation."""
        return not constraint or _key(constraint) in self._remembered

    def mask(self, constraint: str) -> int:
        """Return the ranks that a constraint admits, evaluated if need be.

        One that Flux could not evaluate admits none.
        """
        key = _key(constraint)
        mask = self._remembered.get(key)
        if mask is None:
            try:
                mask = super().mask(constraint)
            except JobspecError:
                mask = 0
            if len(self._remembered) >= self.most:
                self._forget()
            self._remembered[key] = mask
        return mask

    def _forget(self) -> None:
        """Forget a tenth of what is remembered, the oldest."""
        for key in list(self._remembered)[: self.most // 10 + 1]:
            self._remembered.pop(key, None)


# A lead's hosts and properties are fixed while it runs, so there is one in a daemon.
_evaluator = lru_cache(maxsize=2)(_Evaluator)


def _key(constraint: str) -> bytes:
    """Return the key that a constraint is remembered by: its text may be kilobytes."""
    return hashlib.blake2b(constraint.encode(), digest_size=16).digest()
