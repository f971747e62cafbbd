# SPDX-License-Identifier: MIT
"""Ensembles among the records that the daemon keeps for packages."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.core.records import Records, RecordsView
from burst_ensemble.core.stored import EnsembleStart, EnsembleState, MemberBook

# Kinds of records, as the entry points of the group `burst.records` name them.
_STATE, _START, _BOOK = "ensemble", "ensemble-start", "ensemble-book"


def ensembles_of(records: RecordsView) -> Mapping[str, EnsembleState]:
    """Return the ensembles that run, and the last that ended, by name."""
    return records.packages.get(_STATE, {})


def starts_of(records: RecordsView) -> Mapping[str, EnsembleStart]:
    """Return each of these as it was started."""
    return records.packages.get(_START, {})


def books_of(records: RecordsView) -> Mapping[str, MemberBook]:
    """Return the books of members, by `ENSEMBLE/MEMBER`."""
    return records.packages.get(_BOOK, {})


def with_ensembles(
    records: Records,
    *,
    ensembles: Mapping[str, EnsembleState] | None = None,
    starts: Mapping[str, EnsembleStart] | None = None,
    books: Mapping[str, MemberBook] | None = None,
) -> Records:
    """Return the records with these in place of those that are there."""
    changed = {
        kind: found
        for kind, found in ((_STATE, ensembles), (_START, starts), (_BOOK, books))
        if found is not None
    }
    packages = {**records.packages, **changed}
    return msgspec.structs.replace(records, packages=packages)
