# SPDX-License-Identifier: MIT
"""The settings of examples/kube and examples/kind are read, and sell what they say."""

from __future__ import annotations

from pathlib import Path

import msgspec
from burst_kind.provider import KindProvider
from burst_kube.provider import KubeProvider

from burst.config import Settings, load
from burst.kits.pods import PodSettings
from burst.model.shape import Shape
from burst.runtime import provider_registry

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "kube"
EXAMPLES = [
    *(ROOT / "examples").glob("k*/*.toml"),
    *(ROOT / "examples").glob("*/burst.toml"),
    *(ROOT / "manifests").rglob("burst.toml"),
]


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


def test_a_pod_may_wait_for_a_node_as_long_as_schedule_says() -> None:
    """`provision` counts from before, and would end the wait for another reason."""
    compared = 0
    for path in EXAMPLES:
        settings = load(path)
        options = provider_registry.read_provider_options(settings, str(path))
        for name, parsed in options.items():
            if isinstance(parsed, PodSettings):
                compared += 1
                assert parsed.schedule < settings.provision_limit(name), path
    assert compared


def _with_kubeconfig(settings: Settings, directory: Path) -> Settings:
    """Name a file that is there: the example's is the site's own."""
    table = settings.providers["far"]
    options = {**table.options, "kubeconfig": str(directory / "none")}
    changed = msgspec.structs.replace(table, options=options)
    return msgspec.structs.replace(settings, providers={"far": changed})
