# SPDX-License-Identifier: MIT
"""Reads the image of the lead's own pod, so that followers can run the same image."""

from __future__ import annotations

import socket

import msgspec

from burst.errors import ConfigError
from burst.kits.kube import Cluster, InCluster, Manifest
from burst.kits.kube.access import NAMESPACE_FILE
from burst.kits.kube.kinds import POD, labels_of, name_of
from burst.kits.pods.template.containers import BROKER, DEFAULT_CONTAINER, VIEW

_SAY = "give --image, or set image in the provider's table"
_JOB = "job-name"
# The name of the lead's container in manifests/parts/lead-job.
_LEAD = "lead"


class OwnImage(msgspec.Struct, frozen=True):
    """The image of a pod's broker."""

    image: str
    view: str = ""
    """The image from which Flux is copied; empty if `image` has Flux."""


def find_own_image() -> OwnImage:
    """Return the image of the pod in which this process runs.

    It uses the pod's service account, which must be allowed to list pods. Raises
    ConfigError outside a pod, Transient and Refused.
    """
    try:
        namespace = NAMESPACE_FILE.read_text().strip()
    except OSError as error:
        raise ConfigError(
            "--image: is missing, and only a process in a pod with a service account"
            " can find it itself",
            _SAY,
        ) from error
    cluster = Cluster(InCluster())
    try:
        return read_own_image(cluster, namespace, socket.gethostname())
    finally:
        cluster.close()


def read_own_image(cluster: Cluster, namespace: str, host: str) -> OwnImage:
    """Return the image of the pod with this host name, by digest if it is known.

    If the pod has several containers, the broker's is found by its name. Raises
    ConfigError.
    """
    name = host.partition(".")[0]
    pods = [pod for pod in cluster.find(POD, namespace) if _host_of(pod) == name]
    if not pods:
        raise ConfigError(f"namespace {namespace} has no pod of host {name}", _SAY)
    # A pod that is ending may still be listed beside the one that replaces it.
    pods.sort(key=lambda pod: pod["metadata"].get("creationTimestamp", ""))
    return _image_of(pods[-1])


def _image_of(pod: Manifest) -> OwnImage:
    spec, meta = pod["spec"], pod["metadata"]
    images = {each["name"]: str(each["image"]) for each in spec["containers"]}
    noted = (meta.get("annotations") or {}).get(DEFAULT_CONTAINER)
    # The container of a MiniCluster has the name of the MiniCluster and of its Job.
    names = (noted, BROKER, labels_of(pod).get(_JOB), _LEAD)
    found = next((name for name in names if name in images), None)
    if found is None and len(images) == 1:
        (found,) = images
    if found is None:
        raise ConfigError(
            f"pod {name_of(pod)} has the containers {', '.join(images)}, and their"
            " names do not tell which one runs the lead",
            _SAY,
        )
    inits = spec.get("initContainers") or []
    view = next((str(each["image"]) for each in inits if each["name"] == VIEW), "")
    status = pod.get("status") or {}
    main = _pinned(images[found], _image_id(status.get("containerStatuses"), found))
    view_id = _image_id(status.get("initContainerStatuses"), VIEW)
    return OwnImage(main, _pinned(view, view_id) if view else "")


def _image_id(statuses: list[Manifest] | None, name: str) -> str:
    """Return the id of the image that a container really runs, as its node reports it.

    It is empty if it is not known.
    """
    ids = (each.get("imageID") for each in statuses or () if each["name"] == name)
    return str(next(ids, None) or "")


def _pinned(image: str, image_id: str) -> str:
    """Return the image with the digest that runs, as a tag may have moved since.

    The image is returned unchanged if it was loaded into the node: its id is then in no
    registry.
    """
    repository, at, digest = image_id.rpartition("@")
    if "@" in image or not at or not digest.startswith("sha256:"):
        return image
    head, slash, last = image.rpartition("/")
    named = f"{head}{slash}{last.partition(':')[0]}"
    if _whole_name(repository.rpartition("://")[2]) != _whole_name(named):
        return image
    return f"{image}@{digest}"


def _whole_name(repository: str) -> str:
    """Return a repository's full name: names of Docker Hub may lack its host."""
    host = repository.partition("/")[0]
    if "/" not in repository:
        return f"docker.io/library/{repository}"
    if "." not in host and ":" not in host and host != "localhost":
        return f"docker.io/{repository}"
    return repository


def _host_of(pod: Manifest) -> str:
    """Return the pod's host name; in an indexed Job it differs from the pod's name."""
    return str(pod["spec"].get("hostname") or name_of(pod))
