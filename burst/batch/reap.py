# SPDX-License-Identifier: MIT
"""Reaps all bursts with one owner tag, until each provider answers NotFound.

Only for a lead whose job has ended: nothing is drained, as no job can run there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping

from burst.batch.flux_command import run_flux
from burst.batch.lead_directory import LeadDirectory
from burst.config import load
from burst.core.provider_health import Outcome, Verb
from burst.errors import BurstError, LeadError
from burst.model.fsd import format_fsd
from burst.provider import Provider
from burst.runtime import provider_registry
from burst.runtime.executor import QueuedCall, run_call

SUBMIT_DEADLINE_S = 600.0
"""From the making of a lead's directory until Flux knows its job; it takes a second."""
_PAUSE_S = 0.5
_LOOKS = 2
_CLOCK = time.monotonic

PrintLine = Callable[[str], None]


def is_job_over(directory: LeadDirectory) -> bool:
    """Tell whether the lead's job has ended. Raises BurstError if that is not known."""
    request, job = directory.request(), directory.job()
    # Younger ones may be about to be submitted, or not be listed yet.
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
        left = reap_all(providers, time.monotonic() + limit, tell)
        if left:
            raise BurstError(
                f"not all gone within {format_fsd(limit)} (deadlines.reap):"
                f" {_listed(left)}",
                f"burst lead sweep {directory.path}",
            )
        directory.clear_owner()


def reap_all(
    providers: Mapping[str, Provider],
    ends: float,
    tell: PrintLine,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, str]:
    """Return what is left of each burst, and why, when all is gone or the time is up.

    A provider that cannot be asked counts as one that has something left.
    """
    said, quiet = "", 0
    while True:
        left = {
            what: why for name in providers for what, why in _reap_all(name, providers)
        }
        quiet = 0 if left else quiet + 1
        # What was made a moment ago may not be listed yet.
        if quiet == _LOOKS or time.monotonic() >= ends:
            return left
        if left and _listed(left) != said:
            said = _listed(left)
            tell(f"taking down {said}")
        pause(_PAUSE_S)


def _reap_all(
    name: str, providers: Mapping[str, Provider]
) -> Iterator[tuple[str, str]]:
    """Reap each burst that the provider has; yield those not gone yet, and why."""
    look = QueuedCall(provider=name, verb=Verb.OBSERVE, providers=providers)
    seen = run_call(look, _CLOCK)
    if seen.outcome is not Outcome.OK:
        yield f"provider {name}", seen.note
        return
    for status in seen.value:
        burst = status.burst_id
        reap = QueuedCall(
            provider=name, verb=Verb.REAP, burst=burst, providers=providers
        )
        result = run_call(reap, _CLOCK)
        if result.outcome is not Outcome.NOT_FOUND:
            yield burst, result.note or status.why


def _listed(left: Mapping[str, str]) -> str:
    return ", ".join(f"{what} ({why})" if why else what for what, why in left.items())
