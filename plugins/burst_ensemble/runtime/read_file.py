# SPDX-License-Identifier: MIT
"""Read the file of an ensemble with all checks that a daemon makes before its start.

Keys that are valid in the file are refused if the member's provider does not support
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.runtime.provider_registry import IMAGE, abilities_by_settings
from burst_ensemble.config.file import EnsembleFile, load_ensemble
from burst_ensemble.config.source import KeyPath
from burst_ensemble.config.spec import JobSpec, MemberSpec
from burst_ensemble.runtime.algorithms import Algorithms, load_algorithms

AbilitiesOf = Callable[[str], Collection[str]]
"""Returns the abilities of a provider: IMAGE, and the modes of its bursts, joined or
isolated. Empty if they are not known yet. May raise ConfigError."""


def check_supported(file: EnsembleFile, abilities: AbilitiesOf) -> None:
    """Raise ConfigError for keys that the members' providers do not support."""
    for member in file.spec.members:
        for refusal in _refusals(member, file.spec.jobs, abilities):
            raise file.wrong(*refusal)


def check_offers(file: EnsembleFile, nodes: TaggedNodes) -> None:
    """Raise ConfigError for a member with an offer that its provider does not have."""
    for member in file.spec.members:
        names = [offer.name for offer in nodes.offers.get(member.provider, ())]
        # Without names, the provider has not told its offers yet.
        if member.offer and names and member.offer not in names:
            raise file.wrong(
                member.name,
                ("offer",),
                f"provider {member.provider} has no offer {member.offer}",
                f"it has {', '.join(names)}",
            )


def _refusals(
    member: MemberSpec, shared: Sequence[JobSpec], abilities: AbilitiesOf
) -> Iterator[tuple[str, KeyPath, str, str]]:
    """Yield unsupported keys of a member as arguments of `EnsembleFile.wrong`."""
    is_asked = member.is_isolated or member.image
    known = abilities(member.provider) if is_asked else ()
    if member.is_isolated and known and "isolated" not in known:
        yield (
            member.name,
            ("mode",),
            f"provider {member.provider} makes no isolated bursts",
            'name a provider that does (docs/isolated.md), or use "joined"',
        )
    if member.image and known and IMAGE not in known:
        yield (
            member.name,
            ("image",),
            f"bursts of provider {member.provider} have no images",
            "name a provider that makes pods, or remove it",
        )
    every = ((member.name, member.jobs), ("", shared))
    for whose, jobs in every if member.is_isolated else ():
        for number, job in enumerate(jobs):
            if job.workdir:
                yield (
                    whose,
                    ("jobs", number, "workdir"),
                    "jobs of an isolated member run in /tmp, in their image",
                    'remove it, or run sh -c "cd DIRECTORY && exec COMMAND"',
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
    check_supported(file, providers.abilities)
    return file, load_algorithms(file)


def providers_of_settings(settings: Settings) -> KnownProviders:
    """Return the providers that are enabled in the settings, without making any."""
    enabled = [name for name, table in settings.providers.items() if table.enabled]
    return KnownProviders(
        enabled, lambda name: abilities_by_settings(name, settings.providers[name])
    )


def providers_of_daemon(nodes: TaggedNodes) -> KnownProviders:
    """Return the providers of a daemon, with the abilities that their offers show."""

    def abilities(name: str) -> Collection[str]:
        offers = nodes.offers.get(name, ())
        images = {IMAGE for offer in offers if offer.own_images}
        return images | {mode for offer in offers for mode in offer.modes}

    return KnownProviders(list(nodes.offers), abilities)
