# SPDX-License-Identifier: MIT
"""The names of a burst's objects, and the labels by which they are found again."""

from __future__ import annotations

import functools
import hashlib
import re
import shlex
from collections.abc import Sequence

import msgspec

from burst.errors import Refused, SpecRefused
from burst.kits.kube.kinds import Manifest, labels_of
from burst.model.burst import BurstId
from burst.model.ranks import format_hostlist, parse_hostlist
from burst.provider import BurstSpec

OWNER = "burst.flux-framework.org/owner"
PROVIDER = "burst.flux-framework.org/provider"
ID = "burst.flux-framework.org/id"
SPEC = "burst.flux-framework.org/spec"
PROGRAM = "burst.flux-framework.org/program"
HOSTS = "burst.flux-framework.org/hosts"
LEAVING = "burst.flux-framework.org/leaving"
"""An annotation: hosts that a shrink takes from the object and that still have pods."""
LEASE = "burst.flux-framework.org/lease"
"""An annotation: seconds from the object's creation to the end of its lease. The API
server notes the time of creation, as the daemon's clock may be wrong."""
LEASE_END = "burst.flux-framework.org/lease-end"
"""A tag of node groups in EKS: the end of the lease, in seconds since the epoch."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""The label of Jobs that Kueue starts; it names the queue. Kueue may add it itself."""
STARTED = "burst.flux-framework.org/started"
SPOT = "burst.flux-framework.org/spot"
"""An annotation of objects whose pods run on nodes that the cloud may take back."""
ALONE_SINCE = "burst.flux-framework.org/alone-since"
INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"

# RFC 1035, for the names of Services and hosts of pods; other objects allow more.
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_LONGEST = 63


class Tags(msgspec.Struct, frozen=True):
    """The owner and the provider of objects, which are written as labels."""

    owner: str
    provider: str

    def labels(self, burst_id: str = "") -> dict[str, str]:
        """Return the labels of all our objects, or of the objects of one burst."""
        labels = {OWNER: self.owner, PROVIDER: self.provider}
        return {**labels, ID: burst_id} if burst_id else labels

    def own(self, manifest: Manifest) -> bool:
        """Return whether an object has our labels."""
        return self.labels().items() <= labels_of(manifest).items()


def is_name(text: str) -> bool:
    """Return whether the objects of a burst can have this name."""
    return len(text) <= _LONGEST and bool(_NAME.match(text))


def is_label_value(text: str) -> bool:
    """Return whether a label can have this value; an empty one is not accepted."""
    return len(text) <= _LONGEST and bool(_VALUE.match(text))


def check_names(spec: BurstSpec, tags: Tags, name: str = "") -> None:
    """Raise Refused if Kubernetes does not accept the burst's names and labels.

    `name` is the name of the Job; the default is the burst's id.
    """
    name = name or spec.burst_id
    # Pod I has the host name NAME-I, which is one DNS label.
    room = _LONGEST - len(f"-{len(spec.hosts) - 1}")
    if len(name) > room:
        raise SpecRefused(
            f"{name}: has {len(name)} characters, and Kubernetes allows {room} with"
            f" {len(spec.hosts)} pods",
            "give the rank slot's hosts a shorter name in the lead's configuration",
        )
    if not is_name(name):
        raise SpecRefused(
            f"{name!r} is not a valid name in Kubernetes",
            "name the rank slot's hosts with lower-case letters, digits and -, a letter"
            " first",
        )
    for value in (tags.owner, tags.provider):
        if not is_label_value(value):
            raise Refused(
                f"{value!r} cannot be a label's value",
                f"use at most {_LONGEST} letters, digits, -, _ and dots",
            )


def spec_hash(spec: BurstSpec, *more: object) -> str:
    """Return a hash that tells two specs with the same burst id apart.

    `more` are further values that determine what is made, such as the machine type.
    """
    content = (spec.owner, spec.burst_id, spec.offer, spec.hosts, spec.ranks, *more)
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


def describe_spec(spec: BurstSpec, now: float) -> dict[str, str]:
    """Return the annotations for the objects of the burst that are made now."""
    said = {SPEC: spec_hash(spec), HOSTS: format_hostlist(spec.hosts)}
    if spec.program:
        said[PROGRAM] = spec.program.kind
    return {**said, LEASE: f"{spec.lease_end - now:.0f}"} if spec.lease_end else said


def part_name(burst_id: str, first: int) -> str:
    """Return the name of the Job of a growth whose first host has the index `first`.

    Another growth from that index has the same name, so it waits until this one is
    gone.
    """
    return f"{burst_id}-g{first}"


def first_of(burst_id: str, name: str) -> int:
    """Return the `first` that `part_name` put into a name; 0 for any other name."""
    digits = name.removeprefix(f"{burst_id}-g")
    return int(digits) if digits != name and digits.isdecimal() else 0


@functools.lru_cache(maxsize=4096)  # all objects of a burst have the same text
def parse_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts in an annotation HOSTS or LEAVING; none if it cannot be read."""
    try:
        return parse_hostlist(text)
    except ValueError:  # Somebody edited it. Another object of the burst may have it.
        return ()


def pods_command(
    namespace: str, tags: Tags, burst_id: BurstId, flags: Sequence[str] = ()
) -> str:
    """Return a kubectl command for a shell; `flags` of kubectl select the cluster."""
    labels = tags.labels(burst_id)
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    where = [*flags, f"--namespace={namespace}"]
    return shlex.join(["kubectl", *where, "get", "pods", f"--selector={selector}"])
