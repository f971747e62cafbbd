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
from burst.cli.numbers import duration_option
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
    help="File, readable by this user only, with the token of the daemon's [http]"
    " token_file.",
)
@click.option(
    "--ca",
    default="",
    type=click.Path(dir_okay=False),
    help="File of certificates to trust for https. Default: the system's.",
)
@click.option(
    "--plain-http",
    is_flag=True,
    help="Allow http to a daemon on another host. The token is sent in the clear: use"
    " this only if nobody can read the traffic. Without it, http is for this host"
    " only.",
)
@click.option("--uri", default="", help="URI of the instance. Default: FLUX_URI.")
@duration_option(
    "--start", "How long to wait at the start for the instance to answer.", "10m"
)
@duration_option(
    "--gone",
    "How long the instance may not answer later. After this time it counts as ended,"
    " and the agent ends.",
    "1m",
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
    """Report on this instance to the daemon, and do what the daemon answers.

    For a member with mode = "external". The agent runs beside the broker of rank 0 as
    the user of the instance. It connects to the daemon, never the other way round. It
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
    process = EnsembleAgent(site, lambda: connect(uri), post)
    on_signals(process.stop, signal.SIGTERM, signal.SIGINT)
    process.run()
    log.say("the agent of %s ends", about)
