# SPDX-License-Identifier: MIT
"""Nothing is made for user ids that are no accounts: subordinate ones (subuid(5)).

Limits, budgets and rates are by user. A user who has thousands of ids would have
thousands of them, and jobs under such an id could not even run: the IMP starts
none for an id without an entry in passwd.
"""

from __future__ import annotations

from burst.config import GuestSettings
from burst.core.world import World
from burst.errors import Denied
from burst.model.decision import Decision
from burst.model.lead import JobView
from burst.model.reason import Reason


def decide_on_account(
    job: JobView, world: World, settings: GuestSettings
) -> Decision | None:
    """Return why a job gets no nodes that is no account's; None for all others."""
    whose = _whose(job.userid, world, settings)
    if not whose or not world.identity.is_guest(job.userid):
        return None
    return Decision(Reason.NO_ACCOUNT, {"userid": job.userid, "whose": whose})


def refuse_call(userid: int, world: World, settings: GuestSettings) -> None:
    """Raise Denied for a guest's call that is no account's."""
    whose = _whose(userid, world, settings)
    if whose:
        raise Denied(
            f"{userid} is a subordinate user id of {whose} (subuid(5)), not an account",
            "call outside of the user namespace; if it is an account, tell the"
            " instance's owner, who can set take_subuids under [guests]",
        )


def _whose(userid: int, world: World, settings: GuestSettings) -> str:
    return "" if settings.take_subuids else world.subuids.owner(userid)
