# SPDX-License-Identifier: MIT
"""Checks the ensemble files that the daemon starts by itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from burst.config import Settings
from burst.doctor.calls import try_call
from burst.doctor.facts import ReadFailure
from burst.model.finding import Finding, ok, wrong
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.runtime.read_file import providers_of_settings, read_ensemble


def check_settings(settings: Settings) -> list[Finding]:
    """Check the files of `[ensemble]`, with their algorithms."""
    known, names = providers_of_settings(settings), dict[str, str]()
    found: list[Finding] = []
    for path in ensemble_settings(settings).files:
        read = try_call(partial(read_ensemble, Path(path), known))
        if isinstance(read, ReadFailure):
            advice = read.advice or "`burst ensemble check` looks at it again"
            found.append(wrong(read.what, advice))
            continue
        spec = read[0].spec
        if spec.name in names:
            what = f"{path} has the name {spec.name}, as {names[spec.name]} has"
            advice = "give it another name: the daemon starts each name once"
            found.append(wrong(what, advice))
            continue
        names[spec.name] = path
        members = ", ".join(member.name for member in spec.members)
        found.append(ok(f"{path} is ensemble {spec.name} of {members}"))
    return found
