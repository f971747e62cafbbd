# SPDX-License-Identifier: MIT
"""Reads the file of an ensemble with all that a daemon checks before it starts it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from burst.config import Settings
from burst.core.world import World
from burst.runtime.provider_registry import IMAGE, abilities_by_settings
from burst_ensemble.config.file import EnsembleFile, load_ensemble
from burst_ensemble.config.supported import AbilitiesOf, check_supported
from burst_ensemble.runtime.algorithm_registry import Algorithms, load_algorithms


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


def providers_of_world(world: World) -> KnownProviders:
    """Return the providers that a daemon has, and what their offers say of them."""

    def abilities(name: str) -> Collection[str]:
        view = world.providers.get(name)
        offers = (view.offers if view else None) or ()
        images = {IMAGE for offer in offers if offer.own_images}
        return images | {mode for offer in offers for mode in offer.modes}

    return KnownProviders(list(world.providers), abilities)
