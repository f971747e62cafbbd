# SPDX-License-Identifier: MIT
"""How long each stage of a burst took, from the submission of its first job on."""

from __future__ import annotations

from burst.model.burst import Burst

# Stages of a burst in the order in which they come, and the event that each begins
# with; of several such events the first counts, but the last of those in _LAST.
STAGES = {
    "submit": "submit",
    "hold": "job-hold",
    "provision": "provision-start",
    "joined": "joined",
    "online": "online",
    "released": "job-release",
    "started": "job-start",
    "finished": "job-finish",
    "drained": "drained",
    "reaped": "reaped",
}
_LAST = {"finished"}


def timeline(burst: Burst) -> dict[str, float]:
    """Return stage to seconds since its first job was submitted (or it was asked for).

    Stages that did not happen are missing.
    """
    start = begun(burst)
    stages: dict[str, float] = {}
    for stage, name in STAGES.items():
        times = [event.timestamp for event in burst.events if event.name == name]
        if times:
            when = times[-1] if stage in _LAST else times[0]
            stages[stage] = round(max(0.0, when - start), 3)
    stages["submit"] = 0.0
    return stages


def begun(burst: Burst) -> float:
    """Return when the first of its jobs was submitted, or the burst was asked for."""
    submitted: list[float] = [
        when
        for event in burst.events
        if event.name in {"submit", "assign"}
        for when in event.context["jobs"].values()
    ]
    return min([*submitted, burst.lease.created])
