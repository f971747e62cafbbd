# SPDX-License-Identifier: MIT
"""Checks whether Flux has loaded what the intake mode needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from burst.config import IntakeSettings, Settings
from burst.doctor.facts import InstalledFacts, OwnHostFacts, ReadFailure
from burst.flux.frobnicator import (
    DISABLED,
    ENABLE,
    NAME,
    frobnicator_table,
    is_disabled,
    is_left_out,
    why_not_apart,
)
from burst.flux.identity import parse_access
from burst.flux_setup.running_instance import RunningInstance
from burst.model.confinement import LENT
from burst.model.finding import Finding, note, ok, wrong

_SETUP = "`burst setup` installs it and says how the lead gets it"
_LISTED = (
    "run `burst setup` again, which keeps the site's list and adds ours in a file whose"
    " name is the last; or add the path of that file to the end of the site's list;"
    " then flux config reload"
)
_SCHEDULER = "sched-burst"


def check_intake(
    instance: RunningInstance | ReadFailure,
    installed: InstalledFacts,
    settings: Settings,
    *,
    awaits_restart: bool = False,
) -> list[Finding]:
    """Check what the mode needs: scheduler, queues, frobnicator, users' commands.

    A lead that `awaits_restart` has got its modules, queues and frobnicator in files
    that it has not read yet.
    """
    intake = settings.intake
    if isinstance(instance, ReadFailure):
        return [
            wrong(instance.what, instance.advice or "see the finding about the lead")
        ]
    found = _lacking(instance, installed)
    if not awaits_restart:
        found = [
            *_check_scheduler(instance, intake),
            *_check_queues(instance, intake),
            *(found or _check_frobnicator(instance, settings)),
        ]
    return [*found, *_check_commands(installed), *_check_versions(installed)]


def check_own_hosts(facts: OwnHostFacts | ReadFailure | None) -> Iterator[Finding]:
    """Check that the other own hosts have the files that rank 0's host has."""
    if isinstance(facts, ReadFailure):
        yield note(
            f"the other own hosts cannot be asked for the frobnicator: {facts.what}",
            "run burst doctor again; a host without it refuses jobs that are submitted"
            " there, or lets them run on lent nodes",
        )
        return
    if facts and facts.without_file:
        yield wrong(
            f"{facts.without_file} lacks {facts.path}: Flux refuses each job that is"
            " submitted there",
            "give it that file, which all users have to be able to read",
        )
    if facts and facts.without_table:
        yield wrong(
            f"{facts.without_table} has a configuration of Flux that does not name"
            f" {facts.path}: jobs that are submitted there may run on lent nodes",
            "give it the configuration of rank 0's host, and restart Flux there",
        )


def _check_scheduler(
    instance: RunningInstance, intake: IntakeSettings
) -> Iterator[Finding]:
    name = instance.known.name or "no module"
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


def _lacking(instance: RunningInstance, installed: InstalledFacts) -> list[Finding]:
    """Find frobnicators that Flux loads and whose files are not there."""
    if not installed.lacking or is_disabled(instance.config):
        return []
    return [
        wrong(
            f"[ingest.frobnicator] plugins names {', '.join(installed.lacking)}, which"
            " is no file that this user can read: Flux refuses each job that is"
            " submitted",
            "put the file back, as `burst setup` does with that of burst; if it was"
            " removed on purpose, take it out of the lead's configuration and run flux"
            " config reload --follower-noop",
        )
    ]


def _check_frobnicator(
    instance: RunningInstance, settings: Settings
) -> Iterator[Finding]:
    intake, access = settings.intake, parse_access(instance.config)
    if access.allow_guest_user and not (settings.plan.share_users or intake.any_job):
        yield from _check_users_apart(instance, intake)
        return
    table = frobnicator_table(instance.config)
    if is_disabled(instance.config):
        yield wrong(DISABLED, ENABLE)
        return
    if is_left_out(instance.config):
        yield wrong(
            f"[ingest.frobnicator] plugins is {instance.frobnicators}, without {NAME}:"
            " a list in a file whose name comes later replaces ours, so jobs that do"
            " not burst may run on lent nodes",
            _LISTED,
        )
        return
    if table is None:
        yield note(
            "the burst frobnicator is not loaded: jobs that do not burst may run on"
            " lent nodes",
            _SETUP,
        )
        return
    any_job = bool(table.get("any_job", False))
    if any_job != intake.any_job:
        yield wrong(
            f"{NAME} lets any job run on lent nodes: {any_job}; [intake]"
            f" any_job says {intake.any_job}",
            "run `burst setup` again and give the lead its configuration",
        )
    else:
        whom = "for all jobs" if any_job else "for burst jobs only"
        yield ok(f"{NAME} keeps lent nodes {whom}")


def _check_users_apart(
    instance: RunningInstance, intake: IntakeSettings
) -> Iterator[Finding]:
    """Check that the jobs of guests stay off the nodes of each other's bursts."""
    why = why_not_apart(instance.config, intake)
    if why:
        yield wrong(
            f"the lead has guests, and {why}: the daemon does not start",
            f"{_advice(instance)}; or set [plan] share_users = true, if users may"
            " share bursts",
        )
    else:
        yield ok(f"{NAME} keeps the nodes of each burst for the jobs of its user")
    validators = instance.config.get("ingest", {}).get("validator", {})
    if intake.mode == "hold" and "feasibility" in validators.get("plugins", ()):
        yield wrong(
            "the validator feasibility refuses burst jobs that are larger than the own"
            " nodes: in mode hold no job may have lent ones before the daemon says so",
            'set [intake] mode = "scheduler" or "queue", or leave the validator out',
        )


def _advice(instance: RunningInstance) -> str:
    """Return how to have the lead run the frobnicator."""
    if is_disabled(instance.config):
        return ENABLE
    return _LISTED if is_left_out(instance.config) else _SETUP


def _check_commands(installed: InstalledFacts) -> Iterator[Finding]:
    """Check whether Flux's commands find our files in this shell."""
    lacking = []
    for path, command, file, variable in (
        (installed.plugin, "flux submit --burst", "plugin", "FLUX_CLI_PLUGINPATH"),
        (installed.jobs_format, "flux jobs -o burst", "format", "XDG_CONFIG_DIRS"),
    ):
        if path:
            yield ok(f"{command}: {file} is {path}")
        elif variable in installed.exports:
            lacking.append((command, variable))
        else:
            yield note(
                f"{command}: {file} is not where Flux looks for this user", _SETUP
            )
    if lacking:
        commands = " and ".join(command for command, _ in lacking)
        variables = " and ".join(variable for _, variable in lacking)
        lines = "; ".join(
            f"export {variable}={shlex.quote(installed.exports[variable])}"
            for _, variable in lacking
        )
        yield note(
            f"Flux does not know {commands} in this shell: the files of this lead are"
            f" not in {variables}",
            f"type, in each shell that submits: {lines}",
        )


def _check_versions(installed: InstalledFacts) -> Iterator[Finding]:
    """Check whether the files that Flux loads came with this version of burst."""
    if installed.outdated:
        are = "are" if len(installed.outdated) > 1 else "is"
        yield note(
            f"{', '.join(installed.outdated)} {are} of another version of burst",
            "run `burst setup` again, with the options of the first time, or -c"
            " DIR/burst.toml --dir DIR/flux after `burst lead init DIR`; and give the"
            " files to the other hosts of the instance",
        )
