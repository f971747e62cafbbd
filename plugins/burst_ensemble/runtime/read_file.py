# SPDX-License-Identifier: MIT
"""Reads the file of an ensemble with all that a daemon checks before it starts it.

What the file may say, and no member could have, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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

_PODS = "set it for the pods of a provider, by a table [providers.NAME] that has it"
_INSTEAD: Mapping[str, str] = {
    "tasks": "say tasks of the member's jobs",
    "deadlineSeconds": "say time of [limits], mostTime of stop, or duration of jobs",
    "interactive": "leave it out: a member's nodes wait for its jobs",
    "cleanup": "leave it out: nothing of a member is left after its end",
    "containers": "of containers there is one, of which image is used",
}
"""By field of a MiniCluster's `spec`: what would be right."""
_INSTEAD_IN_CONTAINER: Mapping[str, str] = {
    **dict.fromkeys(
        ("command", "commands", "batch", "batchRaw", "launcher", "runFlux"),
        "say command or batch of the member's jobs",
    ),
    "workingDir": "say workdir of the member's jobs",
    "environment": "set environment of a provider, or [ensemble.environment]",
    "logs": "leave it out: flux job attach and burst output show them",
}
"""The same of a container."""


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
    yield from _unused(member.minicluster)


def _unused(minicluster: Mapping[str, Any]) -> Iterator[_Refusal]:
    """Yield the fields of a MiniCluster that no key of a member stands for."""
    path: KeyPath = ("minicluster", "spec")
    what = "it is not used of a MiniCluster"
    for key, value in minicluster.items():
        is_one = key == "containers" and isinstance(value, list) and len(value) == 1
        if is_one and isinstance(value[0], Mapping):
            for inner in value[0]:
                advice = _INSTEAD_IN_CONTAINER.get(inner, _PODS)
                yield _Refusal((*path, key, 0, inner), what, advice)
        yield _Refusal((*path, key), what, _INSTEAD.get(key, _PODS))


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
