# SPDX-License-Identifier: MIT
"""Calls to the lead that each tick makes besides its actions: queues, leases, memos.

These calls are not on record. A call that fails is repeated by a later tick, and never
ends the daemon.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from burst import log
from burst.config import Settings
from burst.core.jobs.confinement import keeps_users_apart, rank_leases
from burst.core.records import Records
from burst.errors import ConfigError, Denied, LeadError, LeadGone, Unreadable
from burst.lead import Lead, SchedulerHints, guests_of, queues_of, scheduler_of
from burst.model.decision import Decision
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, LeadView, LeasedRanks
from burst.runtime.memo_writer import MemoWriter


class LeadUpkeep:
    """Remembers what it sent to the lead last. Use from one thread."""

    def __init__(
        self, lead: Lead, settings: Settings, now: float, identity: LeadIdentity
    ) -> None:
        self._lead = lead
        self._settings = settings
        self._prepared = now
        self._lent: tuple[float, LeasedRanks | None] = (now, None)
        self._lent_trouble = ""
        self._identity = identity
        self._looked_apart = now
        self._apart_trouble = ""
        self._memos = MemoWriter(lead, identity)
        self._releases: dict[JobId, int] = {}

    def change(self, settings: Settings, identity: LeadIdentity) -> None:
        """Use other settings from now on. The scheduler is sent the leases again."""
        self._settings, self._identity = settings, identity
        self._memos.change(identity)
        self._lent = self._lent[0], None

    def release_later(self, urgencies: Mapping[JobId, int]) -> None:
        """Note jobs to release, as the lead did not answer when asked to."""
        self._releases |= urgencies

    def ask(
        self,
        records: Records,
        view: LeadView,
        decisions: Mapping[JobId, Decision],
        now: float,
    ) -> None:
        """Make all calls that are due. Raises LeadGone."""
        try:
            self._release(records, view)
            self._prepare_queues(now)
            self._check_users_apart(now)
            self._send_leases(records, view, now)
            self._memos.send(decisions, view.jobs, now)
        except LeadGone:
            raise
        except (Denied, LeadError) as error:
            log.warn("%s; the daemon asks again later", error)

    def _release(self, records: Records, view: LeadView) -> None:
        """Release again the jobs that `burst release` named and that are still held.

        All others are released again by the tick, from their records.
        """
        holds = records.holds
        self._releases = {
            job: urgency
            for job, urgency in self._releases.items()
            if job in view.jobs
            and view.jobs[job].urgency == 0
            and job in holds
            and holds[job].state is HoldState.TAKEN_BACK
        }
        if self._releases:
            self._lead.release(self._releases)
            self._releases = {}

    def _prepare_queues(self, now: float) -> None:
        """Stop and start our queues again once per `[daemon] cadence`.

        `flux queue start --all` also starts the queue in which jobs wait.
        """
        intake, cadence = self._settings.intake, self._settings.daemon.cadence
        if intake.mode != "queue" or now - self._prepared < cadence:
            return
        self._prepared = now
        try:
            queues_of(self._lead).prepare_queues(intake)
        except Unreadable:
            raise
        except (ConfigError, LeadError) as error:
            log.warn("%s", error)

    def _check_users_apart(self, now: float) -> None:
        """Check once per `[daemon] cadence` that the lead keeps users apart.

        `flux config reload` may remove the frobnicator that was loaded when the daemon
        started. A change is logged.
        """
        settings = self._settings
        if now - self._looked_apart < settings.daemon.cadence:
            return
        self._looked_apart = now
        trouble = ""
        if keeps_users_apart(self._identity, settings):
            try:
                guests_of(self._lead).check_users_apart(settings.intake)
            except ConfigError as error:
                trouble = str(error)
        if trouble != self._apart_trouble:
            level = logging.WARNING if trouble else logging.INFO
            log.say("%s", trouble or "the lead keeps users apart again", level=level)
        self._apart_trouble = trouble

    def _send_leases(self, records: Records, view: LeadView, now: float) -> None:
        """Tell the scheduler which ranks are leased, in intake mode `scheduler`.

        They are sent at each change, and once per `[daemon] cadence`, since the module
        may have been loaded again. After a failure, the next tick sends them.
        """
        if self._settings.intake.mode != "scheduler":
            return
        told_at, told = self._lent
        current = rank_leases(records, view)
        if current == told and now - told_at < self._settings.daemon.cadence:
            return
        try:
            scheduler_of(self._lead).send_leases(current)
        except Unreadable:
            raise
        except LeadError as error:
            self._lent = now, None
            if str(error) != self._lent_trouble:
                log.warn("%s", error)
            self._lent_trouble = str(error)
        else:
            self._lent, self._lent_trouble = (now, current), ""


def prepare_intake(lead: Lead, settings: Settings) -> None:
    """Make sure that jobs can come in as `[intake] mode` says.

    Mode `hold` works with every lead that has no guests. Raises ConfigError,
    Unreadable.
    """
    intake = settings.intake
    if intake.mode == "scheduler" or isinstance(lead, SchedulerHints):
        scheduler_of(lead).check_scheduler(intake)
    if intake.mode == "queue":
        queues_of(lead).prepare_queues(intake)
    if keeps_users_apart(lead.identity(), settings):
        guests_of(lead).check_users_apart(intake)
