# SPDX-License-Identifier: MIT
"""`burst daemon`: serves a lead."""

from __future__ import annotations

import os

import click

from burst import log
from burst.cli.target import Target, target_options
from burst.daemon import Daemon


@click.command()
@target_options
def daemon(target: Target) -> None:
    """Serve a lead: watch its jobs, burst for them, and take the bursts down again.

    SIGTERM ends it and leaves bursts alone, unless `[daemon] on_stop = "reap"`;
    SIGHUP reads the settings again. In a pod other than the first of an indexed Job it
    ends at once, since the lead runs in the first.
    """
    # A reload reads this file again, also if another one is found first by then.
    target = Target(target.find(), target.uri)
    log.start(target.settings().daemon.log)
    # The Job controller sets it. A MiniCluster runs sidecars in every pod, and is
    # complete only when all have exited with status 0.
    index = os.environ.get("JOB_COMPLETION_INDEX", "0")
    if index != "0":
        log.say("this is pod %s; the daemon runs beside the lead, in pod 0", index)
        return
    process = Daemon(target.settings, target.config)
    process.handle_signals()
    process.run()
