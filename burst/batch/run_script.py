# SPDX-License-Identifier: MIT
"""Initial program of rank 0: runs the daemon and the user's script.

The instance ends with this program, so the program takes all bursts down before. A job
that is canceled or out of time gets SIGTERM and has a few seconds until SIGKILL
(`kill-timeout`, flux-config-exec(5)), so the program does not wait for jobs then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from types import FrameType

from burst.batch.daemon_supervisor import DaemonSupervisor
from burst.batch.flux_command import run_flux
from burst.batch.lead_directory import LeadDirectory
from burst.batch.reap import PrintLine, reap_lead
from burst.config import Settings, load
from burst.errors import BurstError, LeadError, NoDaemon
from burst.lead import Lead
from burst.model.exit_status import shell_status
from burst.runtime.connect import connect
from burst.runtime.lead_watch import ADDRESS_S

SERVE_DEADLINE_S = 60.0
"""How long the daemon may take to serve after its start, in addition to ADDRESS_S."""
IDLE_DEADLINE_S = 60.0
"""How long jobs that the script left may take to end after they were canceled."""
CANCEL_GRACE_S = 1.0
"""Time that script and daemon have to end once the job is canceled or out of time."""
_SLACK_S = 60.0
_LOOK_S = 0.1
_STOP_JOBS = (
    # As a broker does at its end (rc1.py of flux-core), but jobs that wait end too:
    # nothing is to be bursted for them any more.
    ("queue", "stop", "--quiet", "--all", "--nocheckpoint"),
    ("cancel", "--user=all", "--quiet"),
    ("queue", "idle", "--quiet"),
)


class ScriptRunner:
    """Runs one script in a lead of its own. Use it in the main thread."""

    def __init__(self, directory: LeadDirectory, job: str, tell: PrintLine) -> None:
        self._directory = directory
        self._flux = directory.request().flux
        self._job = job
        self._tell = tell
        self._canceled = False
        """Whether a signal told this process to end."""
        self._script: subprocess.Popen[bytes] | None = None

    def run(self, script: Sequence[str]) -> int:
        """Run the script, take all bursts down, and return the script's exit status.

        Bursts that are left at the deadline are printed, and a status of 0 becomes 1.
        Raises BurstError if the daemon does not get to serve; then the script is not
        run.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)
        settings = load(self._directory.settings)
        with contextlib.closing(connect("")) as lead:
            # Written before anything can be made that has this tag.
            self._directory.set_owner(lead.identity().owner)
            daemon = DaemonSupervisor(self._directory, self._tell)
            try:
                limit = SERVE_DEADLINE_S + ADDRESS_S
                status = shell_status(-signal.SIGTERM)
                if self._await_daemon(lead, daemon, limit):
                    daemon.attend()
                    status = self._run_script(script, settings)
            finally:
                clean = self._end(lead, daemon, settings)
            return status if clean else status or 1

    def _on_signal(self, _: int, __: FrameType | None) -> None:
        if not self._canceled:
            self._canceled = True
            self._pass_on(signal.SIGTERM)
            signal.setitimer(signal.ITIMER_REAL, CANCEL_GRACE_S)

    def _on_alarm(self, _: int, __: FrameType | None) -> None:
        self._pass_on(signal.SIGKILL)

    def _pass_on(self, number: signal.Signals) -> None:
        if self._script is not None and self._script.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._script.pid, number)

    def _await_daemon(
        self, lead: Lead, daemon: DaemonSupervisor, limit_s: float
    ) -> bool:
        """Return True once the daemon serves, False if told to end meanwhile."""
        ends = time.monotonic() + limit_s
        while not self._canceled:
            with contextlib.suppress(NoDaemon):
                lead.call("ping", {})
                return True
            if not daemon.is_running() or time.monotonic() > ends:
                raise LeadError(
                    "the daemon did not start, so the script was not run:"
                    f" {daemon.last_words()}"
                )
            time.sleep(_LOOK_S)
        return False

    def _run_script(self, script: Sequence[str], settings: Settings) -> int:
        if settings.intake.mode == "queue":
            # Flux starts named queues stopped.
            run_flux(self._flux, "queue", "start", "--quiet", "--queue=batch")
        environment = {**os.environ, "FLUX_ENCLOSING_ID": self._job}
        try:
            self._script = subprocess.Popen(script, env=environment, process_group=0)
        except OSError as error:
            # The exit statuses of a shell.
            self._tell(
                f"the script cannot be run: {error.strerror}; check its first line (#!)"
            )
            return 127 if isinstance(error, FileNotFoundError) else 126
        if self._canceled:
            self._pass_on(signal.SIGTERM)
        status = self._script.wait()
        return shell_status(status)

    def _end(self, lead: Lead, daemon: DaemonSupervisor, settings: Settings) -> bool:
        """Take everything down; return whether nothing is left."""
        if not self._canceled:
            self._stop_jobs()
            self._stop_daemon(lead, daemon, settings.deadlines.reap)
        # The first SIGTERM makes the daemon take all bursts down, a second ends it.
        for grace in (_LOOK_S, CANCEL_GRACE_S):
            daemon.end()
            daemon.wait(grace)
        daemon.kill()
        try:
            reap_lead(self._directory, self._tell)
        except BurstError as error:
            self._tell(f"ERROR: {error}")
            return False
        if self._canceled:
            # The process that otherwise removes the directory may be killed before.
            self._directory.remove()
        return True

    def _stop_jobs(self) -> None:
        for words in _STOP_JOBS:
            if self._canceled:
                return
            try:
                run_flux(self._flux, *words, timeout_s=IDLE_DEADLINE_S)
            except LeadError as error:
                self._tell(str(error))

    def _stop_daemon(
        self, lead: Lead, daemon: DaemonSupervisor, limit_s: float
    ) -> None:
        """Have the daemon take all bursts down; print the progress until it ends."""
        daemon.end()
        said = ""
        # The daemon ends by itself after deadlines.reap.
        ends = time.monotonic() + limit_s + _SLACK_S
        while daemon.is_running() and not self._canceled and time.monotonic() < ends:
            line = _progress(lead)
            if line not in {"", said}:
                said = line
                self._tell(line)
            time.sleep(_LOOK_S)


def _progress(lead: Lead) -> str:
    """Return a line on the live bursts, empty without any."""
    try:
        rows = lead.call("status", {})["bursts"]
    except BurstError:
        return ""  # it has just ended
    live = [
        f"{row['id']} ({row['state']})" for row in rows if row["state"] != "inactive"
    ]
    return f"taking down {', '.join(live)}" if live else ""
