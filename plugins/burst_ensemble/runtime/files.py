# SPDX-License-Identifier: MIT
"""Start the ensembles that `[ensemble] files` names, each once.

The name in a file decides whether its ensemble was started, not the content: a comment,
a new default of a later version or a larger `max` must not run all of its jobs again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from burst import log
from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import BurstError
from burst_ensemble.config.file import EnsembleFile, load_ensemble
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.core.record import EnsembleStart
from burst_ensemble.runtime.store import EnsembleStore

Begin = Callable[[EnsembleFile, EnsembleStart, TaggedNodes], object]
"""Puts an ensemble on record. Raises BurstError if it cannot run here."""

KEPT_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ"),
    *("LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"),
)
"""The environment variables that jobs of an ensemble get from the process that starts
it. Others may hold secrets, and would stay in the record of the ensemble."""
_AGAIN_S = 60.0
"""Seconds from one attempt with a file to the next: by then it may be corrected, or a
rank slot may be free."""


class EnsembleFiles:
    """Starts ensembles from files, in the thread that runs ensembles."""

    def __init__(
        self,
        begin: Begin,
        store: EnsembleStore,
        clock: Callable[[], float],
    ) -> None:
        self._begin = begin
        self._store = store
        self._clock = clock
        self._due: dict[str, float] = {}
        self._said: dict[str, tuple[str, int]] = {}
        """The result of the last attempt with its log level, by path."""

    def look(self, settings: Settings, nodes: TaggedNodes) -> None:
        """Start the ensembles that are not on record; log each obstacle once."""
        now, ours = self._clock(), ensemble_settings(settings)
        for path in ours.files:
            if now < self._due.get(path, now):
                continue
            self._due[path] = now + _AGAIN_S
            level = logging.WARNING
            try:
                text, level = self._start(Path(path), ours.environment, nodes)
            except BurstError as error:
                text = f"ensemble file {path} is not started: {error}"
            except Exception as error:  # noqa: BLE001 - an algorithm's: others go on
                text = f"ensemble file {path} is not started: {error!r}"
            before = self._said.get(path)
            # Not news after a start: the next attempt finds the ensemble on record.
            is_news = level != logging.INFO or before is None or before[1] != level
            if is_news and before != (text, level):
                log.say("%s", text, level=level)
            self._said[path] = text, level

    def _start(
        self, path: Path, environment: Mapping[str, str], nodes: TaggedNodes
    ) -> tuple[str, int]:
        """Start the ensemble of a file unless it is on record; return the message for
        the log, and its level. Raises BurstError.
        """
        file = load_ensemble(path, nodes.offers.keys())
        spec, on_record = file.spec, self._store.read().get(file.spec.name)
        if on_record is not None and on_record.start.spec == spec:
            return f"ensemble {spec.name} of {path} is on record already", logging.INFO
        if on_record is not None:
            return (
                f"ensemble {spec.name} is on record already, and keeps the settings it"
                f" was started with, which differ from {path} now: use another name"
                " there to start it as well"
            ), logging.WARNING
        start = EnsembleStart(
            spec=spec,
            userid=os.geteuid(),
            environment=environment_of(os.environ, environment),
            is_kept=True,
        )
        self._begin(file, start, nodes)
        return f"ensemble {spec.name} is started, as {path} says", logging.INFO


def environment_of(
    variables: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of jobs: KEPT_VARIABLES of `variables`, and `more`."""
    kept = {name: variables[name] for name in KEPT_VARIABLES if name in variables}
    return {**kept, **more}
