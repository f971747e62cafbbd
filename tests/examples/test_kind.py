# SPDX-License-Identifier: MIT
"""The settings of examples/kind are read, and make what its README means."""

from __future__ import annotations

from pathlib import Path

from burst_kind.provider import KindProvider

from burst.config import load
from burst.runtime import provider_registry

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kind"


def test_the_settings_make_a_kind_provider() -> None:
    providers = provider_registry.load_providers(
        load(EXAMPLE / "burst.toml"), "owner-1"
    )
    assert isinstance(providers["far"], KindProvider)
    (offer,) = providers["far"].offers()
    assert (offer.name, offer.shape.cores, offer.max_nodes) == ("pod", 2, 4)
