# SPDX-License-Identifier: MIT
"""Follows all jobs of the lead, for forecasts and for the file of `[daemon] record`."""

from __future__ import annotations

from pathlib import Path

from burst import log
from burst.config import Settings
from burst.core.jobs.rules import marking
from burst.errors import Unreadable
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
        """Follow all jobs if the settings need that; begin anew if these changed.

        Raises ConfigError if the file of `[daemon] record` cannot be written; then
        nothing has changed.
        """
        lead, forecaster, settings = self._lead, self._forecaster, config.settings
        if not isinstance(lead, WholeQueue) or forecaster is None:
            return
        needs = _needs(settings)
        if needs == self._followed:
            return
        before, recorder = self._recorder, self._recorder_of(settings)
        self._recorder, self._followed = recorder, needs
        try:
            if settings.needs_forecast:
                forecaster.start(settings)
                may_burst = marking(settings.rules, config.userids)
                record = recorder.record if recorder else None
                lead.follow_queue(forecaster, may_burst, record)
            else:
                forecaster.close()
                lead.follow_queue(None)
        except Unreadable as error:
            # The lead has begun, and goes on with it. If it is gone, a tick tells that.
            log.warn("all jobs are still being read: %s", error)
        finally:
            if before is not None and before is not recorder:
                before.close()

    def close(self) -> None:
        """End the forecaster, and close the file."""
        if self._forecaster is not None:
            self._forecaster.close()
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()

    def _recorder_of(self, settings: Settings) -> JobRecorder | None:
        """Return the recorder for the settings: the present one for the same file."""
        path = Path(settings.daemon.record)
        if not settings.daemon.record:
            return None
        if self._recorder is not None and self._recorder.path == path:
            self._recorder.expect_repeats()
            return self._recorder
        return JobRecorder(path)


def _needs(settings: Settings) -> tuple[object, ...]:
    """Return the settings that decide whether and how all jobs are followed."""
    daemon = settings.daemon
    return settings.needs_forecast, daemon.forecast, daemon.record, settings.rules
