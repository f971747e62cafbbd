# SPDX-License-Identifier: MIT
"""The probe's pod, which tries to connect to the lead, and the facts that it reports.

It has the followers' image, user and nodes, which decide how it reaches the lead. It is
made by a Job, which Kubernetes ends at its deadline and then deletes, even if the pod
finds no node and no process of ours runs. It only connects, so it has no secret, except
for the munge key if it also checks the jobs of a guest (`guest_probe`).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from burst.kits import follower_facts, tcp
from burst.kits.follower_facts import FollowerFacts
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.diagnose import guest_probe
from burst.kits.pods.diagnose.guest_probe import Guest, GuestFacts
from burst.kits.pods.names import HOSTS, Tags
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.kept_object import KeptObject
from burst.kits.pods.template import job, pod
from burst.kits.pods.template.containers import PROBE
from burst.kits.pods.template.mount_paths import RESULT_PATH
from burst.kits.pods.template.multi_user import first_containers, multi_user_mounts
from burst.kits.pods.template.object_labels import labels_for
from burst.kits.pods.template.overlay import merge_pod, without_containers
from burst.kits.pods.template.site_pod import site_mounts, site_volumes
from burst.kits.pods.template.storage import host_volumes, mounts_of, munge_volumes
from burst.model.finding import Finding, wrong
from burst.model.lead import LeadIdentity

# The longest wait for a node, even if followers may wait longer.
_LONGEST_S = 600.0
# Seconds after the longest wait until Kubernetes ends the Job, and then deletes it.
_GRACE_S = 60
_KEPT_S = 60
_VIEW = f"{PROBE}-view"
# The kubelet reports the content of this file, however the program ends.
_KEEP = f"""\
[ ! -w {RESULT_PATH} ] || exec > {RESULT_PATH}
"""


class ProbeResult(msgspec.Struct, frozen=True):
    """What the pod's program has reported."""

    status: int
    """Its exit status."""
    said: str = ""
    """Its output without the facts: why it cannot connect."""
    facts: FollowerFacts | None = None
    guest: GuestFacts | None = None
    view: FollowerFacts | None = None
    """The facts of the view's image; each is None if none were printed."""


def probe_meta(name: str, settings: PodSettings, tags: Tags) -> Manifest:
    """Return the metadata of all objects of a probe."""
    return {
        "name": name,
        "namespace": settings.namespace,
        "labels": {**labels_for(settings.object_labels), **tags.labels(name)},
        "annotations": {HOSTS: PROBE},
    }


def render_probe(
    name: str,
    lead: LeadIdentity,
    settings: PodSettings,
    tags: Tags,
    guest: Guest | None = None,
) -> Manifest:
    """Return the Job of the probe. Raises Refused.

    It requests a node of the first offer. With a guest it is suspended until it owns
    what its pod mounts.
    """
    table = next(iter(settings.offers.values()))
    settings = settings.for_offer(table)
    meta = probe_meta(name, settings, tags)
    spec = _pod_spec(lead, settings)
    if guest is not None:
        spec = _for_guest(spec, name, lead, settings, guest)
    template: Manifest = {
        "metadata": {"labels": meta["labels"], "annotations": meta["annotations"]},
        "spec": spec,
    }
    made: Manifest = {
        "completions": 1,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": round(deadline_of(settings)) + _GRACE_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": merge_pod(template, without_containers(settings.pod)),
        **({"suspend": True} if guest else {}),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": made}


def _for_guest(
    spec: Manifest, name: str, lead: LeadIdentity, settings: PodSettings, guest: Guest
) -> Manifest:
    """Return the pod's spec with all that a follower has for guests' jobs."""
    table = next(iter(settings.offers.values()))
    (container,) = spec["containers"]
    shell, option, lines, own = container["command"]
    told = lines.replace(_KEEP, _KEEP + guest_probe.script(guest, lead), 1)
    mounts = [
        *container["volumeMounts"],
        *multi_user_mounts(settings),
        *mounts_of(munge_volumes(settings)),
        *(each.mount for each in site_mounts(settings.pod) if each.volume),
        *guest_probe.credential_mount(guest),
    ]
    command = [shell, option, told, own]
    kept = [*job.volumes(name, table, settings), *site_volumes(settings.pod)]
    return {
        **spec,
        "initContainers": first_containers(settings),
        "containers": [{**container, "command": command, "volumeMounts": mounts}],
        "volumes": [*kept, *guest_probe.credential_volume(name, guest)],
    }


def _pod_spec(lead: LeadIdentity, settings: PodSettings) -> Manifest:
    flux = "" if lead.follower_module else settings.flux
    python = [flux, "python"] if flux else [job.PYTHON]
    # With a view, an init container in the view's image looks for Flux instead.
    container = _container(settings, "" if settings.view else flux)
    made: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        **pod.base(settings),
        "containers": [{**container, "args": tcp.arguments(lead.endpoint, *python)}],
        "volumes": [each.volume for each in host_volumes(settings)],
    }
    if settings.view and flux:
        made["initContainers"] = [_view_container(container, flux, settings)]
    if settings.form == "operator" and settings.user is None:
        # The operator's pods run as the image's user.
        del made["securityContext"]
    return made


def _container(settings: PodSettings, flux: str) -> Manifest:
    return {
        "name": PROBE,
        **pod.container(settings),
        "command": ["/bin/sh", "-c", _script(flux) + tcp.SCRIPT, "sh"],
        # Without that file, its output is then in the pod's status all the same.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": pod.small_resources(),
        "volumeMounts": mounts_of(host_volumes(settings)),
    }


def _view_container(container: Manifest, flux: str, settings: PodSettings) -> Manifest:
    """Return a copy of this container as an init container in the view's image."""
    command = ["/bin/sh", "-c", f"{_script(flux)}exit 0", "sh"]
    return {**container, "name": _VIEW, "image": settings.view, "command": command}


def _script(flux: str) -> str:
    """Return lines for sh that print the facts; all output goes to the pod's status."""
    return f"{_KEEP}{follower_facts.script(flux)}"


def deadline_of(settings: PodSettings) -> float:
    """Return how many seconds the pod may wait for a node."""
    return min(settings.schedule, _LONGEST_S)


def result_of(pod: KeptObject) -> ProbeResult | None:
    """Return the result of the pod's program; None if it has not ended."""
    ended = pod.broker.state.terminated
    if ended is None:
        return None
    status = -1 if ended.exit_code is None else ended.exit_code
    inits = {each.name: each.state for each in pod.status.init_container_statuses}
    view = inits[_VIEW].terminated if _VIEW in inits else None
    return read_result(status, ended.message, view.message if view else "")


def read_result(status: int, said: str, view: str = "") -> ProbeResult:
    """Return the result of a program that has printed this, in both containers."""
    facts, rest = follower_facts.parse(said)
    guest, rest = guest_probe.parse(rest)
    return ProbeResult(status, rest, facts, guest, follower_facts.parse(view)[0])


def judge_facts(
    end: ProbeResult, lead: LeadIdentity, machine: str, guest: Guest | None = None
) -> Iterator[Finding]:
    """Yield findings about the facts from the pod.

    `machine` is the lead's architecture (`uname -m`).
    """
    if end.facts is not None:
        yield from follower_facts.judge(end.facts, lead, machine)
    if end.guest is not None and guest is not None:
        yield from guest_probe.judge_guest(end.guest, guest, lead)
    if end.view is not None:
        # Machine and user were already judged by the pod's own facts.
        own = msgspec.structs.replace(end.view, machine="", user="")
        yield from follower_facts.judge(own, lead, machine, "view")


def judge(end: ProbeResult, endpoint: str) -> Finding:
    """Return the finding about the connection, from the pod's result."""
    if "exec format error" in end.said:
        return wrong(
            "a pod there cannot run the image: it was built for another kind of"
            f" machine than the nodes ({end.said})",
            "choose nodes of the image's architecture, or an image of the nodes'",
        )
    found = tcp.judge(end.status, end.said, endpoint, "a pod there", "pods")
    if found.advice == tcp.UNKNOWN:
        return wrong(found.what, "check that the image runs on those nodes")
    return found


def judge_silence(endpoint: str, seconds: float) -> Finding:
    """Return the finding for a pod that has run for `seconds` without a result."""
    return tcp.judge_silence(seconds, endpoint, "a pod there", "pods")
