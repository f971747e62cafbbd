# SPDX-License-Identifier: MIT
"""`burst ensemble agent`: runs beside an external member."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import click
from burst_ensemble.config.spec import NAME_OF_MEMBER
from burst_ensemble.runtime.files import environment_of

from burst import log
from burst.cli.numbers import Duration
from burst.errors import ConfigError
from burst.runtime.connect import connect
from burst.wakeup import on_signals
from burst_ensemble_agent.agent import AgentSite, EnsembleAgent
from burst_ensemble_agent.client import AgentClient


@click.command()
@click.argument("about", metavar="ENSEMBLE/MEMBER")
@click.option(
    "--daemon",
    required=True,
    help="URL of the daemon: https://HOST, or http://127.0.0.1:9779",
)
@click.option(
    "--token-file",
    required=True,
    type=click.Path(dir_okay=False),
    help="File with the token of [http] token_file, which only this user can read.",
)
@click.option(
    "--ca",
    default="",
    type=click.Path(dir_okay=False),
    help="Certificates to trust, for https. Default: the system's.",
)
@click.option(
    "--plain-http",
    is_flag=True,
    help="Send the token in the clear to a daemon on another host, where nobody can"
    " read what goes between the two. Without, http is for this host only.",
)
@click.option("--uri", default="", help="URI of the instance. Default: FLUX_URI.")
@click.option(
    "--start",
    type=Duration(),
    default="10m",
    show_default=True,
    help="How long to wait for the instance at first.",
)
@click.option(
    "--gone",
    type=Duration(),
    default="1m",
    show_default=True,
    help="How long the instance may be away later: past that it has ended, and so has"
    " the agent.",
)
def agent(  # noqa: PLR0913, PLR0917 - one for each option
    about: str,
    daemon: str,
    token_file: str,
    ca: str,
    uri: str,
    start: float,
    gone: float,
    *,
    plain_http: bool,
) -> None:
    """Report on the instance beside which this runs, and do what the daemon answers.

    For a member with mode = "external". It runs beside the broker of rank 0 as the
    user of the instance, and connects to the daemon, never the other way round. It
    ends with status 0 on SIGTERM, when the member has ended, and when the instance is
    gone. In a pod other than the first of an indexed Job it ends at once.
    """
    log.start("text")
    # A MiniCluster runs sidecars in every pod, and is complete only when all have
    # exited with status 0.
    index = os.environ.get("JOB_COMPLETION_INDEX", "0")
    if index != "0":
        log.say("this is pod %s; the agent is beside rank 0, in pod 0", index)
        return
    ensemble, _, member = about.partition("/")
    if not all(map(NAME_OF_MEMBER.fullmatch, (ensemble, member))):
        raise ConfigError(f"{about!r} is not ENSEMBLE/MEMBER", "as the file names them")
    site = AgentSite(
        about=about,
        environment=environment_of(os.environ, {}),
        directory=str(Path.cwd()),
        start=start,
        gone=gone,
    )
    client = AgentClient(daemon, token_file, ca, plain=plain_http)
    post = partial(client.post, f"{ensemble}.{member}")
    process = EnsembleAgent(site, lambda: connect(uri, "burstable"), post)
    on_signals(process.stop, signal.SIGTERM, signal.SIGINT)
    process.run()
    log.say("the agent of %s ends", about)
