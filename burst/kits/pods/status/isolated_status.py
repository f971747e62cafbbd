# SPDX-License-Identifier: MIT
"""The status of an isolated burst, from its objects. Pure: no clock, no request."""

from __future__ import annotations

import msgspec

from burst.decode import from_json
from burst.kits.kube.kinds import JOB, POD
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.burst_objects import BurstObjects
from burst.kits.pods.status.kept_object import ContainerStatus, KeptObject, Terminated
from burst.kits.pods.status.pod_status import (
    disruption_of,
    end_of_init,
    end_words,
    last_words,
)
from burst.kits.pods.template import isolated
from burst.model.ranks import parse_idset
from burst.provider import OUTPUT_MOST, BurstStatus, Failure, InstanceStatus, Phase


class _Result(msgspec.Struct, frozen=True):
    exit_status: int


def program_of(found: BurstObjects) -> str:
    """Return the kind of program of an isolated burst; empty for a joined burst."""
    said = (each.metadata.annotations.program for each in found.objects)
    return next(filter(None, said), "")


def lead_pod(found: BurstObjects) -> KeptObject | None:
    """Return the pod of the instance's lead; None if there is none.

    Its Job makes that pod only once.
    """
    return next((pod for pod in found.of(POD.name) if pod.index == 0), None)


def exit_status_of(found: BurstObjects) -> int | None:
    """Return the program's exit status; None if it runs, or if it is not known."""
    pod = lead_pod(found)
    ended = pod.broker.state.terminated if pod else None
    if ended is None:
        return None
    if program_of(found) != "job":
        # Other programs write no result: a user has shut the instance down, or it
        # failed.
        return ended.exit_code
    try:
        return from_json(ended.message, _Result).exit_status
    except msgspec.MsgspecError:
        return None


def failed_pod(found: BurstObjects) -> KeptObject | None:
    """Return the pod that failed: the lead's, or another before the lead is ready.

    It is None if no pod has failed.
    """
    lead = lead_pod(found)
    if lead is not None and _has_ended(lead):
        return lead
    if lead is not None and _is_ready(lead):
        return None  # the instance itself handles a lost node
    return next(filter(_has_failed, found.of(POD.name)), None)


def describe_instance(
    found: BurstObjects, base: BurstStatus, log: str | None, settings: PodSettings
) -> BurstStatus:
    """Return the status of an isolated burst.

    `base` is the status as `describe` determines it for any burst. `log` is the log of
    the failed pod or, once the program has ended, of the lead's pod; None if it cannot
    be read now.
    """
    status = exit_status_of(found)
    lead = lead_pod(found)
    instance = InstanceStatus(
        online=lead is not None and _is_ready(lead),
        access=_access(found, lead, settings),
        exit_status=None if log is None else status,
        output=bounded(log) if log is not None and status is not None else "",
    )
    found_phase, why, kind = base.phase, base.why, base.failure
    if base.phase is not Phase.ENDING:
        failure = "" if status is not None else _failure(found, log or "")
        if failure:
            found_phase, why = Phase.FAILED, failure
            taken = any(follower.reclaimed for follower in base.followers)
            kind = Failure.RECLAIMED if taken else kind
        elif status is not None or _is_only_leaving(found, base):
            found_phase, why, kind = Phase.RUNNING, "", Failure.OTHER
    return msgspec.structs.replace(
        base, phase=found_phase, why=why, failure=kind, instance=instance
    )


def bounded(log: str) -> str:
    """Return the output; if it is too long to be kept, a note and its end."""
    data = log.encode()
    if len(data) <= OUTPUT_MOST:
        return log
    # The note counts towards the limit.
    note = f"[{len(data)} bytes; only the end is shown]\n"
    end = data[-(OUTPUT_MOST - len(note)) :].decode(errors="ignore")
    return note + end


def _failure(found: BurstObjects, log: str) -> str:
    """Return why there will be no result; empty while there may be one."""
    pod = failed_pod(found)
    if pod is not None:
        disrupted = disruption_of(pod)
        if disrupted:
            return f"{pod.name} {disrupted}"
        if pod.ending:
            return f"{pod.name} was deleted before it had a result"
        ended = pod.broker.state.terminated
        before = end_of_init(pod.unready_init or ContainerStatus())
        if before and not ended:
            return f"{pod.name} ended without a result: {before}"
        how = end_words(pod, ended or Terminated())
        words = last_words(log) or "its log is empty"
        return f"{pod.name} ended without a result: {how}: {words}"
    if _is_lead_counted(found):
        return "the pod of its lead was deleted before it had a result"
    return ""


def _is_only_leaving(found: BurstObjects, base: BurstStatus) -> bool:
    """Tell whether pods have failed only because the instance is shutting down.

    In that case the lead's pod, which ends last, still runs. Before the instance is up,
    a pod that has not begun, for want of a node or an image, is a failure. A program
    may end before its pod is Ready.
    """
    lead = lead_pod(found)
    if base.phase is not Phase.FAILED or lead is None:
        return False
    if lead.ending or not lead.broker.state.running:
        return False
    begun = {pod.index for pod in found.of(POD.name) if _has_begun(pod)}
    return _is_ready(lead) or len(begun) == len(found.hosts)


def _is_lead_counted(found: BurstObjects) -> bool:
    """Tell whether the Job counts the lead's pod as ended, but the pod is gone."""
    for made in found.of(JOB.name):
        for indices in (made.status.completed_indexes, made.status.failed_indexes):
            if 0 in parse_idset(indices):
                return lead_pod(found) is None
    return False


def _access(found: BurstObjects, lead: KeptObject | None, settings: PodSettings) -> str:
    if lead is None:
        return ""
    command = isolated.access(settings.namespace, lead.name, settings)
    if program_of(found) == "service":
        return f"{isolated.address(found.id, settings)} (and {command})"
    return command


def _is_ready(pod: KeptObject) -> bool:
    """Return whether the broker of the pod is ready; other containers do not count."""
    return pod.broker.ready


def _has_begun(pod: KeptObject) -> bool:
    return pod.broker.state.running is not None or _has_ended(pod)


def _has_ended(pod: KeptObject) -> bool:
    """Return whether the broker of the pod has ended; it is not started again.

    If the node failed, only the phase of the pod may tell it.
    """
    ended = pod.broker.state.terminated is not None
    return ended or pod.phase in ("Failed", "Succeeded")


def _has_failed(pod: KeptObject) -> bool:
    ended = pod.broker.state.terminated
    return bool(ended and ended.exit_code) or pod.phase == "Failed"
