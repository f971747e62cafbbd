# SPDX-License-Identifier: MIT
"""Reaps all bursts with one owner tag, until each provider answers NotFound.

Only for a lead whose job has ended: nothing is drained, as no job can run there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from burst.batch.flux_command import run_flux
from burst.batch.lead_directory import LeadDirectory
from burst.config import load
from burst.core.provider_health import Outcome
from burst.core.world import LastCall
from burst.errors import BurstError, LeadError
from burst.model.fsd import format_fsd
from burst.provider import Provider
from burst.runtime import provider_registry
from burst.runtime.last_call import ProviderBurst
from burst.runtime.reap_bursts import call_each, reap_until_gone

SUBMIT_DEADLINE_S = 600.0
"""How long Flux may take to know a lead's job after its directory was made; it takes a
second."""
_PAUSE_S = 0.5
_LOOKS = 2

PrintLine = Callable[[str], None]


def is_job_over(directory: LeadDirectory) -> bool:
    """Tell whether the lead's job has ended. Raises BurstError if that is not known."""
    request, job = directory.request(), directory.job()
    # A younger job may be about to be submitted, or not be listed yet.
    is_old = time.time() - directory.made_at() > SUBMIT_DEADLINE_S
    if job is None:
        return is_old
    words = (request.flux, "jobs", "--no-header", "-o{state}", job.id)
    try:
        state = run_flux(*words, environment={**os.environ, "FLUX_URI": job.uri})
    except LeadError as error:
        if f"{job.id} unknown" in error.what:
            return is_old
        raise LeadError(
            f"cannot ask whether its job {job.id} is over: {error}",
            f"if its instance {job.uri} is gone for good, remove {directory.job_file}",
        ) from error
    return state.strip() == "INACTIVE"


def reap_lead(directory: LeadDirectory, tell: PrintLine) -> None:
    """Take down what this lead left. Raises BurstError past `[deadlines] reap`."""
    owner = directory.owner()
    if owner:
        settings = load(directory.settings)
        providers = provider_registry.load_providers(settings, owner)
        limit = settings.deadlines.reap
        left = reap_all(providers, limit, tell)
        if left:
            raise BurstError(
                f"not all gone within {format_fsd(limit)} (deadlines.reap):"
                f" {_listed(left)}",
                f"burst lead sweep {directory.path}",
            )
        directory.clear_owner()


def reap_all(
    providers: Mapping[str, Provider],
    limit: float,
    tell: PrintLine,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, str]:
    """Reap all bursts, for at most `limit` seconds; return those left, and why.

    A provider that does not answer counts as one that has something left.
    """

    def tell_note(key: ProviderBurst, call: LastCall) -> None:
        if call.note and call.outcome is not Outcome.NOT_FOUND:
            tell(f"{key[1]} cannot be taken down yet: {call.note}")

    ends, said, quiet = time.monotonic() + limit, "", 0
    unread: dict[str, str] = {}
    while True:
        found, left = _bursts_of(providers)
        for what, why in left.items() - unread.items():
            tell(f"{what} cannot be read yet: {why}")
        unread = dict(left)
        names = ", ".join(burst for _, burst in found)
        if found and names != said:
            said = names
            tell(f"taking down {names}")
        rest = ends - time.monotonic()
        left |= reap_until_gone(found, providers, tell_note, rest)
        quiet = 0 if found or left else quiet + 1
        # A burst that was made a moment ago may not be listed yet.
        if quiet == _LOOKS or time.monotonic() >= ends:
            return left
        pause(_PAUSE_S)


def _bursts_of(
    providers: Mapping[str, Provider],
) -> tuple[list[ProviderBurst], dict[str, str]]:
    """Return the bursts of providers, and why the other providers did not tell."""
    found: list[ProviderBurst] = []
    failed = {f"provider {name}": "no answer" for name in providers}
    for name, result in call_each(providers).items():
        failed[f"provider {name}"] = result.note
        if result.outcome is Outcome.OK:
            del failed[f"provider {name}"]
            found += [(name, status.burst_id) for status in result.value]
    return found, failed


def _listed(left: Mapping[str, str]) -> str:
    return ", ".join(f"{what} ({why})" if why else what for what, why in left.items())
