# SPDX-License-Identifier: MIT
"""Checks the ensemble files that the daemon starts by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from burst.config import Settings
from burst.doctor.calls import try_call
from burst.doctor.facts import ReadFailure
from burst.model.finding import Finding, ok, wrong
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.runtime.read_file import providers_of_settings, read_ensemble


def check_settings(settings: Settings) -> list[Finding]:
    """Check the files of `[ensemble]`, with their algorithms."""
    known = providers_of_settings(settings)

    def read(path: str) -> EnsembleSpec:
        file, _ = read_ensemble(Path(path), known)
        return file.spec

    files = ensemble_settings(settings).files
    return check_ensembles({path: try_call(partial(read, path)) for path in files})


def check_ensembles(files: Mapping[str, EnsembleSpec | ReadFailure]) -> list[Finding]:
    """Check the files of `[ensemble]`, by path."""
    return list(_check(files))


def _check(files: Mapping[str, EnsembleSpec | ReadFailure]) -> Iterator[Finding]:
    names: dict[str, str] = {}
    for path, spec in files.items():
        if isinstance(spec, ReadFailure):
            yield wrong(
                spec.what, spec.advice or "`burst ensemble check` looks at it again"
            )
        elif spec.name in names:
            yield wrong(
                f"{path} has the name {spec.name}, as {names[spec.name]} has",
                "give it another name: the daemon starts each name once",
            )
        else:
            names[spec.name] = path
            members = ", ".join(member.name for member in spec.members)
            yield ok(f"{path} is ensemble {spec.name} of {members}")
