# SPDX-License-Identifier: MIT
"""Names and labels by which bursts are found in Google Cloud.

GKE's rules: a cluster or pool has up to 40 characters of a-z, 0-9 and -, the first a
letter, the last not a dash; a label's value has up to 63 of a-z, 0-9, _ and -.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec

from burst.errors import SpecRefused
from burst.kits.pods.names import is_name
from burst.kits.resource_tags import ResourceTags
from burst.model.burst import BurstId
from burst.provider import BurstSpec

PREFIX = "burst-"
OWNER, PROVIDER, ID, SPEC, LEASE = (
    f"{PREFIX}{key}" for key in ("owner", "provider", "id", "spec", "lease-end")
)
TAGS = ResourceTags(OWNER, PROVIDER, ID, LEASE)
_LONGEST_NAME = 40
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")
# Our values are labels in Kubernetes too, where both ends are letters or digits.
_BOTH = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?\Z")


def is_label_key(text: str) -> bool:
    """Return whether Google accepts the text as the key of a label."""
    return bool(_KEY.match(text))


def is_label_value(text: str) -> bool:
    """Return whether Google accepts the text as the value of a label."""
    return bool(_VALUE.match(text))


def name_of(burst_id: BurstId, prefix: str = "") -> str:
    """Return the name of a burst's cluster or pool: its id if GKE accepts that.

    Otherwise its beginning and a hash, so that different ids have different names.
    """
    text = f"{prefix}-{burst_id}" if prefix else burst_id
    if len(text) <= _LONGEST_NAME and is_name(text):
        return text
    tail = f"-{_hash(text)}"
    head = _squeeze(text, "-")[: _LONGEST_NAME - len(tail) - 2].strip("-")
    return (head if is_name(head) else f"b-{head}".rstrip("-")) + tail


def label_value(text: str) -> str:
    """Return the text as the value of a label, shortened with a hash if need be."""
    if _BOTH.match(text):
        return text
    tail = f"-{_hash(text)}"
    return (_squeeze(text, "_")[: 63 - len(tail)] + tail).lstrip("_-")


class Labels(msgspec.Struct, frozen=True):
    """The labels of the bursts of one provider of one lead."""

    owner: str
    provider: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all these bursts have."""
        return {
            OWNER: label_value(self.owner),
            PROVIDER: label_value(self.provider),
        }

    def labels_of(self, spec: BurstSpec, spec_hash: str) -> dict[str, str]:
        """Return the labels of one burst. Raises Refused if its id cannot be one."""
        if not _BOTH.match(spec.burst_id):
            raise SpecRefused(
                f"{spec.burst_id!r} cannot be a label in Google Cloud",
                "name the rank slot with up to 56 lower-case letters, digits and"
                " dashes",
            )
        lease = {LEASE: str(int(spec.lease_end))} if spec.lease_end else {}
        return {**self.labels, ID: spec.burst_id, SPEC: spec_hash, **lease}

    def burst_of(self, labels: Mapping[str, str]) -> BurstId | None:
        """Return the burst with these labels; None if it is not this provider's."""
        ours = self.labels
        return TAGS.burst_of(labels, ours[OWNER], ours[PROVIDER])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _squeeze(text: str, instead: str) -> str:
    return re.sub(r"[^a-z0-9]+", instead, text.lower())
