# SPDX-License-Identifier: MIT
"""The settings of examples/kube and examples/kind are read, and sell what they say."""

from __future__ import annotations

from pathlib import Path

import msgspec
from burst_kind.provider import KindProvider
from burst_kube.provider import KubeProvider

from burst.config import Settings, load
from burst.model.shape import Shape
from burst.runtime import provider_registry

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kube"


def test_the_settings_make_a_kube_provider(tmp_path: Path) -> None:
    settings = load(EXAMPLE / "burst.toml")
    provider = provider_registry.load_providers(
        _with_kubeconfig(settings, tmp_path), "owner-1"
    )["far"]
    assert isinstance(provider, KubeProvider)
    (offer,) = provider.offers()
    assert (offer.name, offer.shape, offer.max_nodes) == ("std", Shape(8), 8)


def test_an_applications_settings_make_one_too(tmp_path: Path) -> None:
    settings = load(EXAMPLE / "application.toml")
    provider = provider_registry.load_providers(
        _with_kubeconfig(settings, tmp_path), "owner-1"
    )["far"]
    (offer,) = provider.offers()
    assert (offer.name, offer.shape, offer.max_nodes) == ("gpu", Shape(8, 2), 4)


def test_the_settings_make_a_kind_provider() -> None:
    settings = load(EXAMPLE.parent / "kind" / "burst.toml")
    providers = provider_registry.load_providers(settings, "owner-1")
    assert isinstance(providers["far"], KindProvider)
    (offer,) = providers["far"].offers()
    assert (offer.name, offer.shape.cores, offer.max_nodes) == ("pod", 2, 4)


def _with_kubeconfig(settings: Settings, directory: Path) -> Settings:
    """Name a file that is there: the example's is the site's own."""
    table = settings.providers["far"]
    options = {**table.options, "kubeconfig": str(directory / "none")}
    changed = msgspec.structs.replace(table, options=options)
    return msgspec.structs.replace(settings, providers={"far": changed})
