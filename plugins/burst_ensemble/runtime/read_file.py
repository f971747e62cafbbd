# SPDX-License-Identifier: MIT
"""Reads the file of an ensemble with all that a daemon checks before it starts it.

What the file may say, and no member could have, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import ConfigError
from burst.runtime.provider_registry import IMAGE, abilities_by_settings
from burst_ensemble.config.file import EnsembleFile, load_ensemble
from burst_ensemble.config.source import KeyPath
from burst_ensemble.config.spec import EnsembleSpec, JobSpec, MemberSpec
from burst_ensemble.runtime.algorithms import Algorithms, load_algorithms

AbilitiesOf = Callable[[str], Collection[str]]
"""Returns what a provider is able to: IMAGE, and what its bursts can be, joined or
isolated; nothing where that is not known yet. May raise ConfigError."""


class _Refusal(msgspec.Struct, frozen=True):
    path: KeyPath
    """Below the member's table; of jobs that all share below the file's."""
    what: str
    advice: str
    is_shared: bool = False


def check_supported(
    spec: EnsembleSpec, abilities: AbilitiesOf, file: EnsembleFile | None = None
) -> None:
    """Raise ConfigError for what members could not have; with the file, its line."""
    for member in spec.members:
        for found in _refusals(member, spec.jobs, abilities):
            if file is not None:
                place = file.places[member.name]
                # A member is at `members`, NUMBER, below what it shares with others.
                table = place[:-2] if found.is_shared else place
                path = (*table, *found.path)
                raise file.source.wrong(path, found.what, found.advice)
            key = ".".join(str(each) for each in found.path)
            what = f"member {member.name}: {key}: {found.what}"
            raise ConfigError(what, found.advice)


def _refusals(
    member: MemberSpec, shared: Sequence[JobSpec], abilities: AbilitiesOf
) -> Iterator[_Refusal]:
    """Yield the keys of a member that it could not have, and what would be right."""
    if member.is_isolated or member.image:
        known = abilities(member.provider)
        if member.is_isolated and known and "isolated" not in known:
            yield _Refusal(
                ("mode",),
                f"provider {member.provider} makes no isolated bursts",
                'name a provider that does (docs/isolated.md), or use "joined"',
            )
        if member.image and known and IMAGE not in known:
            yield _Refusal(
                ("image",),
                f"bursts of provider {member.provider} have no images",
                "name a provider that makes pods, or remove it",
            )
    if member.is_isolated:
        yield from _workdirs(member.jobs, is_shared=False)
        yield from _workdirs(shared, is_shared=True)


def _workdirs(jobs: Sequence[JobSpec], *, is_shared: bool) -> Iterator[_Refusal]:
    """Yield each `workdir` of jobs that may run in an isolated burst."""
    for number, job in enumerate(jobs):
        if job.workdir:
            yield _Refusal(
                ("jobs", number, "workdir"),
                "jobs of an isolated member run in /tmp, in their image",
                'remove it, or run sh -c "cd DIRECTORY && exec COMMAND"',
                is_shared,
            )


class KnownProviders(msgspec.Struct, frozen=True):
    """The providers that members may name."""

    names: Collection[str]
    abilities: AbilitiesOf


def read_ensemble(
    path: Path, providers: KnownProviders
) -> tuple[EnsembleFile, Algorithms]:
    """Return the ensemble in a file, and its algorithms.

    Raises ConfigError with the line.
    """
    file = load_ensemble(path, providers.names)
    check_supported(file.spec, providers.abilities, file)
    return file, load_algorithms(file.spec, file)


def providers_of_settings(settings: Settings) -> KnownProviders:
    """Return the providers that are enabled. None of them is made."""
    enabled = [name for name, table in settings.providers.items() if table.enabled]
    return KnownProviders(
        enabled, lambda name: abilities_by_settings(name, settings.providers[name])
    )


def providers_of_daemon(nodes: TaggedNodes) -> KnownProviders:
    """Return the providers that a daemon has, and what their offers say of them."""

    def abilities(name: str) -> Collection[str]:
        offers = nodes.offers.get(name, ())
        images = {IMAGE for offer in offers if offer.own_images}
        return images | {mode for offer in offers for mode in offer.modes}

    return KnownProviders(list(nodes.offers), abilities)
