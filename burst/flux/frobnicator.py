# SPDX-License-Identifier: MIT
"""Checks that the lead has the frobnicator that keeps jobs off others' lent nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux.finish_job import POST
from burst.flux.rpc import RequestFailed, RpcClient, ServiceMissing
from burst.model.confinement import LENT

NAME = "frob-burst.py"
_ADVICE = (
    "`burst setup` installs it and prints how to load it; or set [plan] share_users ="
    " true, which lets the jobs of all users run on the nodes of any burst"
)
DISABLED = (
    "[ingest.frobnicator] disable is true, so that Flux runs no frobnicator, neither"
    " that of burst nor its own for queues and defaults"
)
ENABLE = "remove `disable` from that table, then run flux config reload"
_NO_JOB = 0


def frobnicator_table(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return our frobnicator's table in the lead's configuration.

    None if Flux does not run it. See flux-config-ingest(5).
    """
    table = config.get("ingest", {}).get("frobnicator", {})
    loaded = any(Path(name).name == NAME for name in table.get("plugins", ()))
    if not loaded or table.get("disable"):
        return None
    found: Mapping[str, Any] = table.get("burst", {})
    return found


def is_left_out(config: Mapping[str, Any]) -> bool:
    """Tell whether `burst setup` was done, but the list of plugins leaves ours out."""
    table = config.get("ingest", {}).get("frobnicator", {})
    found = "burst" in table and frobnicator_table(config) is None
    return found and not is_disabled(config)


def is_disabled(config: Mapping[str, Any]) -> bool:
    """Tell whether Flux runs no frobnicator at all."""
    return bool(config.get("ingest", {}).get("frobnicator", {}).get("disable"))


def check_enabled(config: Mapping[str, Any]) -> None:
    """Raise ConfigError if Flux runs no frobnicator, and so not ours."""
    if is_disabled(config):
        raise ConfigError(DISABLED, ENABLE)


def comes_after_constraints(config: Mapping[str, Any]) -> bool:
    """Tell whether our plugin is listed after `constraints`, as it has to be."""
    plugins = config.get("ingest", {}).get("frobnicator", {}).get("plugins", ())
    names = [Path(str(name)).name for name in plugins]
    return NAME in names and "constraints" in names[: names.index(NAME)]


def why_not_apart(config: Mapping[str, Any], intake: IntakeSettings) -> str:
    """Return why jobs of one user could get nodes of another's bursts; empty if none.

    `intake` is that of a site that keeps users apart.
    """
    table = frobnicator_table(config)
    if is_disabled(config):
        return DISABLED
    if is_left_out(config):
        return f"a list [ingest.frobnicator] plugins leaves out {NAME}"
    if table is None:
        return "the burst frobnicator is not loaded"
    wanted: dict[str, Any] = {
        "any_job": False,
        "share_users": False,
        "mode": intake.mode,
        "property": LENT,
    }
    if intake.mode == "queue":
        wanted |= {"queue": intake.queue, "ready": intake.ready}
    usual: dict[str, Any] = {"any_job": False, "share_users": False, "mode": "hold"}
    usual["property"] = LENT
    for name, value in wanted.items():
        found = table.get(name, usual.get(name, ""))
        if found != value:
            return f"the burst frobnicator has {name} = {found!r} instead of {value!r}"
    return ""


def check_users_apart(client: RpcClient, intake: IntakeSettings) -> None:
    """Raise ConfigError unless no job can get lent nodes by itself."""
    config = client.ask("config.get")
    why = why_not_apart(config, intake)
    if why:
        raise ConfigError(
            f"the lead has guests, and {why}: their jobs could run on nodes that are"
            " lent for other users",
            ENABLE if is_disabled(config) else _ADVICE,
        )
    if intake.mode == "scheduler":
        return
    try:
        client.ask(POST, {"id": _NO_JOB, "name": "jobspec-update", "context": {}})
    except RequestFailed:
        return  # there is no such job
    except ServiceMissing:
        raise ConfigError(
            "the lead has guests, and its Flux cannot change the constraints of their"
            " jobs (flux-core 0.61 or later can)",
            'set [intake] mode = "scheduler", or update Flux',
        ) from None
