# SPDX-License-Identifier: MIT
"""Run ensembles in a process of their own: `burst ensemble run`.

Over one connection to the lead it serves `burst-ensemble`, submits jobs and keeps the
records; each request to the daemon uses a connection of its own. The service is its
lock. It continues while no daemon serves. If the lead is lost, it connects again and
reads its records anew.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from burst import log
from burst.config import Settings
from burst.errors import (
    ConfigError,
    Denied,
    LeadError,
    LeadGone,
    NoDaemon,
    ServiceTaken,
    Unreadable,
)
from burst.lead import ANSWER_S, Lead, NamedServices, ServiceRequest
from burst.runtime.connect import require_owner
from burst.runtime.service_answers import Row, describe_process
from burst.wakeup import WakeUp
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.runtime.client import IN_DAEMON, SERVICE, TAGGED, DaemonClient
from burst_ensemble.runtime.service import EnsembleService

_AGAIN_S = 1.0
"""Seconds between two attempts to connect, and between two checks of the lead."""
_READ_S = 10.0
"""Seconds to wait for an answer that needs no tick. A daemon sends it at once, and one
that was killed never does."""
_ADVICE = "set in_daemon = false under [ensemble], and start the daemon again"


class EnsembleProcess:
    """The process of `burst ensemble run`.

    Call `run` in one thread, and `stop` in any thread or in a signal handler.
    """

    def __init__(
        self,
        settings: Settings,
        connector: Callable[[], Lead],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ConfigError if the settings say that ensembles run in the daemon."""
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

        Raises ServiceTaken if another process runs them, ConfigError if the daemon does
        or the lead does not support it, Denied for a user who does not own the lead.
        """
        while not self._stopping:
            try:
                with closing(self._connector()) as lead:
                    self._serve(lead)
            except ServiceTaken:
                raise
            except LeadError as error:
                self._say(str(error))
            self._wakeup.wait(0.0 if self._stopping else _AGAIN_S)

    def _serve(self, lead: Lead) -> None:
        """Run ensembles until told to stop. Raises LeadGone if the lead is lost."""
        require_owner(lead.identity(), os.geteuid())
        if not isinstance(lead, NamedServices):
            raise ConfigError(
                f"a lead of kind {lead.identity().kind} has only the daemon's service",
                "leave in_daemon out: the daemon runs its ensembles",
            )
        _check_alone(lead)
        daemon = DaemonClient(
            call=self._call,
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
                self._wakeup.wait(_AGAIN_S)
                try:
                    _check_alone(lead)
                except LeadGone:
                    raise
                except Unreadable:
                    continue  # it was killed as it was asked, or is busy
        finally:
            service.ensembles.close()

    def _call(self, method: str, payload: dict[str, Any]) -> Row:
        """Call a method of the service `burst`, from any thread.

        No call waits for the answer to another. Raises BurstError: NoDaemon while no
        daemon serves, LeadGone if the lead is lost.
        """
        limit = _READ_S if method == TAGGED else ANSWER_S
        with closing(self._connector()) as lead:
            return lead.call(method, payload, limit)

    def _say(self, text: str) -> None:
        if text != self._said:
            log.say("%s; it tries again", text, level=logging.WARNING)
        self._said = text


def _check_alone(lead: Lead) -> None:
    """Raise ConfigError if the daemon runs ensembles, LeadGone if the lead is lost.

    If no daemon serves, this process is alone. Raises Unreadable without an answer.
    """
    try:
        found = lead.call(IN_DAEMON, {}, _READ_S)
    except NoDaemon:
        return
    if found["in_daemon"]:
        raise ConfigError("the daemon of this lead runs ensembles", _ADVICE)
