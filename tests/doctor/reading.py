# SPDX-License-Identifier: MIT
"""How tests read findings."""

from collections.abc import Sequence

from burst.model.finding import Finding, Level

OK, NOTE, WRONG = Level.OK, Level.NOTE, Level.WRONG


def levels(findings: Sequence[Finding]) -> list[Level]:
    """Return how bad each is."""
    return [finding.level for finding in findings]


def said(findings: Sequence[Finding]) -> str:
    """Return all that is not as it should be as one text, advice included."""
    bad = [finding for finding in findings if finding.level is not OK]
    assert all(finding.advice for finding in bad), "each has advice"
    return " | ".join(f"{finding.what} -> {finding.advice}" for finding in bad)
