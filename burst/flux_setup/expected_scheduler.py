# SPDX-License-Identifier: MIT
"""Finds which scheduler an instance has after its next start, and if bursts suit it.

Then the files decide. A running instance reports more than they contain, such as a
policy that is an option of a module, so its report counts while they are unchanged.
Sources: flux-config-modules(5), flux-config-sched-fluxion-qmanager(5).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux.scheduler import find_obstacles, gives_whole_nodes
from burst.flux_setup.running_instance import RunningInstance
from burst.kits.program import ask_flux
from burst.model.scheduler import FCFS, FLUXION, MATCHER, Scheduler, order_of

# The schedulers that sched-burst can replace, as it is made of them; empty if unknown.
_SHIPPED = ("", "sched-simple", "sched-fifo", "sched-backfill", "sched-burst")
_ANONYMOUS = "default"
"""What Fluxion calls the queue of an instance without named queues."""


def check_compatible(
    tables: Mapping[str, Any],
    running: RunningInstance | None,
    intake: IntakeSettings,
    *,
    has_fluxion: bool = False,
) -> None:
    """Raise ConfigError if bursts cannot work there, or would harm other jobs.

    `tables` is the configuration with which the instance starts next, `running` the
    report of the instance if it could be asked. If neither names the scheduler and
    `has_fluxion` is set, Fluxion is assumed, as it is loaded if it is installed.
    """
    known = expected_scheduler(tables, running)
    if intake.mode == "scheduler":
        if known.name not in _SHIPPED:
            raise ConfigError(
                f"the instance schedules with {known.name}, which sched-burst would"
                " replace",
                "choose --mode queue, which needs no other scheduler",
            )
        return
    is_guess = not known.name and has_fluxion
    if is_guess:
        known = _fluxion(tables, None)
    for finding in find_obstacles(known, intake, tables):
        if is_guess:
            raise ConfigError(
                "the scheduler of the instance is not known, and Fluxion is installed."
                f" {finding.what}",
                f"start the instance, and run this command again; or {finding.advice}",
            )
        raise ConfigError(finding.what, finding.advice)


def expected_scheduler(
    tables: Mapping[str, Any], running: RunningInstance | None
) -> Scheduler:
    """Return the scheduler that Flux loads by these tables; without a name if unknown.

    See `check_compatible`.
    """
    known = running.known if running else Scheduler()
    name = str(_table(tables, "modules", "alternatives").get("sched", ""))
    name = name or known.name
    if not name and (FLUXION in tables or MATCHER in tables):
        name = FLUXION
    if name == FLUXION:
        return _fluxion(tables, running)
    return known if known.name == name else Scheduler(name=name)


def find_fluxion() -> bool:
    """Tell whether the Flux on PATH finds Fluxion's modules. Raises ConfigError."""
    places = [
        ask_flux("flux", "config", "builtin", "module_path").strip(),
        *(
            os.environ.get(name, "")
            for name in ("FLUX_MODULE_PATH", "FLUX_MODULE_PATH_PREPEND")
        ),
    ]
    directories = (each for place in places for each in place.split(":") if each)
    return any(Path(each, f"{FLUXION}.so").exists() for each in directories)


def _fluxion(tables: Mapping[str, Any], running: RunningInstance | None) -> Scheduler:
    """Return Fluxion with the options that these tables give it."""
    options, matcher = _table(tables, FLUXION), _table(tables, MATCHER)
    known = running.known if running else Scheduler()
    same = (
        running is not None
        and known.is_fluxion
        and all(
            _table(running.config, name) == _table(tables, name)
            for name in (FLUXION, MATCHER)
        )
    )
    listed = str(options.get("queue-policy-per-queue", "")).split()
    policies = {name: policy for name, _, policy in (e.partition(":") for e in listed)}
    if same:
        policies |= known.policies
    usual = str(options.get("queue-policy") or _common(known) * same or FCFS)
    queues = _table(tables, "queues") or (_ANONYMOUS,)
    found = {name: policies.get(name, usual) for name in queues}
    return Scheduler(
        name=FLUXION,
        order=order_of(found),
        policies=found,
        whole_nodes=known.whole_nodes
        if same
        else gives_whole_nodes(str(matcher.get("match-policy", ""))),
        stale_s=known.stale_s if same else int(matcher.get("update-interval") or 0),
    )


def _common(scheduler: Scheduler) -> str:
    """Return the policy that all of its queues have; empty if they differ."""
    found = set(scheduler.policies.values())
    return found.pop() if len(found) == 1 else ""


def _table(tables: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        found = tables.get(key)
        tables = found if isinstance(found, Mapping) else {}
    return tables
