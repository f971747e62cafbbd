# SPDX-License-Identifier: MIT
"""`burst embedded …`: the stand-in's brokers, and what a user does with its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from burst import log
from burst.errors import BurstError, ConfigError
from burst.extensions import StandIn
from burst_embedded import jobcommands
from burst_embedded.boot import read_broker_config, read_nodes
from burst_embedded.follower import FollowerBroker
from burst_embedded.lead import LeadBroker
from burst_embedded.process import (
    SOCKET,
    make_directory,
    private_directory,
    stop_signals,
)


class _Group(click.Group):
    """Errors that people are meant to read are shown without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BurstError as error:
            raise click.ClickException(str(error)) from error


def _broker_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--rundir", type=Path, required=True, help="Private, one for each broker."
        ),
        click.option("--hostname", required=True, help="Which of the hosts it is."),
        click.option(
            "--config", type=Path, required=True, help="Its broker.toml, as for Flux."
        ),
    ):
        command = option(command)
    return command


@click.group("embedded", cls=_Group)
def group() -> None:
    """A lead and followers in pure Python: a stand-in for Flux.

    For the demo and for tests on machines without Flux, and for nothing else: jobs are
    lost with the lead, only its owner can use it, and there is no tree of brokers. Flux
    is the real thing: https://flux-framework.org
    """


@group.command()
@_broker_options
@click.option(
    "--statedir", type=Path, help="Where the owner id and the store outlive the lead."
)
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
    nodes = read_nodes(config, boot.hosts)
    if statedir:
        statedir = statedir.absolute()
        make_directory(statedir)
    with (
        stop_signals() as stop,
        private_directory(rundir) as directory,
        closing(LeadBroker(boot, nodes, directory, statedir)) as broker,
    ):
        broker.run(stop)


@group.command()
@_broker_options
def follower(config: Path, hostname: str, rundir: Path) -> None:
    """Join the lead that the file names, until SIGTERM. A stand-in for Flux.

    Connects to rank 0 also where the file names a parent: there is no tree.
    """
    log.start("text")
    boot = read_broker_config(config, hostname)
    with (
        stop_signals() as stop,
        private_directory(rundir) as directory,
        closing(FollowerBroker(boot, directory)) as broker,
    ):
        broker.run(stop)


def _start_commands(directory: Path, hosts: Sequence[str]) -> list[list[str]]:
    """Return what starts the broker of each own host, with the files of a lead."""
    found = []
    for rank, host in enumerate(hosts):
        role = "follower" if rank else "lead"
        # Own hosts may share a disk, as those of one machine do.
        rundir = directory / "run" / host if rank else directory / "run"
        state = () if rank else ("--statedir", str(directory / "state"))
        words = ["burst", "embedded", role, "--config", str(directory / "broker.toml")]
        found.append([*words, "--hostname", host, "--rundir", str(rundir), *state])
    return found


STAND_IN = StandIn(
    name="embedded",
    user=("burst", "embedded"),
    brokers=_start_commands,
    uri=lambda directory: f"embedded://{directory}/run/{SOCKET}",
    tell_host=("printenv", "BURST_HOSTNAME"),
)

for _command in jobcommands.COMMANDS:
    group.add_command(_command)
