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
from typing import NamedTuple

from burst import log
from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import BurstError
from burst_ensemble.config.file import EnsembleFile, load_ensemble
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import commands
from burst_ensemble.core.record import EnsembleRecords, EnsembleStart, Seen
from burst_ensemble.runtime.read_file import check_supported, providers_of_daemon
from burst_ensemble.runtime.store import EnsembleStore

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
        check: Callable[[EnsembleFile], object],
        store: EnsembleStore,
        clock: Callable[[], float],
    ) -> None:
        """`check` raises ConfigError for an algorithm that there is not."""
        self._check = check
        self._store = store
        self._clock = clock
        self._due: dict[str, float] = {}
        self._said: dict[str, _Said] = {}
        """By path, what was logged last."""

    def look(self, settings: Settings, nodes: TaggedNodes) -> None:
        """Start what is to be started. What is in the way is logged, once."""
        now, ours = self._clock(), ensemble_settings(settings)
        for path in ours.files:
            if now < self._due.get(path, now):
                continue
            self._due[path] = now + _AGAIN_S
            found = self._try(Path(path), ours.environment, nodes)
            if self._said.get(path) != found:
                log.say("%s", found.text, level=found.level)
            self._said[path] = found

    def _try(
        self, path: Path, environment: Mapping[str, str], nodes: TaggedNodes
    ) -> _Said:
        try:
            return self._start(path, environment, nodes)
        except BurstError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - an algorithm's: others go on
            why = repr(error)
        return _Said(f"ensemble file {path} is not started: {why}", logging.WARNING)

    def _start(
        self, path: Path, environment: Mapping[str, str], nodes: TaggedNodes
    ) -> _Said:
        """Start the ensemble of a file, unless it is on record; return which."""
        known = providers_of_daemon(nodes)
        file = load_ensemble(path, known.names)
        spec = file.spec
        if spec.name in self._store.read():
            found = _on_record(self._store.read(), spec, path)
            before = self._said.get(str(path), found)
            # What was started a minute ago is on record, of course.
            return before if before.level == found.level == logging.INFO else found
        check_supported(spec, known.abilities, file)
        self._check(file)
        variables = environment_of(os.environ, environment)
        new = EnsembleStart(spec=spec, userid=os.geteuid(), environment=variables)
        now = self._clock()
        self._store.change(
            lambda current: commands.begin_once(Seen(current, nodes, now), new)
        )
        return _Said(f"ensemble {spec.name} is started, as {path} says")


def environment_of(
    variables: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that jobs have: those that are kept, and `more`."""
    kept = {name: variables[name] for name in KEPT_VARIABLES if name in variables}
    return {**kept, **more}


class _Said(NamedTuple):
    """What came of a look at a file."""

    text: str
    level: int = logging.INFO


def _on_record(ensembles: EnsembleRecords, spec: EnsembleSpec, path: Path) -> _Said:
    if ensembles[spec.name].start.spec == spec:
        return _Said(f"ensemble {spec.name} of {path} is on record already")
    return _Said(
        f"ensemble {spec.name} is on record already, and stays as it was started, which"
        f" is not what {path} says now: another name there starts it, too",
        logging.WARNING,
    )
