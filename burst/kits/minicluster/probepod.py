# SPDX-License-Identifier: MIT
"""The pod that tries whether followers would reach the lead, and what its end means.

It is as followers are, where that bears on the way to the lead: image, user, nodes. It
has a Job around it, as that ends by its deadline and is then deleted even where the pod
never finds a node and nobody of ours lives. Nothing secret is in it: it only connects.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

from burst.errors import Refused
from burst.kits.kube.kinds import Manifest
from burst.kits.minicluster import pod
from burst.kits.minicluster.names import HOSTS, Tags
from burst.kits.minicluster.settings import MiniClusterSettings, OfferTable
from burst.kits.minicluster.words import shorten
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity

PROBE = "probe"
"""What it is called where followers have the names of their hosts."""
# Longer nobody waits who asked, whatever followers may take to find a node.
_LONGEST_S = 600.0
# So long after that the cluster itself ends it, and then keeps it.
_GRACE_S = 60
_KEPT_S = 60
_NO_PROGRAM = 2
# A name or a rule may take a moment to be known to a pod that is new, so three times.
# Flux brings a Python; an image over which the operator lays Flux has bash.
_SCRIPT = """\
host=$1 port=$2
shift 2
LC_ALL=C
export LC_ALL
if command -v "$1" > /dev/null; then
  set -- "$@" -c '
import socket, sys
try:
    socket.create_connection(sys.argv[1:])
except OSError as error:
    sys.exit(str(error))'
elif command -v bash > /dev/null; then
  set -- bash -c ': <> "/dev/tcp/$0/$1"'
else
  exit 2
fi
for pause in 1 1 0; do
  said=$("$@" "$host" "$port" 2>&1) && exit 0
  sleep $pause
done
printf '%s\\n' "$said"
exit 1
"""
# What bash and Python say of it, by the C library's texts; then ours, and what to do.
_SAYINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), words, todo)
    for pattern, words, todo in (
        (
            r"refused",
            "nothing listens there",
            "see that the lead runs, and that address and port under [lead] are where"
            " its Service or its host has it",
        ),
        (
            r"resol|not known|try again|no address associated",
            "its name cannot be resolved there",
            "set address under [lead] to a name that pods there can resolve, or to a"
            " number",
        ),
        (
            r"timed out",
            "there is no answer",
            "let pods there connect to that port: a firewall or a NetworkPolicy drops"
            " it, or the address is not one for them",
        ),
        (
            r"no route|unreachable",
            "no way leads there",
            "set address under [lead] to one that is reached from that network",
        ),
    )
)


class End(msgspec.Struct, frozen=True):
    """How the pod's program ended."""

    status: int
    said: str = ""


def render_probe(
    name: str, lead: LeadIdentity, settings: MiniClusterSettings, tags: Tags
) -> Manifest:
    """Return the Job. Raises Refused.

    Of several offers it is the first whose nodes are asked for.
    """
    where = urlsplit(lead.endpoint)
    if not where.hostname or not where.port:
        raise Refused(
            "it is not known where pods reach the lead",
            "set address and port under [lead]",
        )
    table = next(iter(settings.offers.values()))
    meta: Manifest = {
        "name": name,
        "namespace": settings.namespace,
        "labels": tags.labels(name),
        "annotations": {HOSTS: PROBE},
    }
    embedded = lead.kind == "embedded"
    python = [settings.python] if embedded else [settings.flux, "python"]
    container = _container(table, settings)
    container["args"] = [where.hostname, str(where.port), *python]
    inside = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        **pod.base(table, settings),
        "containers": [container],
        "volumes": pod.host_volumes(settings),
    }
    if settings.form == "operator" and settings.user is None:
        # The operator's pods run as whoever the image says.
        del inside["securityContext"]
    job: Manifest = {
        "completions": 1,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": round(deadline_of(settings)) + _GRACE_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": {
            "metadata": {"labels": meta["labels"], "annotations": meta["annotations"]},
            "spec": inside,
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}


def _container(table: OfferTable, settings: MiniClusterSettings) -> Manifest:
    resources: Manifest = {"requests": {"cpu": "10m"}}
    if table.memory:
        # Where a quota asks for limits, followers have some too.
        resources["limits"] = {"memory": "64Mi"}
    return {
        "name": PROBE,
        **pod.container(settings),
        "command": ["/bin/sh", "-c", _SCRIPT, "sh"],
        # What it says is then in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": resources,
        "volumeMounts": pod.host_mounts(settings),
    }


def deadline_of(settings: MiniClusterSettings) -> float:
    """Return how many seconds the pod may take to run."""
    return min(settings.schedule, _LONGEST_S)


def end_of(pod: Manifest) -> End | None:
    """Return how the pod's program ended, None if it did not."""
    containers = (pod.get("status") or {}).get("containerStatuses") or [{}]
    ended = (containers[0].get("state") or {}).get("terminated")
    if ended is None:
        return None
    return End(ended.get("exitCode", -1), ended.get("message", ""))


def judge(end: End, endpoint: str) -> Finding:
    """Say what came of it."""
    if end.status == 0:
        return ok(f"a pod there reaches {endpoint}")
    if end.status == _NO_PROGRAM:
        return note(
            f"whether a pod there reaches {endpoint} cannot be tried: the image has"
            " neither bash nor Python",
            "the first burst will tell",
        )
    what = f"a pod there does not reach {endpoint}"
    for pattern, words, todo in _SAYINGS:
        if pattern.search(end.said):
            return wrong(f"{what}: {words}", todo)
    why = shorten(end.said) or f"it ended with exit status {end.status}"
    return wrong(f"{what}: {why}", "see that the image runs on those nodes")


def judge_silence(endpoint: str, seconds: float) -> Finding:
    """Say that the pod has run for so long without an answer."""
    _, words, todo = next(s for s in _SAYINGS if s[0].search("timed out"))
    return wrong(
        f"a pod there does not reach {endpoint}: {words} within {seconds:g} s", todo
    )
