# SPDX-License-Identifier: MIT
"""Flux CLI plugin for the one `flux batch` that `burst lead batch` runs.

A batch job's brokers are its tasks. They find each other by PMI, and then their number
is fixed; so a program of ours starts each of them instead, with a configuration that
declares further ranks. Everything else in the job is as `flux batch` makes it.
"""

import json
import os

from flux.cli.plugin import CLIPlugin

_VARIABLE = "BURST_LEAD_BATCH"
_PATH = "FLUX_CLI_PLUGINPATH"
_SCRIPT = "{{tmpdir}}/script"


class LeadBatchPlugin(CLIPlugin):
    """Have a program of ours start the brokers of this batch job."""

    def __init__(self, prog):
        super().__init__(prog, prefix=None)

    def preinit(self, args):
        if args.conf is not None and args.conf.config:
            raise ValueError(
                "--conf: the lead writes a configuration of its own; leave --conf out"
            )
        if args.quiet:
            raise ValueError("--quiet: burst lead batch needs the jobid; leave it out")

    def modify_jobspec(self, args, jobspec):
        told = json.loads(os.environ[_VARIABLE])
        (task,) = jobspec.tasks
        command = task["command"]
        start = command.index(_SCRIPT)
        options = [f"--broker-opt={option}" for option in command[2:start]]
        task["command"] = [*told["command"], *options, "--", *command[start:]]
        # This plugin must not change what the script submits.
        environment = jobspec.environment
        environment.pop(_VARIABLE, None)
        environment.pop(_PATH, None)
        if told["path"]:
            environment[_PATH] = told["path"]
