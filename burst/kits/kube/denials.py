# SPDX-License-Identifier: MIT
"""What admission said of an object, by the form of its message.

The API server's admission answers with a Status whose code and reason a policy may
choose; an event about a Job's pods has no code at all. So the form decides in which
each part of admission puts its words, and a word of somebody's policy never does.

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
    """A rule forbids this object, today and tomorrow."""
    QUOTA = "quota"
    """A quota is used up, which others may free."""
    LACKS = "lacks"
    """Something does not exist, or is not known yet; it may be made a moment later."""
    OUTAGE = "outage"
    """Who was to judge it did not: the cluster does not work."""
    UNKNOWN = "unknown"
    """Its form is of none of those that are known."""


class Denial(msgspec.Struct, frozen=True):
    """Why an object was not admitted, and what to do."""

    why: Why
    advice: str = ""


_POLICY = re.compile(
    r"admission webhook \"(?P<webhook>[^\"]+)\" denied the request"
    r"|Policy '(?P<policy>[^']+)'.{0,300}? denied request"
)
"""Of a webhook, and of a ValidatingAdmissionPolicy; the words are the policy's."""
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
# What each of several constraints of OpenShift says if it is for others.
_NOT_OURS = re.compile(
    r"(, )?provider \"[^\"]*\": Forbidden: not usable by user or serviceaccount"
)
# Of GKE's Warden: who asked, and an address of its documentation.
_WARDEN = re.compile(
    r"GKE Warden rejected the request because it violates one or more constraints\."
    r"\s*Violations details:\s*|\s*Requested by user: .*",
    re.DOTALL,
)
_SETTINGS = "change the provider's settings so that it keeps to that"

# What to do, by the rule; the first that fits.
_ADVICE = (
    (
        re.compile(r"exceeded quota"),
        "raise the namespace's ResourceQuota, or burst fewer nodes at a time",
    ),
    (
        re.compile(r"security context constraint"),
        "set user to a number of the range that it names, and leave out what else it"
        " names, or have the followers' service account granted another constraint,"
        " such as nonroot-v2",
    ),
    (
        re.compile(r"violates PodSecurity"),
        "do without what it names (security, user, host_paths, pod), or have the"
        " namespace's label pod-security.kubernetes.io/enforce changed",
    ),
    (
        re.compile(r"(maximum|minimum|max limit to request ratio)\b.* per "),
        "set the offers' cores and memory to what the LimitRange allows, or have it"
        " changed",
    ),
    (
        re.compile(r"must specify"),
        "set what the quota demands by pod in the provider's table, or have a"
        " LimitRange give a default",
    ),
    (
        re.compile(r"Autopilot|denied by autogke"),
        f"{_SETTINGS}: Autopilot has no exceptions, a Standard cluster has fewer rules",
    ),
)


def read_denial(message: str) -> Denial:
    """Return what a message means with which an object was not admitted."""
    judge = _POLICY.search(message)
    # What follows are the policy's words, of which "try again later" may be some.
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
    """Tell whether a policy's words are in it: a webhook's, or a policy object's."""
    return bool(_POLICY.search(message))


def quote(message: str) -> str:
    """Return a message without what is not about the rule, so that the rule is seen."""
    text = _WARDEN.sub("", message)
    if "security context constraint" in text:
        text = re.sub(r"\[\s*,\s*", "[", _NOT_OURS.sub("", text))
    return text
