# SPDX-License-Identifier: MIT
"""Runs ensembles in a process of their own: `burst ensemble run`.

It has two connections to the lead: one serves `burst-ensemble`, submits jobs and keeps
the records, by the other it calls the daemon. The service is its lock. It goes on while
no daemon serves; where the lead is lost it connects again and reads its records anew.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from burst import log
from burst.config import Settings
from burst.errors import ConfigError, Denied, LeadError, NoDaemon, ServiceTaken
from burst.lead import Lead, NamedServices, ServiceRequest
from burst.runtime.connect import require_owner
from burst.runtime.service_answers import Row, describe_process
from burst.wakeup import WakeUp
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.runtime.client import IN_DAEMON, SERVICE, DaemonClient
from burst_ensemble.runtime.service import EnsembleService

_AGAIN_S = 1.0
"""Between two attempts to connect, and between two looks whether the lead is there."""
_CALL_S = 60.0
"""A request for nodes waits for a tick of the daemon."""
_ADVICE = "set in_daemon = false under [ensemble], and start the daemon again"


class EnsembleProcess:
    """`run` in one thread; `stop` from any, and from a signal handler."""

    def __init__(
        self,
        settings: Settings,
        connector: Callable[[], Lead],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ConfigError where the settings have ensembles run in the daemon."""
        if ensemble_settings(settings).in_daemon:
            raise ConfigError("ensembles run in the daemon's process", _ADVICE)
        self._settings, self._connector, self._clock = settings, connector, clock
        self._wakeup = WakeUp()
        self._stopping = False
        self._said = ""
        self._began = clock()

    def stop(self) -> None:
        """Have `run` return soon."""
        self._stopping = True
        self._wakeup.wake()

    def run(self) -> None:
        """Run ensembles until told to stop.

        Raises ServiceTaken where another process does, ConfigError where the daemon
        does, and Denied for another user than the lead's.
        """
        while not self._stopping:
            try:
                with (
                    closing(self._connector()) as lead,
                    closing(self._connector()) as caller,
                ):
                    self._serve(lead, SharedConnection(caller))
            except ServiceTaken:
                raise
            except LeadError as error:
                self._say(str(error))
            self._wakeup.wait(0.0 if self._stopping else _AGAIN_S)

    def _serve(self, lead: Lead, calls: SharedConnection) -> None:
        """Run ensembles until told to stop. Raises LeadGone where the lead is lost."""
        require_owner(lead.identity(), os.geteuid())
        if not isinstance(lead, NamedServices):
            raise ConfigError(
                f"a lead of kind {lead.identity().kind} has only the daemon's service",
                "leave in_daemon out: the daemon runs its ensembles",
            )
        calls.check_alone()
        daemon = DaemonClient(
            call=calls.call,
            lead=lead,
            settings=lambda: self._settings,
            clock=self._clock,
        )
        service = EnsembleService(daemon)

        def answer(request: ServiceRequest) -> Row:
            if not request.owner:
                raise Denied("only the instance owner may ask about ensembles")
            return service.answer(request.method, request.payload)

        lead.serve_named(SERVICE, answer, describe_process(self._began))
        service.ensembles.start()
        self._said = ""
        log.say("runs the ensembles of %s", lead.identity().uri)
        try:
            while not self._stopping:
                calls.check_alone()
                self._wakeup.wait(_AGAIN_S)
        finally:
            service.ensembles.close()

    def _say(self, text: str) -> None:
        if text != self._said:
            log.say("%s; it tries again", text, level=logging.WARNING)
        self._said = text


class SharedConnection:
    """Calls the daemon over one connection, from any thread, one call at a time."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._lock = threading.Lock()

    def call(self, method: str, payload: dict[str, Any]) -> Row:
        """Call a method of the service `burst`.

        Raises BurstError: NoDaemon while none serves, LeadGone where the lead is lost.
        """
        with self._lock:
            return self._lead.call(method, payload, _CALL_S)

    def check_alone(self) -> None:
        """Raise ConfigError if the daemon runs ensembles, LeadGone without a lead.

        While no daemon serves nobody else does.
        """
        try:
            found = self.call(IN_DAEMON, {})
        except NoDaemon:
            return
        if found["in_daemon"]:
            raise ConfigError("the daemon of this lead runs ensembles", _ADVICE)
