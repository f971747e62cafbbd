# SPDX-License-Identifier: MIT
"""`object_labels` of the settings: a site's own labels for all objects of a burst.

They are for accounting by user, bank or queue, and for admission policies that demand
labels. Selectors do not use them, so the setting may change while bursts live.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from burst.kits.kube.kinds import MINICLUSTER, Manifest
from burst.kits.pods.names import is_label_value
from burst.kits.pods.template.overlay_rules import LABELS, find_prefix
from burst.kits.user_names import user_name
from burst.provider import BurstSpec

PLACES = ("user", "bank", "queue")
"""The words that a value may have in braces."""
_SEVERAL, _NONE = "several", "none"
_LONGEST = 63
# RFC 1123: the prefix of a key is a DNS name; the rest has the form of a value.
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")


def check_labels(labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each label that objects cannot have."""
    for key, value in labels.items():
        prefix, slash, name = key.rpartition("/")
        advice = find_prefix(key, LABELS)
        if advice:
            yield f"object_labels.{key}: {advice}"
        elif not is_label_value(name) or (slash and not _PREFIX.match(prefix)):
            yield f"object_labels.{key}: is not a valid key of a label"
        try:
            value.format_map(dict.fromkeys(PLACES, ""))
        except (KeyError, ValueError, IndexError, AttributeError):
            known = ", ".join(f"{{{place}}}" for place in PLACES)
            yield f"object_labels.{key}: {value!r}: in braces, use one of {known}"


def labels_for(
    labels: Mapping[str, str], spec: BurstSpec | None = None
) -> dict[str, str]:
    """Return the labels for a burst's objects; without `spec`, for a check or probe.

    Without users in `spec` {user} is the user of this process.
    """
    if not labels:
        return {}
    userids = spec.userids if spec else ()
    users = sorted(user_name(userid) for userid in userids or (os.geteuid(),))
    facts = {
        "user": _one_of(users),
        "bank": _one_of(spec.banks if spec else ()),
        "queue": _one_of(spec.queues if spec else ()),
    }
    return {key: make_valid(value.format_map(facts)) for key, value in labels.items()}


def make_valid(text: str) -> str:
    """Return a text in the form of a label's value (RFC 1123), which is not empty."""
    plain = _NOT_ALLOWED.sub("-", text)[:_LONGEST].strip("-_.")
    return plain or _NONE


def add_labels(manifest: Manifest, labels: Mapping[str, str]) -> Manifest:
    """Return the object with these labels added to it and to its pods.

    Labels that exist are not changed.
    """
    if not labels:
        return manifest
    found = _labelled(manifest, labels)
    spec = found.get("spec", {})
    if manifest["kind"] == MINICLUSTER.name:
        pod = {**spec["pod"], "labels": {**labels, **spec["pod"]["labels"]}}
        jobs = {**labels, **spec["jobLabels"]}
        return {**found, "spec": {**spec, "pod": pod, "jobLabels": jobs}}
    if "template" in spec:
        template = _labelled(spec["template"], labels)
        return {**found, "spec": {**spec, "template": template}}
    return found


def _labelled(thing: Manifest, labels: Mapping[str, str]) -> Manifest:
    meta = thing["metadata"]
    return {**thing, "metadata": {**meta, "labels": {**labels, **meta["labels"]}}}


def _one_of(names: tuple[str, ...] | list[str]) -> str:
    """Return the only name; "several" or "none" for another number of names."""
    return names[0] if len(names) == 1 else (_SEVERAL if names else _NONE)
