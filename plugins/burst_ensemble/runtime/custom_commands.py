# SPDX-License-Identifier: MIT
"""Runs the commands of `[custom]` in the file of an ensemble."""

from __future__ import annotations

import logging
import os
import subprocess
import threading

from burst import log
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import RunCustom
from burst_ensemble.runtime.files import environment_of


def run_command(spec: EnsembleSpec, intent: RunCustom, uri: str) -> None:
    """Start a command beside the daemon; its exit status goes to the log.

    `uri` is the lead's. Of the daemon's environment it has what jobs of an ensemble
    may have: others may hold secrets, and the file's author need not know them.
    """
    told = {
        "BURST_ENSEMBLE": spec.name,
        "BURST_MEMBER": intent.member,
        "BURST_COMMAND_NUMBER": str(intent.number),
        "FLUX_URI": uri,
    }
    label = f"ensemble {spec.name}: command {intent.command} of {intent.member}"
    try:
        process = subprocess.Popen(
            list(spec.custom[intent.command]),
            cwd=spec.directory or "/",
            env=environment_of(os.environ, told),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        log.say("%s cannot be run: %s", label, error, level=logging.WARNING)
        return

    def wait() -> None:
        status = process.wait()
        level = logging.WARNING if status else logging.INFO
        log.say("%s ended with status %d", label, status, level=level)

    threading.Thread(target=wait, name="burst-custom", daemon=True).start()
