# SPDX-License-Identifier: MIT
"""Reads from an admission message why an object was not admitted.

The API server's admission answers with a Status, but a policy may choose its code and
reason, and an event about a Job's pods has no code. So the message is classified by the
fixed form that each admission plug-in gives it, never by the words of a site's policy.

Sources: kubernetes 1.34, apiserver/pkg/admission (errors.go, plugin/webhook/errors,
plugin/policy/validating, plugin/resourcequota) and plugin/pkg/admission; openshift
apiserver-library-go, securitycontextconstraints/sccadmission; GKE's Warden, Gatekeeper
and Kyverno as users reported them.
"""

from __future__ import annotations

import enum
import re

import msgspec


class Why(enum.Enum):
    """Why an object was not admitted."""

    RULE = "rule"
    """A rule forbids this object; a later attempt would fail too."""
    QUOTA = "quota"
    """A quota is used up; others may free some of it."""
    LACKS = "lacks"
    """Something does not exist, or is not known yet; it may be made a moment later."""
    OUTAGE = "outage"
    """Admission itself failed, as a webhook or the API server does not work."""
    UNKNOWN = "unknown"
    """The message has none of the known forms."""


class Denial(msgspec.Struct, frozen=True):
    """Why an object was not admitted, and what to do."""

    why: Why
    advice: str = ""
    """What a person can do; empty if nothing is known."""


_POLICY = re.compile(
    r"admission webhook \"(?P<webhook>[^\"]+)\" denied the request"
    r"|Policy '(?P<policy>[^']+)'.{0,300}? denied request"
)
"""The forms of a webhook and of a ValidatingAdmissionPolicy. The policy's own words
come after them."""
_OUTAGE = re.compile(
    r"failed calling webhook|Internal error occurred|etcdserver:|timed out"
    r"|deadline exceeded|connection refused|the server is currently unable"
    r"|try again later|no such host|i/o timeout|TLS handshake|no endpoints available"
)
_QUOTA = re.compile(r"exceeded quota: ?(?P<quota>[^\s,;]*)")
_LACKS = re.compile(
    r"looking up|status unknown for quota|\bnot (yet )?(found|exist)|no \w+ .*\bfound"
    r"|unable to find|does ?n[o']t exist|being terminated"
)
_FORM = re.compile(r"\bis (forbidden|invalid): ")
# What OpenShift lists for each constraint that the user may not use.
_NOT_OURS = re.compile(
    r"(, )?provider \"[^\"]*\": Forbidden: not usable by user or serviceaccount"
)
# What GKE's Warden adds to the rule: an introduction, and who made the request.
_WARDEN = re.compile(
    r"GKE Warden rejected the request because it violates one or more constraints\."
    r"\s*Violations details:\s*|\s*Requested by user: .*",
    re.DOTALL,
)
_SETTINGS = "change the provider's settings to comply with that rule"

# What to do, by the rule that the message names. The first that matches is used.
_ADVICE = (
    (
        re.compile(r"exceeded quota"),
        "raise the namespace's ResourceQuota, or burst fewer nodes at a time",
    ),
    (
        re.compile(r"security context constraint"),
        "set user to a number in the range that it names, and remove the other settings"
        " that it names; or grant the followers' service account another constraint,"
        " such as nonroot-v2",
    ),
    (
        re.compile(r"violates PodSecurity"),
        "remove the settings that it names (security, user, host_paths, pod), or change"
        " the namespace's label pod-security.kubernetes.io/enforce",
    ),
    (
        re.compile(r"(maximum|minimum|max limit to request ratio)\b.* per "),
        "set the offers' cores and memory to what the LimitRange allows, or change the"
        " LimitRange",
    ),
    (
        re.compile(r"must specify"),
        "set what the quota demands in pod of the provider's table, or add a LimitRange"
        " that sets a default",
    ),
    (
        re.compile(r"Autopilot|denied by autogke"),
        f"{_SETTINGS}: Autopilot has no exceptions, a Standard cluster has fewer rules",
    ),
)


def read_denial(message: str) -> Denial:
    """Return why an object was not admitted, from the message of admission."""
    judge = _POLICY.search(message)
    # The policy's own words come after the match. They may contain "try again later".
    if _OUTAGE.search(message[: judge.start()] if judge else message):
        return Denial(Why.OUTAGE)
    advice = next((text for form, text in _ADVICE if form.search(message)), "")
    if judge:
        name = judge["webhook"] or judge["policy"]
        exempt = f"{_SETTINGS}, or ask who maintains {name} for an exception"
        return Denial(Why.RULE, advice or exempt)
    if _QUOTA.search(message):
        return Denial(Why.QUOTA, advice)
    if _LACKS.search(message):
        return Denial(Why.LACKS, advice)
    ask = "ask the cluster's administrator which policy forbids it"
    known = _FORM.search(message)
    return Denial(Why.RULE if known else Why.UNKNOWN, advice or ask)


def is_judged(message: str) -> bool:
    """Tell whether a webhook or a ValidatingAdmissionPolicy denied the object."""
    return bool(_POLICY.search(message))


def quote(message: str) -> str:
    """Return a message without the parts that do not describe the rule."""
    text = _WARDEN.sub("", message)
    if "security context constraint" in text:
        text = re.sub(r"\[\s*,\s*", "[", _NOT_OURS.sub("", text))
    return text
