# SPDX-License-Identifier: MIT
"""Starts the ensembles that `[ensemble] files` names, each once.

The name in the file decides whether it was started, and not its content: a comment, a
default of a later version or a larger `max` must not run all of its jobs again.
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
"""Puts an ensemble on record. Raises BurstError for what cannot run here."""

KEPT_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ"),
    *("LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"),
)
"""Variables that jobs of an ensemble have from whoever starts it. Others may hold
secrets, and would be kept for as long as the ensemble is on record."""
_AGAIN_S = 60.0
"""From one look at a file to the next: it may be mended, a rank slot may be free."""


class EnsembleFiles:
    """Used by the thread that runs ensembles."""

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
        """By path, what came of the last look, with its level."""

    def look(self, settings: Settings, nodes: TaggedNodes) -> None:
        """Start what is to be started. What is in the way is logged, once."""
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
            # What was started a minute ago is on record, of course.
            is_news = level != logging.INFO or before is None or before[1] != level
            if is_news and before != (text, level):
                log.say("%s", text, level=level)
            self._said[path] = text, level

    def _start(
        self, path: Path, environment: Mapping[str, str], nodes: TaggedNodes
    ) -> tuple[str, int]:
        """Start the ensemble of a file, unless it is on record; return what to log, and
        its level. Raises BurstError.
        """
        file = load_ensemble(path, nodes.offers.keys())
        spec, on_record = file.spec, self._store.read().get(file.spec.name)
        if on_record is not None and on_record.start.spec == spec:
            return f"ensemble {spec.name} of {path} is on record already", logging.INFO
        if on_record is not None:
            return (
                f"ensemble {spec.name} is on record already, and stays as it was"
                f" started, which is not what {path} says now: another name there"
                " starts it, too"
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
    """Return the variables that jobs have: those that are kept, and `more`."""
    kept = {name: variables[name] for name in KEPT_VARIABLES if name in variables}
    return {**kept, **more}
