# SPDX-License-Identifier: MIT
"""Reports what a lead needs on the nodes that the provider does not set up."""

from __future__ import annotations

from collections.abc import Iterator

from burst.model.finding import Finding, note
from burst.model.lead import LeadIdentity


def examine_lead(
    lead: LeadIdentity | None,
    for_guests: str = "install them there, or use a lead that serves one user",
) -> Iterator[Finding]:
    """Yield a note for each thing that the nodes must have; none without a `lead`.

    `for_guests` is the advice for a lead of many users; empty if the provider sets up
    all that guests' jobs need.
    """
    if lead is None:
        return
    if for_guests and lead.access.allow_guest_user:
        yield note(
            "the lead serves all users: their jobs need flux-imp, the lead's munge key"
            " and the same user ids on the nodes",
            for_guests,
        )
    if lead.systemd:
        yield note(
            "the lead has [systemd] enable: a follower comes online only if the owner"
            " of the instance has a systemd instance on its node",
            "run loginctl enable-linger on each node, or use a lead without it",
        )
