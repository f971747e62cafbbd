# SPDX-License-Identifier: MIT
"""Checks, before the daemon starts, whether followers could reach the lead."""

from __future__ import annotations

from burst import log
from burst.config import Settings
from burst.doctor.check_network import check_endpoint
from burst.doctor.collect_facts import read_endpoint
from burst.errors import LeadError
from burst.model.finding import Level
from burst.model.lead import LeadIdentity


def require_reachable_address(identity: LeadIdentity, settings: Settings) -> bool:
    """Connect to the lead's address as a follower would; return True if one could join.

    Logs what a person should note.

    Raises LeadError if no follower could join. It is no error if an address that was
    set by hand cannot be reached from here: followers are elsewhere.
    """
    for finding in check_endpoint(read_endpoint(identity, settings), settings):
        if finding.level is Level.WRONG:
            raise LeadError(finding.what, finding.advice)
        if finding.level is Level.NOTE:
            log.warn("%s: %s", finding.what, finding.advice)
    return True
