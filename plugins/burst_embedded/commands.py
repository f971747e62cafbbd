# SPDX-License-Identifier: MIT
"""`burst embedded …`: run the stand-in's brokers; submit, attach to and cancel jobs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from burst import log
from burst.decode import from_json
from burst.errors import BurstError, ConfigError
from burst.extensions import StandIn
from burst.flux.rpc import RpcClient
from burst.lead import NewJob
from burst.model.exit_status import shell_status
from burst.model.hold import DEFAULT_URGENCY
from burst.model.jobid import JobId, format_f58, parse_jobid
from burst.model.program import command_jobspec
from burst_embedded.boot import read_broker_config, read_resources
from burst_embedded.follower import FollowerBroker
from burst_embedded.handle import SCHEME, connect_handle
from burst_embedded.lead import LeadBroker
from burst_embedded.lead_client import EmbeddedLead
from burst_embedded.process import (
    SOCKET,
    make_directory,
    private_directory,
    stop_signals,
)

_LOOK_S = 0.1


def _broker_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--rundir",
            type=Path,
            required=True,
            help="Private directory of this broker.",
        ),
        click.option("--hostname", required=True, help="Host name of this broker."),
        click.option(
            "--config",
            type=Path,
            required=True,
            help="Its broker.toml, in Flux's format.",
        ),
    ):
        command = option(command)
    return command


@click.group("embedded", hidden=True)
def group() -> None:
    """A lead and followers in pure Python: a stand-in for Flux.

    For the demo and for tests on machines without Flux, and for nothing else: jobs are
    lost with the lead, only its owner can use it, and there is no tree of brokers. Use
    Flux for all other work: https://flux-framework.org
    """


@group.command()
@_broker_options
@click.option("--statedir", type=Path, help="Directory of the store.")
def lead(config: Path, hostname: str, rundir: Path, statedir: Path | None) -> None:
    """Run rank 0, until SIGTERM. A stand-in for Flux, for the demo and for tests.

    With the files of `burst lead init DIR`: burst embedded lead --config
    DIR/broker.toml --hostname HOST --rundir DIR/run --statedir DIR/state. Its clients
    find it with FLUX_URI=embedded:///DIR/run/control, where /DIR is the whole path.
    """
    log.start("text")
    boot = read_broker_config(config, hostname)
    if boot.rank:
        raise ConfigError(
            f"{config}: {hostname} is rank {boot.rank}, and the lead is rank 0",
            f"say --hostname {boot.hosts[0].host}",
        )
    resources = read_resources(config, boot.hosts)
    if statedir:
        statedir = statedir.absolute()
        make_directory(statedir)
    directory, stop = private_directory(rundir), stop_signals()
    with closing(LeadBroker(boot, resources, directory, statedir)) as broker:
        broker.run(stop)


@group.command()
@_broker_options
def follower(config: Path, hostname: str, rundir: Path) -> None:
    """Join the lead that broker.toml names, until SIGTERM. A stand-in for Flux.

    Connects to rank 0 even if the file names a parent: there is no tree.
    """
    log.start("text")
    boot = read_broker_config(config, hostname)
    directory, stop = private_directory(rundir), stop_signals()
    with closing(FollowerBroker(boot, directory)) as broker:
        broker.run(stop)


_uri_option = click.option(
    "--uri",
    envvar="FLUX_URI",
    required=True,
    help="URI of the lead; default $FLUX_URI.",
)


@group.command(context_settings={"allow_interspersed_args": False})
@_uri_option
@click.option(
    "-N", "nodes", type=click.IntRange(1), default=1, help="Number of whole nodes."
)
@click.option(
    "--setattr",
    "attributes",
    multiple=True,
    type=click.Choice(["burstable"]),
    help="Attribute to set in the jobspec.",
)
@click.option(
    "--requires",
    metavar="PROPERTY",
    help="Property that its nodes must have, such as burst.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(
    uri: str,
    nodes: int,
    attributes: tuple[str, ...],
    requires: str | None,
    command: tuple[str, ...],
) -> None:
    """Submit a job with one task per node, and print its id."""
    jobspec = from_json(command_jobspec(command, nodes, 0), dict[str, Any])
    system = jobspec["attributes"]["system"]
    system |= dict.fromkeys(attributes, True)
    system |= {"cwd": str(Path.cwd()), "environment": dict(os.environ)}
    if requires:
        system["constraints"] = {"properties": [requires]}
    with closing(EmbeddedLead(uri)) as lead:
        (answer,) = lead.submit_jobs([NewJob(jobspec, DEFAULT_URGENCY)])
    if isinstance(answer, BurstError):
        raise answer
    click.echo(format_f58(answer))


@group.command()
@_uri_option
@click.argument("job_id", type=parse_jobid)
def attach(uri: str, job_id: JobId) -> None:
    """Wait for a job's end, print its output, and exit with its status."""
    with closing(EmbeddedLead(uri)) as lead:
        while (events := lead.events(job_id))[-1].name != "clean":
            time.sleep(_LOOK_S)
        pieces = lead.output(job_id)
    for piece in pieces:
        click.echo(piece.data, nl=False, err=piece.stream == 2)
    status = 1
    for event in events:
        if event.name == "exception":
            text = "{type} {note}".format(**event.context)
            click.echo(f"{format_f58(job_id)}: exception: {text}", err=True)
        elif event.name == "finish":
            code = os.waitstatus_to_exitcode(event.context["status"])
            status = shell_status(code)
    sys.exit(status)


@group.command()
@_uri_option
@click.argument("job_ids", nargs=-1, required=True, type=parse_jobid)
def cancel(uri: str, job_ids: tuple[JobId, ...]) -> None:
    """Cancel jobs: waiting jobs end at once, running jobs get SIGTERM."""
    with closing(connect_handle(uri)) as handle:
        for job_id in job_ids:
            asked = {"id": job_id, "type": "cancel", "note": ""}
            RpcClient(handle).ask("job-manager.raise", asked)


def _start_commands(directory: Path, hosts: Sequence[str]) -> list[list[str]]:
    """Return by host the command that starts its broker, with the files of a lead."""
    found = []
    for rank, host in enumerate(hosts):
        role = "follower" if rank else "lead"
        # Each has its own directory, because own hosts may share a disk.
        rundir = directory / "run" / host if rank else directory / "run"
        state = () if rank else ("--statedir", str(directory / "state"))
        words = ["burst", "embedded", role, "--config", str(directory / "broker.toml")]
        found.append([*words, "--hostname", host, "--rundir", str(rundir), *state])
    return found


STAND_IN = StandIn(
    name="embedded",
    user=("burst", "embedded"),
    brokers=_start_commands,
    uri=lambda directory: f"{SCHEME}{directory}/run/{SOCKET}",
    tell_host=("printenv", "BURST_HOSTNAME"),
)
