# SPDX-License-Identifier: MIT
"""What the file of an ensemble may say, and no member could have: it is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from burst.config.ensemble import EnsembleSpec, JobSpec, MemberSpec
from burst.config.ensemble_file import EnsembleFile
from burst.config.file_source import KeyPath
from burst.errors import ConfigError

ModesOf = Callable[[str], Collection[str]]
"""Returns what bursts of a provider can be, joined or isolated; nothing where that is
not known yet. May raise ConfigError."""


class _Refusal(msgspec.Struct, frozen=True):
    path: KeyPath
    """Below the member's table; of jobs that all share below the file's."""
    what: str
    advice: str
    is_shared: bool = False


def check_supported(
    spec: EnsembleSpec, modes: ModesOf, file: EnsembleFile | None = None
) -> None:
    """Raise ConfigError for what members could not have; with the file, its line."""
    for member in spec.members:
        for found in _refusals(member, spec.jobs, modes):
            if file is not None:
                place = file.places[member.name]
                # A member is at `members`, NUMBER, below what it shares with others.
                table = place[:-2] if found.is_shared else place
                path = (*table, *found.path)
                raise file.source.wrong(path, found.what, found.advice)
            key = ".".join(str(each) for each in found.path)
            raise ConfigError(
                f"member {member.name}: {key}: {found.what}", found.advice
            )


def _refusals(
    member: MemberSpec, shared: Sequence[JobSpec], modes: ModesOf
) -> Iterator[_Refusal]:
    """Yield the keys of a member that it could not have, and what would be right."""
    if member.is_isolated:
        known = modes(member.provider)
        if known and "isolated" not in known:
            yield _Refusal(
                ("mode",),
                f"provider {member.provider} makes no isolated bursts",
                'name a provider that does (docs/isolated.md), or use "joined"',
            )
        yield from _workdirs(member.jobs, is_shared=False)
        yield from _workdirs(shared, is_shared=True)
    for key in member.minicluster:
        yield _Refusal(
            ("minicluster", "spec", key),
            "it is not used: the pods of a member are those of its provider",
            "set it in the provider's table; of spec only size, minSize and maxSize"
            " are used",
        )


def _workdirs(jobs: Sequence[JobSpec], *, is_shared: bool) -> Iterator[_Refusal]:
    """Yield each `workdir` of jobs that may run in an isolated burst."""
    for number, job in enumerate(jobs):
        if job.workdir:
            yield _Refusal(
                ("jobs", number, "workdir"),
                "jobs of an isolated member run in /tmp, in the image of its provider",
                'remove it, or run sh -c "cd DIRECTORY && exec COMMAND"',
                is_shared,
            )
