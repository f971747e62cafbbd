# SPDX-License-Identifier: MIT
"""Follows all jobs of the lead, for forecasts and for the file of `[daemon] record`."""

from __future__ import annotations

from pathlib import Path

from burst.config import Settings
from burst.core.worth.marks import marking
from burst.lead import Lead, WholeQueue
from burst.runtime.engine_config import EngineConfig
from burst.runtime.forecaster import Forecaster
from burst.runtime.job_recorder import JobRecorder


class QueueFollower:
    """Does nothing if the lead does not tell of all jobs. Use from one thread."""

    def __init__(self, lead: Lead, forecaster: Forecaster | None) -> None:
        """`forecaster` is None where the lead does not tell of all jobs."""
        self._lead = lead
        self._forecaster = forecaster
        self._recorder: JobRecorder | None = None
        self._followed: tuple[object, ...] | None = None
        """The settings by which jobs are followed now."""

    def follow(self, config: EngineConfig) -> None:
        """Follow all jobs if the settings need that; begin anew if these changed."""
        lead, forecaster, settings = self._lead, self._forecaster, config.settings
        if not isinstance(lead, WholeQueue) or forecaster is None:
            return
        needs = _needs(settings)
        if needs == self._followed:
            return
        self._followed = needs
        self._close_recorder()
        if not settings.needs_forecast:
            lead.follow_queue(None)
            forecaster.close()
            return
        forecaster.start(settings)
        if settings.daemon.record:
            self._recorder = JobRecorder(Path(settings.daemon.record))
        lead.follow_queue(
            forecaster,
            marking(settings.rules, config.userids),
            self._recorder.record if self._recorder else None,
        )

    def close(self) -> None:
        """End the forecaster, and close the file."""
        if self._forecaster is not None:
            self._forecaster.close()
        self._close_recorder()

    def _close_recorder(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()


def _needs(settings: Settings) -> tuple[object, ...]:
    """Return the settings that decide whether and how all jobs are followed."""
    daemon = settings.daemon
    return settings.needs_forecast, daemon.forecast, daemon.record, settings.rules
