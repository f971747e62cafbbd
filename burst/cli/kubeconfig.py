# SPDX-License-Identifier: MIT
"""`burst kubeconfig`: how a person reaches the cluster of a burst."""

from __future__ import annotations

import click

from burst.cli.daemon_call import ask_or_read
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_burst, find_burst
from burst.cli.wait_for_burst import row_of
from burst.errors import BurstError
from burst.model.burst import BurstId
from burst.runtime.provider_registry import access_commands


@click.command()
@click.argument("typed", metavar="BURST", shell_complete=complete_burst)
@target_options
def kubeconfig(typed: str, target: Target) -> None:
    """Print the commands to reach the cluster that BURST runs in.

    BURST is an id, a prefix of one, or `last`: the burst made last.
    The commands are for a shell, such as gcloud container clusters get-credentials, and
    kubectl for the burst's pods. They use your own account at the cloud or cluster.
    """
    with target.lead() as lead, show_wait("looking for the cluster"):
        found = ask_or_read(lead, target, "status")
        burst = find_burst(typed, lambda: found)
        provider = row_of(found, burst).provider
        settings = Target(target.find_beside(lead), target.uri).settings()
        commands = access_commands(settings, lead.identity(), provider, BurstId(burst))
    if not commands:
        raise BurstError(
            f"{burst} is of provider {provider}, which has no cluster to reach",
            "burst status shows its nodes",
        )
    for line in commands:
        click.echo(line)
