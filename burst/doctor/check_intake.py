# SPDX-License-Identifier: MIT
"""Checks whether Flux has loaded what the intake mode needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from burst.config import IntakeSettings
from burst.core.placement.slots import LENT
from burst.doctor.facts import InstalledFacts, ReadFailure
from burst.flux_setup.running_instance import RunningInstance
from burst.model.finding import Finding, note, ok, wrong

_SETUP = "`burst setup` installs it and says how the lead gets it"
_FROBNICATOR = "frob-burst.py"
_SCHEDULER = "sched-burst"


def check_intake(
    instance: RunningInstance | ReadFailure,
    installed: InstalledFacts,
    intake: IntakeSettings,
) -> list[Finding]:
    """Check scheduler and queues by the mode, then what makes each mode pleasant."""
    if isinstance(instance, ReadFailure):
        return [
            wrong(instance.what, instance.advice or "see the finding about the lead")
        ]
    return [
        *_check_scheduler(instance, intake),
        *_check_queues(instance, intake),
        _check_frobnicator(instance, intake),
        _check_file(installed.plugin, "flux submit --burst: plugin"),
        _check_file(installed.jobs_format, "flux jobs -o burst: format"),
    ]


def _check_scheduler(
    instance: RunningInstance, intake: IntakeSettings
) -> Iterator[Finding]:
    name = instance.scheduler or "no module"
    if intake.mode != "scheduler":
        yield ok(f"[intake] mode is {intake.mode}; the scheduler is {name}")
    elif name == _SCHEDULER:
        yield ok(f"[intake] mode is scheduler, and {name} is loaded")
    else:
        yield wrong(
            f"[intake] mode is scheduler, but the loaded scheduler is {name}",
            f"{_SETUP}; or set another mode",
        )


def _check_queues(
    instance: RunningInstance, intake: IntakeSettings
) -> Iterator[Finding]:
    if intake.mode != "queue":
        return
    for name in (intake.queue, intake.ready):
        if name not in instance.queues:
            yield wrong(f"the instance has no queue {name}", _SETUP)
        elif instance.queues[name].get("requires") != [LENT]:
            yield wrong(
                f"queue {name} does not require the property of lent nodes",
                f'give it requires = ["{LENT}"], or name another under [intake]',
            )
        else:
            yield ok(f"queue {name} requires {LENT}")


def _check_frobnicator(instance: RunningInstance, intake: IntakeSettings) -> Finding:
    ours = [p for p in instance.frobnicators if Path(p).name == _FROBNICATOR]
    if not ours:
        return note(
            "the burst frobnicator is not loaded: jobs that do not burst may run on"
            " lent nodes",
            _SETUP,
        )
    table = instance.config["ingest"]["frobnicator"].get("burst", {})
    any_job = bool(table.get("any_job", table.get("share", False)))
    if any_job != intake.any_job:
        return wrong(
            f"{ours[0]} lets any job run on lent nodes: {any_job}; [intake]"
            f" any_job says {intake.any_job}",
            "run `burst setup` again and give the lead its configuration",
        )
    whom = "for all jobs" if any_job else "for burst jobs only"
    return ok(f"{ours[0]} keeps lent nodes {whom}")


def _check_file(path: str, what: str) -> Finding:
    if path:
        return ok(f"{what} is {path}")
    return note(f"{what} is not where Flux looks for this user", _SETUP)
