# SPDX-License-Identifier: MIT
"""The offers of providers whose followers are pods, from their settings."""

from __future__ import annotations

from collections.abc import Sequence

from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.site_pod import node_selector
from burst.model.shape import Shape
from burst.provider import Offer

_SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}


def is_spot(table: OfferTable, settings: PodSettings) -> bool:
    """Tell whether the cloud may take nodes of an offer back at any time."""
    selector = node_selector(settings, table)
    return table.spot or any(selector.get(k) == v for k, v in _SPOT_LABELS.items())


def offers(settings: PodSettings) -> Sequence[Offer]:
    """Return the offers of the settings' tables."""
    return [
        Offer(
            name=name,
            shape=Shape(table.cores, table.gpus),
            max_nodes=table.max_nodes,
            price=table.price,
            join_time=table.join_time,
            modes=settings.modes,
            own_images=settings.own_images,
            spot=is_spot(table, settings),
            guests=settings.multi_user is not None,
        )
        for name, table in settings.offers.items()
    ]
